"""`exchangeable rasch`: items and persons of a test, with a report."""

import warnings
from pathlib import Path
from typing import Any

import click
import numpy as np

from exchangeable import RaschModel, save
from exchangeable.classes.tables import Table
from exchangeable.cli.errors import one_line
from exchangeable.cli.options import (
    busy,
    data_argument,
    dialect_options,
    drop_option,
    levels_option,
    notes,
    seed_option,
)
from exchangeable.cli.texts import examples
from exchangeable.rasch.persons import METHODS
from exchangeable.report.rasch import RaschAnalysis, Shown, write_rasch_report
from exchangeable.runtime.text import printable, printable_lines
from exchangeable.tables.delimited import Dialect
from exchangeable.tables.layout import Choice, choose_columns
from exchangeable.tables.ordering import order_levels
from exchangeable.tables.problems import Problems
from exchangeable.tables.raw import RawCoding
from exchangeable.tables.reading import TableData, read_table
from exchangeable.tables.targets import read_weights

EXAMPLES = examples(
    "rasch answers.csv --report report.html",
    "rasch answers.csv --id person --groups school --persons abilities.csv",
    "rasch answers.csv --levels 'q_*=never,rarely,often' --tables tables",
    "rasch answers.csv --components 2 --seed 0 -o items.exch",
)


@click.command(epilog=EXAMPLES)
@data_argument
@click.option(
    "--components",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Number of classes; several make a mixed Rasch model.",
)
@click.option("--report", metavar="FILE", help="Write a page with everything to FILE (.html).")
@click.option("--tables", metavar="FOLDER", help="Write the tables to FOLDER, as CSV and LaTeX.")
@click.option("--persons", metavar="FILE", help="Write the ability of every person to FILE (.csv).")
@click.option("-o", "--output", metavar="MODEL", help="Write the model to a file.")
@click.option(
    "--method",
    type=click.Choice(METHODS),
    default="wle",
    show_default=True,
    help="How abilities are estimated: weighted likelihood, posterior mean, or likelihood.",
)
@drop_option
@click.option(
    "--keep", multiple=True, metavar="PATTERN", help="Use these columns as items only; repeatable."
)
@click.option(
    "--id", "key", metavar="COLUMN", help="Column that identifies persons; it is not an item."
)
@click.option("--weights", metavar="COLUMN", help="Column with how many persons a row stands for.")
@click.option(
    "--groups",
    metavar="COLUMN",
    help="Column with groups between which items are compared; low and high scores by default.",
)
@levels_option
@click.option(
    "--n-init",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="Number of starts, where there are several classes.",
)
@seed_option
@dialect_options
@one_line
def rasch(
    data: str,
    components: int,
    report: str | None,
    tables: str | None,
    persons: str | None,
    output: str | None,
    method: str,
    n_init: int,
    seed: int | None,
    dialect: Dialect,
    **asked: Any,
) -> None:
    """Estimate the items and persons of the test in the table DATA, and report all about them.

    Every column that is not dropped is an item with the answers 0, 1 or 0, 1, 2, …, or words whose
    order --levels gives; empty cells are answers that are missing. One class is fitted by
    conditional maximum likelihood, and Andersen's test tells whether items are the same for groups
    of persons; several classes are a mixed Rasch model.
    """
    if output is not None and asked["levels"]:
        raise click.UsageError(
            "-o keeps no order of words; write answers as 0, 1, 2, …, or leave -o or --levels out"
        )
    with busy(f"reading {data}"):
        table = read_table(data, dialect)
        coding, groups, told = _split(table, asked, dialect)
        rows = _answers(table.name, coding.rows(table))
    notes(table.name, [*table.notes, *told])
    weights = None if asked["weights"] is None else read_weights(table, asked["weights"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = RaschModel(components, n_init=n_init, random_state=seed)
        model.fit(rows, sample_weight=weights)
        test = None
        if components == 1:
            test, why = _tested(model, rows, groups, weights)
        told = [] if components > 1 or test is not None else [why]
    notes(table.name, [*dict.fromkeys(str(each.message) for each in caught), *told])
    analysis = RaschAnalysis(model, len(rows), method, test)
    results = analysis.tables()
    for result in results.values():
        click.echo(printable_lines(f"{result.as_table().caption}\n{result}") + "\n")
    if tables is not None:
        folder = Path(tables)
        folder.mkdir(parents=True, exist_ok=True)
        for name, result in results.items():
            result.to_csv(folder / f"{name}.csv")
            result.to_latex(folder / f"{name}.tex")
        _written(tables)
    if persons is not None:
        _persons(model, rows, table, asked["key"], method).to_csv(persons)
        _written(persons)
    if report is not None:
        write_rasch_report(analysis, report, title=f"Rasch model of {Path(table.name).name}")
        _written(report)
    if output is not None:
        save(model, output, preprocessing=coding.to_json())
        _written(output)


def _tested(model: RaschModel, rows: Any, groups: Any, weights: Any) -> tuple[Any, str]:
    """Return Andersen's test, or why there is none; groups that were given must have one."""
    try:
        return model.andersen(rows, "median" if groups is None else groups, weights), ""
    except ValueError as error:
        if groups is not None:
            raise
        return None, f"no test of low against high scores: {error}"


def _split(
    table: TableData, asked: dict[str, Any], dialect: Dialect
) -> tuple[RawCoding, Any, list[str]]:
    """Return the items, the groups if there are any, and messages for the user."""
    if table.frame is None:
        raise ValueError(f"{table.name}: items need names; give CSV, TSV or Parquet")
    problems = Problems(table.name)
    problems.found += table.problems
    groups = None
    if asked["groups"] is not None:
        with problems.noted():
            groups = table.column(asked["groups"])
    choice = Choice(
        key=asked["key"],
        weight=asked["weights"],
        drop=(*asked["drop"], *(() if groups is None else (asked["groups"],))),
        keep=asked["keep"],
        kinds=order_levels(table, asked["levels"], problems),
        empty=dialect.empty,
    )
    items, layout, told = choose_columns(table, choice, problems)
    problems.report()
    if groups is not None:
        groups = np.asarray(groups).astype(str)
    return RawCoding(tuple(items), None, layout), groups, told


def _answers(name: str, rows: Any) -> Any:
    """Return answers as numbers; a single error lists all columns that contain anything else."""
    problems = Problems(name)
    for item in rows.columns:
        if hasattr(rows[item], "cat"):
            codes = rows[item].cat.codes.to_numpy(dtype=np.float64)
            rows[item] = np.where(codes < 0, np.nan, codes)
        with problems.noted():
            for value in rows[item].dropna().unique():
                try:
                    float(value)
                except (TypeError, ValueError):
                    raise ValueError(
                        f"column {item!r} holds {value!r}; answers are 0, 1, 2, …: leave it out by "
                        f"--drop {item!r}, or say by --levels '{item}=LOWEST,…,HIGHEST' what its "
                        "words mean"
                    ) from None
    problems.report()
    return rows


def _persons(model: RaschModel, rows: Any, table: TableData, key: str | None, method: str) -> Shown:
    """Return the ability of every person, labelled by the id column."""
    found = model.abilities(rows, method=method)
    names = range(1, len(rows) + 1) if key is None else np.asarray(table.column(key)).tolist()
    columns: dict[str, Any] = {
        key or "person": list(names),
        "score": found.scores.tolist(),
        "ability": found.estimate.tolist(),
        "standard error": found.standard_error.tolist(),
    }
    if model.weights_.size > 1:
        posterior = model.predict_proba(rows)
        columns["class"] = posterior.argmax(axis=1).tolist()
        columns["probability"] = posterior.max(axis=1).tolist()
    return Shown(Table(columns))


def _written(path: str) -> None:
    click.echo(f"{printable(path)}: written", err=True)
