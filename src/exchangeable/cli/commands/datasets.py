"""`exchangeable datasets`: list data sets and download them before use."""

import click
from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from exchangeable.datasets import (
    DatasetInfo,
    fetch_classification,
    fetch_density,
    get_data_home,
    list_datasets,
)


class DownloadBar:
    """A rich progress bar with the few tqdm methods that pooch calls."""

    def __init__(self, progress: Progress, name: str) -> None:
        self._progress = progress
        self._task = progress.add_task(name, total=None)

    @property
    def total(self) -> float | None:
        """Size of the file in bytes, None while it is unknown."""
        return self._progress.tasks[self._task].total

    @total.setter
    def total(self, size: int) -> None:
        self._progress.update(self._task, total=size or None)

    def update(self, size: int) -> None:
        """Advance by a number of bytes, never beyond the end."""
        done = self._progress.tasks[self._task].completed + size
        self._progress.update(self._task, completed=min(done, self.total or done))

    def reset(self) -> None:
        """Go back to the start."""
        self._progress.update(self._task, completed=0)

    def close(self) -> None:
        """Leave the finished bar on the screen."""
        self._progress.refresh()


@click.group(invoke_without_command=True)
@click.pass_context
def datasets(context: click.Context) -> None:
    """List the data sets, fetch them, or show the folder they are kept in."""
    if context.invoked_subcommand is None:
        context.invoke(list_command)


@datasets.command("list")
def list_command() -> None:
    """List the data sets with their shape, size, and whether they are in the data folder."""
    table = Table()
    for heading in ("name", "kind", "variant"):
        table.add_column(heading, no_wrap=True)
    for heading in ("rows", "variables", "classes", "size"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("present")
    for entry in list_datasets():
        table.add_row(*_cells(entry))
    console = Console()
    if not console.is_terminal:
        console.width = 120  # a pipe has no width; do not truncate what another program reads
    console.print(table)


def _cells(entry: DatasetInfo) -> list[str]:
    return [
        entry.name,
        entry.kind,
        "" if entry.variant == "standard" else entry.variant,
        " / ".join(f"{rows:,}" for rows in entry.n_rows),
        f"{entry.n_variables:,}",
        str(entry.n_classes or ""),
        "unknown" if entry.size is None else decimal(entry.size),
        "yes" if entry.present else "no",
    ]


@datasets.command("fetch")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option(
    "--variant", default="standard", show_default=True, help="Variant of a classification data set."
)
def fetch_command(names: tuple[str, ...], variant: str) -> None:
    """Download data sets into the data folder, check them and unpack them."""
    known = {(entry.name, entry.variant): entry for entry in list_datasets()}
    for name in names:
        if (name, variant) not in known:
            raise click.ClickException(
                f"there is no data set {name!r} of variant {variant!r}; "
                "'exchangeable datasets list' shows all"
            )
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        for name in names:
            _fetch(known[name, variant], progress)
    for name in names:
        paths = [str(path) for path in known[name, variant].paths if path.exists()]
        click.echo(f"{name}: {', '.join(paths) or 'kept by scikit-learn'}")


def _fetch(entry: DatasetInfo, progress: Progress) -> None:
    try:
        if entry.kind == "density":
            fetch_density(entry.name, progress=lambda name: DownloadBar(progress, name))
        else:
            fetch_classification(
                entry.name,
                variant=entry.variant,
                progress=lambda name: DownloadBar(progress, name),
            )
    except OSError as error:
        raise click.ClickException(str(error)) from error


@datasets.command("path")
def path_command() -> None:
    """Print the data folder."""
    click.echo(get_data_home())
