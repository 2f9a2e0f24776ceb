"""`exchangeable reproduce`: run the paper's experiments and write the pages about them."""

from pathlib import Path
from typing import Any

import click
from rich.console import Console

from exchangeable.datasets._density import DENSITY_SETS
from exchangeable.experiments.beyond import KEY, SETS, Beyond
from exchangeable.experiments.beyond import MODELS as BEYOND_MODELS
from exchangeable.experiments.beyond_report import write_report
from exchangeable.experiments.pages import write_pages
from exchangeable.experiments.reproduction import (
    ALL_DATASETS,
    ALL_MODELS,
    TABLES,
    all_tasks,
    run_experiments,
)
from exchangeable.experiments.scale import FULL, QUICK
from exchangeable.experiments.store import Store

ALL, BEYOND = "all", "beyond"
SEARCH_SECONDS, SEEDS, AVERAGED = 240.0, 5, 10


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
    help="A set to run on; may be given several times. All by default.",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    type=click.Choice(sorted({*ALL_MODELS, *BEYOND_MODELS})),
    help="A model to run; may be given several times. All by default.",
)
@click.option("--quick", is_flag=True, help="Small versions of all experiments, in a few minutes.")
@click.option("--again", is_flag=True, help="Run cells anew that are finished already.")
@click.option("--seeds", type=click.IntRange(1), help=f"Seeds a cell of beyond. [default: {SEEDS}]")
@click.option(
    "--search-seconds",
    type=click.FloatRange(0, min_open=True),
    help=f"Time beyond's search has for one family on one set. [default: {SEARCH_SECONDS:g}]",
)
@click.option(
    "--average-seconds",
    type=click.FloatRange(0, min_open=True),
    help=f"Time after which beyond adds no more fits to an average. [default: {SEARCH_SECONDS:g}]",
)
@click.option(
    "--averaged",
    type=click.IntRange(1),
    help=f"Most fits in an average of beyond. [default: {AVERAGED}]",
)
@click.option("--download", is_flag=True, help="Download sets that are not in the data folder.")
@click.option("--report-only", is_flag=True, help="Run nothing; write the pages.")
@click.option(
    "--results",
    type=click.Path(path_type=Path),
    help="Where finished cells are kept; a run goes on where it was interrupted. A folder (by "
    "default results, or results/quick), for beyond a file (results/beyond.csv).",
)
@click.option(
    "--page",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The Markdown page to write; by default docs/reproduction.md, for beyond docs/density.md, "
    "for --quick reproduction.md among the results.",
)
@click.option("--n-jobs", type=int, help="Number of threads; all cores by default.")
def reproduce(table: str, quick: bool, again: bool, **options: Any) -> None:
    """Run the paper's experiments, cell by cell, and write tables beside the paper's.

    `properties`, `two-class` and `multi-class` are the paper's Tables 1 to 3, `density` its Tables
    4 and 5, `theorem` learning curves for Theorem 4.4, `speed` EM's times; `all` is all of these.
    `beyond` is the density benchmark with weighted urns and trees. Each finished cell is stored as
    it ends, so an interrupted run goes on where it was.
    """
    console = Console(stderr=True)
    if table == BEYOND:
        if quick or again:
            raise click.UsageError("--quick and --again are not for --table beyond")
        run_beyond(console, **options)
        return
    beyonds = ("seeds", "search_seconds", "average_seconds", "averaged")
    if any(options[name] for name in beyonds):
        raise click.UsageError("--seeds, --averaged and --…-seconds are for --table beyond")
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
    scale = QUICK if quick else FULL
    folder = results or Path("results/quick" if quick else "results")
    page = page or (folder / "reproduction.md" if quick else Path("docs/reproduction.md"))
    if unknown := set(models) - set(ALL_MODELS):
        raise click.UsageError(f"--model {sorted(unknown)[0]!r} is for --table beyond")
    if not report_only:
        tables = TABLES if table == ALL else (table,)
        tasks = all_tasks(tables, scale, datasets, models, n_jobs, download)
        if not tasks:
            raise click.UsageError(f"table {table!r} has no cells of those sets and models")
        try:
            for line in run_experiments(tasks, folder, console, again):
                console.print(f"left out: {line}")
        except KeyboardInterrupt:
            console.print("interrupted; the cells finished so far are kept")
    html = write_pages(folder, page, scale)
    console.print(f"cells in {folder}; pages written to {page} and {html}")


def run_beyond(
    console: Console,
    *,
    datasets: tuple[str, ...],
    models: tuple[str, ...],
    seeds: int | None,
    search_seconds: float | None,
    average_seconds: float | None,
    averaged: int | None,
    download: bool,
    report_only: bool,
    results: Path | None,
    page: Path | None,
    n_jobs: int | None,
) -> None:
    """Run the density benchmark with weighted urns and trees."""
    results, page = results or Path("results/beyond.csv"), page or Path("docs/density.md")
    if unknown := set(models) - set(BEYOND_MODELS):
        raise click.UsageError(f"--model {sorted(unknown)[0]!r} is not one of beyond's")
    if unknown := set(datasets) - set(DENSITY_SETS):
        raise click.UsageError(f"--dataset {sorted(unknown)[0]!r} is not one of beyond's")
    store = Store(results, KEY)
    if not report_only:
        experiment = Beyond(
            store,
            search_seconds or SEARCH_SECONDS,
            averaged or AVERAGED,
            average_seconds=average_seconds or SEARCH_SECONDS,
            tell=console.log,
            n_jobs=n_jobs,
        )
        try:
            runs = range(seeds or SEEDS)
            experiment.run(datasets or SETS, models or BEYOND_MODELS, runs, download)
        except KeyboardInterrupt:
            console.print("interrupted; the cells finished so far are kept")
    write_report(store, page)
    console.print(f"{len(store.rows)} cells in {results}; page written to {page}")
