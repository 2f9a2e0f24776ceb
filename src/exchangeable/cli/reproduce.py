"""`exchangeable reproduce`: run an experiment and write the page about it."""

from pathlib import Path

import click
from rich.console import Console

from exchangeable.datasets._density import DENSITY_SETS
from exchangeable.experiments.beyond import KEY, MODELS, SETS, Beyond
from exchangeable.experiments.beyond_report import write_report
from exchangeable.experiments.store import Store


@click.command()
@click.option("--table", type=click.Choice(["beyond"]), required=True, help="What to run.")
@click.option(
    "--dataset",
    "datasets",
    multiple=True,
    type=click.Choice(sorted(DENSITY_SETS)),
    help="A set to run on; may be given several times. All that are present by default.",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    type=click.Choice(MODELS),
    help="A model to run; may be given several times. All by default.",
)
@click.option("--seeds", default=5, show_default=True, type=click.IntRange(1), help="Seeds a cell.")
@click.option(
    "--search-seconds",
    default=240.0,
    show_default=True,
    type=click.FloatRange(0, min_open=True),
    help="Time for the search of one family's settings on one set.",
)
@click.option(
    "--average-seconds",
    default=240.0,
    show_default=True,
    type=click.FloatRange(0, min_open=True),
    help="Time after which no more fits are added to an average, of at most ten.",
)
@click.option("--download", is_flag=True, help="Download sets that are not in the data folder.")
@click.option("--report-only", is_flag=True, help="Run nothing; write the page.")
@click.option(
    "--results",
    default="results/beyond.csv",
    show_default=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where finished cells are kept; a run goes on where that file ends.",
)
@click.option(
    "--page",
    default="docs/density.md",
    show_default=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The page to write.",
)
@click.option("--n-jobs", type=int, help="Number of threads; all cores by default.")
def reproduce(
    table: str,
    datasets: tuple[str, ...],
    models: tuple[str, ...],
    seeds: int,
    search_seconds: float,
    average_seconds: float,
    download: bool,
    report_only: bool,
    results: Path,
    page: Path,
    n_jobs: int | None,
) -> None:
    """Run an experiment, cell by cell, and write the page about it.

    The table `beyond` is the density benchmark with weighted urns and trees. Each finished cell is
    stored as it ends; an interrupted run goes on where it was.
    """
    console = Console(stderr=True)
    store = Store(results, KEY)
    if not report_only:
        experiment = Beyond(
            store,
            search_seconds,
            average_seconds=average_seconds,
            tell=console.log,
            n_jobs=n_jobs,
        )
        try:
            experiment.run(datasets or SETS, models or MODELS, range(seeds), download)
        except KeyboardInterrupt:
            console.print("interrupted; the cells finished so far are kept")
    write_report(store, page)
    console.print(f"{len(store.rows)} cells in {results}; page written to {page}")
