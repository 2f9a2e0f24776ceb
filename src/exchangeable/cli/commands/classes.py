"""`exchangeable classes`: a latent class analysis of a table, with a report."""

from pathlib import Path
from typing import Any

import click

from exchangeable import ExchangeableMixture, save
from exchangeable.classes.analysis import Analysis, analyse
from exchangeable.classes.selection import CRITERIA
from exchangeable.cli.errors import one_line
from exchangeable.cli.options import (
    busy,
    data_argument,
    date_format_option,
    dates_option,
    dialect_options,
    drop_option,
    kind_option,
    levels_option,
    notes,
    seed_option,
)
from exchangeable.cli.preparing import column_kinds
from exchangeable.cli.texts import examples
from exchangeable.report.classes import write_classes_report
from exchangeable.runtime.interrupts import InterruptedAnalysis
from exchangeable.runtime.text import printable, printable_lines
from exchangeable.tables.delimited import Dialect
from exchangeable.tables.layout import Choice, choose_columns
from exchangeable.tables.learning import check_kinds, items_of, usual_kinds
from exchangeable.tables.ordering import alphabetical, order_levels
from exchangeable.tables.problems import Problems
from exchangeable.tables.raw import RawCoding
from exchangeable.tables.reading import TableData, read_table
from exchangeable.tables.targets import read_weights

AUTO = "auto"
MOST_CLASSES = 8
EXAMPLES = examples(
    "classes survey.csv --components auto --report report.html",
    "classes survey.csv --components 1-5 --weights w --id person --report report.html",
    "classes survey.csv --components 3 --covariate age --outcome income --tables tables",
)


@click.command(epilog=EXAMPLES)
@data_argument
@click.option(
    "--components",
    default=AUTO,
    show_default=True,
    metavar="K|LOW-HIGH|auto",
    help=f"Number of classes, or a range to choose from; 'auto' is 1-{MOST_CLASSES}.",
)
@click.option("--report", metavar="FILE", help="Write a page with everything to FILE (.html).")
@click.option("--tables", metavar="FOLDER", help="Write the tables to FOLDER, as CSV and LaTeX.")
@click.option("-o", "--output", metavar="MODEL", help="Write the chosen model to a file.")
@drop_option
@click.option(
    "--keep", multiple=True, metavar="PATTERN", help="Use these columns as items only; repeatable."
)
@click.option(
    "--id", "key", metavar="COLUMN", help="Column that identifies rows; it is not an item."
)
@kind_option
@click.option("--weights", metavar="COLUMN", help="Column with the sampling weight of each row.")
@click.option("--strata", metavar="COLUMN", help="Column with the stratum of each row.")
@click.option(
    "--clusters", metavar="COLUMN", help="Column with the cluster that was drawn in the stratum."
)
@levels_option
@dates_option
@date_format_option
@click.option(
    "--covariate",
    "covariates",
    multiple=True,
    metavar="COLUMN",
    help="Column on which class membership is regressed; repeatable.",
)
@click.option(
    "--outcome",
    "outcomes",
    multiple=True,
    metavar="COLUMN",
    help="Column that is compared across classes; repeatable.",
)
@click.option(
    "--criterion",
    type=click.Choice([name for name in CRITERIA if name != "valid"]),
    default="bic",
    show_default=True,
    help="What decides on the number of classes.",
)
@click.option(
    "--bootstrap",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Draws of the bootstrap likelihood-ratio tests; 0 for no tests.",
)
@click.option(
    "--draws",
    type=click.IntRange(2),
    default=200,
    show_default=True,
    help="Draws of the bootstrap of standard errors.",
)
@click.option(
    "--n-init",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="Number of runs of EM from different starts; the best is kept.",
)
@seed_option
@dialect_options
@one_line
def classes(
    data: str,
    components: str,
    report: str | None,
    tables: str | None,
    output: str | None,
    criterion: str,
    bootstrap: int,
    draws: int,
    n_init: int,
    seed: int | None,
    dialect: Dialect,
    **asked: Any,
) -> None:
    """Find latent classes in the table DATA, and report all about them.

    Columns that are not weights, strata, clusters, covariates, outcomes or dropped are the items.
    They may be of any kind, and empty cells are unknown. Constant columns, texts that differ in
    every row and row numbers are left out unless --kind says what they are. Numbers of classes are
    compared, and the chosen model is described by class sizes and item profiles with bootstrap
    standard errors, a classification table, covariates of class membership (three steps, maximum
    likelihood) and distal outcomes (three steps, Bolck, Croon and Hagenaars).
    """
    tried = _numbers(components)
    if criterion == "blrt" and not bootstrap:
        raise click.UsageError("--criterion blrt needs --bootstrap, such as --bootstrap 100")
    with busy(f"reading {data}"):
        table = read_table(data, dialect)
        coding, columns, told = _split(table, asked, dialect)
        rows = coding.rows(table)
    notes(table.name, [*table.notes, *told])
    kinds = column_kinds(asked["kinds"], list(coding.columns))
    try:
        analysis = analyse(
            ExchangeableMixture,
            rows,
            n_components=tried,
            criterion=criterion,
            bootstrap=bootstrap,
            n_draws=draws,
            blocks="independent",
            kinds=usual_kinds(rows, coding) | kinds or None,
            n_init=n_init,
            random_state=seed,
            **columns,
        )
    except InterruptedAnalysis as interrupted:
        if output is None:
            raise KeyboardInterrupt from None
        save(interrupted.model, output, preprocessing=coding.to_json())
        raise KeyboardInterrupt(f"{output} holds the best model found so far") from None
    for result in _results(analysis).values():
        click.echo(printable_lines(str(result)) + "\n")
    if tables is not None:
        _write_tables(analysis, Path(tables))
    if report is not None:
        write_classes_report(analysis, report, title=f"Latent classes of {Path(table.name).name}")
        click.echo(f"{printable(report)}: written", err=True)
    if output is not None:
        save(analysis.model, output, preprocessing=coding.to_json())
        click.echo(f"{printable(output)}: written", err=True)


def _numbers(text: str) -> list[int]:
    """Return the numbers of classes to try."""
    if text == AUTO:
        return list(range(1, MOST_CLASSES + 1))
    low, dash, high = text.partition("-")
    try:
        first = int(low)
        last = int(high) if dash else first
    except ValueError:
        first, last = 0, 0
    if not 1 <= first <= last:
        raise click.UsageError(
            f"--components {text}: expected a number, a range such as 1-6, or auto"
        )
    return list(range(first, last + 1))


def _split(
    table: TableData, asked: dict[str, Any], dialect: Dialect
) -> tuple[RawCoding, dict[str, Any], list[str]]:
    """Return the items, the other columns, and messages for the user."""
    if table.frame is None:
        raise ValueError(
            f"{table.name}: latent classes need named columns; give CSV, TSV or Parquet"
        )
    problems = Problems(table.name)
    problems.found += table.problems
    covariates, outcomes = list(asked["covariates"]), list(asked["outcomes"])
    sampled = [asked[name] for name in ("strata", "clusters") if asked[name] is not None]
    for name in (*covariates, *outcomes, *sampled):
        with problems.noted():
            table.column(name)
    ordered = order_levels(table, asked["levels"], problems)
    kinds = column_kinds(asked["kinds"], [str(name) for name in table.frame.columns]) | ordered
    choice = Choice(
        key=asked["key"],
        weight=asked["weights"],
        drop=(*asked["drop"], *covariates, *outcomes, *sampled),
        keep=asked["keep"],
        dates=asked["dates"],
        date_format=asked["date_format"],
        kinds=kinds,
        empty=dialect.empty,
    )
    names, layout, told = choose_columns(table, choice, problems)
    if table.frame.columns.duplicated().any():
        problems.report()  # columns of the same name cannot be looked at
    frame = layout.frame(table, problems)
    items, left_out = items_of(frame, names, choice)
    told += [*left_out, *alphabetical(frame, items, choice)]
    if names and not items:
        problems.add("no items are left that tell rows apart; drop fewer columns")
    check_kinds(frame, items, choice, problems)
    problems.report()
    found: dict[str, Any] = {}
    if covariates:
        found["covariates"] = table.frame[covariates]
    if outcomes:
        found["outcome"] = table.frame[outcomes]
    for name in ("strata", "clusters"):
        if asked[name] is not None:
            found[name] = table.column(asked[name])
    if asked["weights"] is not None:
        found["sample_weight"] = read_weights(table, asked["weights"])
    return RawCoding(tuple(items), None, layout), found, told


def _results(analysis: Analysis) -> dict[str, Any]:
    """Return the tables, by the names of their files."""
    found = {
        "models": analysis.selection,
        "profiles": analysis.errors.profiles,
        "classification": analysis.classification,
        "covariates": analysis.effects,
        "outcomes": analysis.outcomes,
    }
    return {name: result for name, result in found.items() if result is not None}


def _write_tables(analysis: Analysis, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, result in _results(analysis).items():
        result.to_csv(folder / f"{name}.csv")
        result.to_latex(folder / f"{name}.tex")
    click.echo(f"{printable(str(folder))}: tables written", err=True)
