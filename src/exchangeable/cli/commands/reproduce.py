"""`exchangeable reproduce`: run the paper's experiments and write pages with the results."""

from pathlib import Path
from typing import Any

import click
from rich.console import Console

from exchangeable.cli.errors import collected, one_line
from exchangeable.datasets._density import DENSITY_SETS
from exchangeable.devices.choice import DEVICES
from exchangeable.experiments.beyond.cells import KEY, SETS, Beyond
from exchangeable.experiments.beyond.cells import MODELS as BEYOND_MODELS
from exchangeable.experiments.beyond.report import write_report
from exchangeable.experiments.reproduction import (
    ALL_DATASETS,
    ALL_MODELS,
    TABLES,
    all_tasks,
    run_experiments,
)
from exchangeable.experiments.scale import FULL, QUICK
from exchangeable.experiments.store import Store
from exchangeable.experiments.views.pages import write_pages

ALL, BEYOND = "all", "beyond"
KEPT = "finished cells are kept; the same command goes on from there"
BUDGET = 600.0


@click.command()
@click.option(
    "--table",
    type=click.Choice([*TABLES, ALL, BEYOND]),
    default=ALL,
    show_default=True,
    help="What to run.",
)
@click.option(
    "--dataset",
    "datasets",
    multiple=True,
    type=click.Choice(sorted(ALL_DATASETS)),
    help="Data set to run on; repeatable. All by default.",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    type=click.Choice(sorted({*ALL_MODELS, *BEYOND_MODELS})),
    help="Model to run; repeatable. All by default.",
)
@click.option(
    "--quick", is_flag=True, help="Run small versions of all experiments, in a few minutes."
)
@click.option("--again", is_flag=True, help="Run finished cells again.")
@click.option(
    "--time-budget",
    "budgets",
    multiple=True,
    type=click.FloatRange(0),
    help="beyond: seconds for each search; repeatable; 0 lets it end by itself.  "
    f"[default: {BUDGET:g}]",
)
@click.option(
    "--seed",
    "seeds",
    multiple=True,
    type=click.IntRange(0),
    help="beyond: seed; repeatable.  [default: 0]",
)
@click.option("--device", type=click.Choice(DEVICES), help="beyond: where networks are trained.")
@click.option(
    "--compress",
    type=click.FloatRange(0, 1, max_open=True),
    metavar="LOSS",
    help="beyond: also make each density smaller, at this loss of log-likelihood.",
)
@click.option(
    "--download", is_flag=True, help="Download data sets that are not in the data folder."
)
@click.option("--report-only", is_flag=True, help="Run nothing, only write the pages.")
@click.option(
    "--results",
    type=click.Path(path_type=Path),
    help="Where finished cells are kept, so that an interrupted run can continue: a folder (by "
    "default results, or results/quick), for beyond a file (results/beyond.csv).",
)
@click.option(
    "--page",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Markdown page to write; by default docs/reproduction.md, for beyond docs/density.md, for "
    "--quick reproduction.md in the folder of results.",
)
@click.option("--n-jobs", type=int, help="Number of threads; all cores by default.")
@one_line
def reproduce(table: str, quick: bool, again: bool, **options: Any) -> None:
    """Run the paper's experiments, cell by cell, and compare the results with the paper's tables.

    `properties`, `two-class` and `multi-class` are the paper's Tables 1 to 3, `density` is Tables 4
    and 5, `theorem` learning curves for Theorem 4.4, `speed` the running times of EM; `all` is all
    of these. `beyond` is the density benchmark by `ExchangeableDensity` as it is by default. Every
    cell is stored as soon as it is finished, so an interrupted run continues where it stopped.
    """
    console = Console(stderr=True)
    if table == BEYOND:
        if quick or again:
            raise click.UsageError("--quick and --again are not for --table beyond; leave them out")
        run_beyond(console, **options)
        return
    if any(options[name] for name in ("budgets", "seeds", "device", "compress")):
        raise click.UsageError(
            "--time-budget, --seed, --device and --compress are for --table beyond; leave them out"
        )
    run_paper(console, table, quick, again, **options)


def run_paper(
    console: Console,
    table: str,
    quick: bool,
    again: bool,
    *,
    datasets: tuple[str, ...],
    models: tuple[str, ...],
    download: bool,
    report_only: bool,
    results: Path | None,
    page: Path | None,
    n_jobs: int | None,
    **_: None,
) -> None:
    """Run the paper's tables."""
    scale, interrupted = QUICK if quick else FULL, False
    folder = results or Path("results/quick" if quick else "results")
    page = page or (folder / "reproduction.md" if quick else Path("docs/reproduction.md"))
    if unknown := set(models) - set(ALL_MODELS):
        raise click.UsageError(
            f"--model {sorted(unknown)[0]!r} is for --table beyond; expected one of "
            f"{', '.join(ALL_MODELS)}"
        )
    if not report_only:
        tables = TABLES if table == ALL else (table,)
        tasks = all_tasks(tables, scale, datasets, models, n_jobs, download)
        if not tasks:
            raise click.UsageError(
                f"table {table!r} has no cells of the given data sets and models; leave out "
                "--dataset or --model, or choose others"
            )
        with collected() as told:
            try:
                for line in run_experiments(tasks, folder, console, again):
                    console.print(f"left out: {line}")
            except KeyboardInterrupt:
                interrupted = True
        for text, number in told.items():
            console.print(f"said by {number} fits: {text}", highlight=False, markup=False)
    html = write_pages(folder, page, scale)
    console.print(f"cells in {folder}; pages written to {page} and {html}")
    if interrupted:
        raise KeyboardInterrupt(KEPT)


def run_beyond(
    console: Console,
    *,
    datasets: tuple[str, ...],
    models: tuple[str, ...],
    budgets: tuple[float, ...],
    seeds: tuple[int, ...],
    device: str | None,
    compress: float | None,
    download: bool,
    report_only: bool,
    results: Path | None,
    page: Path | None,
    n_jobs: int | None,
) -> None:
    """Run the density benchmark by the default estimator."""
    results, page = results or Path("results/beyond.csv"), page or Path("docs/density.md")
    if unknown := set(models) - set(BEYOND_MODELS):
        raise click.UsageError(
            f"--model {sorted(unknown)[0]!r} is not part of --table beyond; expected one of "
            f"{', '.join(BEYOND_MODELS)}"
        )
    if unknown := set(datasets) - set(DENSITY_SETS):
        raise click.UsageError(
            f"--dataset {sorted(unknown)[0]!r} is not part of --table beyond; expected one of "
            f"{', '.join(DENSITY_SETS)}"
        )
    store, interrupted = Store(results, KEY), False
    if not report_only:
        experiment = Beyond(store, console.log, n_jobs, device or DEVICES[0], compress)
        try:
            experiment.run(
                datasets or SETS,
                models or BEYOND_MODELS,
                budgets or (BUDGET,),
                seeds or (0,),
                download,
            )
        except KeyboardInterrupt:
            interrupted = True
    write_report(store, page)
    console.print(f"{len(store.rows)} cells in {results}; page written to {page}")
    if interrupted:
        raise KeyboardInterrupt(KEPT)
