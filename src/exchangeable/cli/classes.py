"""`exchangeable classes`: a latent class analysis of a table, with a report."""

from pathlib import Path
from typing import Any

import click
import numpy as np

from exchangeable import ExchangeableMixture, save
from exchangeable.classes.analysis import Analysis, analyse
from exchangeable.classes.selection import CRITERIA
from exchangeable.cli.errors import one_line
from exchangeable.cli.fit import column_kinds
from exchangeable.cli.options import busy, data_argument, format_option, seed_option
from exchangeable.cli.texts import examples
from exchangeable.data.schema import KINDS
from exchangeable.report.classes import write_classes_report
from exchangeable.runtime.text import printable, printable_lines
from exchangeable.tables.raw import RawCoding
from exchangeable.tables.reading import TableData, read_table

AUTO = "auto"
MOST_CLASSES = 8
EXAMPLES = examples(
    "classes survey.csv --components auto --report report.html",
    "classes survey.csv --components 1-5 --weight w --drop id --report report.html",
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
@click.option("--drop", multiple=True, metavar="COLUMN", help="Column to leave out; repeatable.")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    metavar="COLUMN=KIND",
    help=f"What a column is: {', '.join(KINDS)}; repeatable. By default its values decide.",
)
@click.option("--weight", metavar="COLUMN", help="Column with the weight of each row.")
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
@format_option
@one_line
def classes(
    data: str,
    components: str,
    report: str | None,
    tables: str | None,
    output: str | None,
    drop: tuple[str, ...],
    kinds: tuple[str, ...],
    weight: str | None,
    covariates: tuple[str, ...],
    outcomes: tuple[str, ...],
    criterion: str,
    bootstrap: int,
    draws: int,
    n_init: int,
    seed: int | None,
    form: str | None,
) -> None:
    """Find latent classes in the table DATA, and report all about them.

    Columns that are not weights, covariates, outcomes or dropped are the items; they may be of any
    kind, and empty cells are unknown. Numbers of classes are compared, and the chosen model is
    described by class sizes and item profiles with bootstrap standard errors, a classification
    table, covariates of class membership (three steps, maximum likelihood) and distal outcomes
    (three steps, Bolck, Croon and Hagenaars).
    """
    tried = _numbers(components)
    if criterion == "blrt" and not bootstrap:
        raise click.UsageError("--criterion blrt needs --bootstrap, such as --bootstrap 100")
    with busy(f"reading {data}"):
        table = read_table(data, form)
    items, columns = _split(table, drop, weight, covariates, outcomes)
    coding = RawCoding(tuple(items))
    analysis = analyse(
        ExchangeableMixture,
        coding.rows(table),
        n_components=tried,
        criterion=criterion,
        bootstrap=bootstrap,
        n_draws=draws,
        blocks="independent",
        kinds=column_kinds(kinds),
        n_init=n_init,
        random_state=seed,
        **columns,
    )
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
    table: TableData,
    drop: tuple[str, ...],
    weight: str | None,
    covariates: tuple[str, ...],
    outcomes: tuple[str, ...],
) -> tuple[list[str], dict[str, Any]]:
    """Return the items, and the columns that are something else."""
    if table.frame is None:
        raise ValueError(
            f"{table.name}: latent classes need named columns; give CSV, TSV or Parquet"
        )
    others = [*drop, *covariates, *outcomes, *([] if weight is None else [weight])]
    for name in others:
        table.column(name)
    items = [name for name in table.frame.columns if name not in others]
    if not items:
        raise ValueError(f"{table.name}: no columns are left to be items")
    found: dict[str, Any] = {}
    if covariates:
        found["covariates"] = table.frame[list(covariates)]
    if outcomes:
        found["outcome"] = table.frame[list(outcomes)]
    if weight is not None:
        numbers = np.asarray(table.frame[weight], dtype=np.float64)
        if not np.isfinite(numbers).all():
            raise ValueError(f"{table.name}: column {weight!r} has empty cells; weights need none")
        found["sample_weight"] = numbers
    return items, found


def _results(analysis: Analysis) -> dict[str, Any]:
    """Return the tables by what their files are called."""
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
