"""`exchangeable rasch`: items and persons of a test, from a table."""

from pathlib import Path
from typing import Any

import click
import numpy as np

from exchangeable import RaschModel
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
from exchangeable.runtime.text import printable, printable_lines
from exchangeable.tables.delimited import Dialect
from exchangeable.tables.layout import Choice, choose_columns
from exchangeable.tables.ordering import order_levels
from exchangeable.tables.problems import Problems
from exchangeable.tables.reading import TableData, listed, read_table
from exchangeable.tables.targets import read_weights
from exchangeable.tables.writing import write_table

EXAMPLES = examples(
    "rasch test.csv --id person --persons abilities.csv",
    "rasch test.csv --levels 'q_*=never,rarely,often' --tables tables",
    "rasch test.csv --components 2 --keep 'item_*'",
)


@click.command(epilog=EXAMPLES)
@data_argument
@click.option(
    "--components",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Number of classes: with several it is a mixed Rasch model.",
)
@drop_option
@click.option(
    "--keep", multiple=True, metavar="PATTERN", help="Use these columns as items only; repeatable."
)
@click.option(
    "--id", "key", metavar="COLUMN", help="Column that identifies persons; it is not an item."
)
@click.option("--weights", metavar="COLUMN", help="Column that says how much each person counts.")
@levels_option
@click.option(
    "--method",
    type=click.Choice(["wle", "eap", "ml"]),
    default="wle",
    show_default=True,
    help="How abilities are estimated: weighted likelihood, posterior mean, maximum likelihood.",
)
@click.option("--persons", metavar="FILE", help="Write the ability of every person to FILE (.csv).")
@click.option("--tables", metavar="FOLDER", help="Write the tables to FOLDER, as CSV.")
@click.option(
    "--n-init",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="Number of starts of EM, with several classes.",
)
@seed_option
@dialect_options
@one_line
def rasch(
    data: str,
    components: int,
    method: str,
    persons: str | None,
    tables: str | None,
    n_init: int,
    seed: int | None,
    dialect: Dialect,
    **asked: Any,
) -> None:
    """Fit the Rasch model, or the partial credit model, to the items in the table DATA.

    Answers are 0, 1, 2, …, or words whose order --levels gives; empty cells are answers that are
    missing. Printed are the items with standard errors, abilities by score and, for one class,
    Andersen's test of persons with low against those with high scores.
    """
    with busy(f"reading {data}"):
        table = read_table(data, dialect)
        rows, weights, told = _items(table, asked, dialect)
    notes(table.name, [*table.notes, *told])
    model = RaschModel(components, n_init=n_init, random_state=seed)
    with busy("fitting"):
        model.fit(rows, sample_weight=weights)
    found: dict[str, Any] = {"items": model.item_parameters_}
    for y in range(components):
        name = "abilities" if components == 1 else f"abilities of class {y}"
        found[name] = model.abilities(method=method, component=y)
    if components == 1:
        click.echo(printable_lines(f"{model.item_parameters_}\n\n{found['abilities']}\n"))
        click.echo(printable_lines(_andersen(model, rows, weights)))
    else:
        shown = ", ".join(f"class {y}: {share:.1%}" for y, share in enumerate(model.weights_))
        click.echo(printable_lines(f"{model.item_parameters_}\n\n{shown}\n"))
        found["differences"] = model.differences(0, 1)
        click.echo(printable_lines(str(found["differences"])))
    if tables is not None:
        _write_tables(found, Path(tables))
    if persons is not None:
        _write_persons(model, rows, table, asked["key"], method, persons)


def _items(table: TableData, asked: dict[str, Any], dialect: Dialect) -> tuple[Any, Any, list[str]]:
    """Return the answers as numbers, the weights of persons, and what a user should know."""
    if table.frame is None:
        raise ValueError(f"{table.name}: items need named columns; give CSV, TSV or Parquet")
    problems = Problems(table.name)
    problems.found += table.problems
    choice = Choice(
        key=asked["key"],
        weight=asked["weights"],
        drop=asked["drop"],
        keep=asked["keep"],
        kinds=order_levels(table, asked["levels"], problems),
        empty=dialect.empty,
    )
    names, layout, told = choose_columns(table, choice, problems)
    weights = None
    if asked["weights"] is not None:
        with problems.noted():
            weights = read_weights(table, asked["weights"])
    dates = [date.name for date in layout.dates]
    if dates:
        problems.add(f"{listed(dates)} hold dates, which are no answers: leave them out by --drop")
    if table.frame.columns.duplicated().any():
        problems.report()  # columns of the same name cannot be looked at
    rows = table.frame[[name for name in names if name in table.frame.columns]].copy()
    for name in rows.columns:
        if hasattr(rows[name], "cat"):
            codes = rows[name].cat.codes.to_numpy(dtype=np.float64)
            rows[name] = np.where(codes < 0, np.nan, codes)
        elif rows[name].dtype.kind not in "biuf":
            word = next(iter(rows[name].dropna()))
            problems.add(
                f"column {name!r} holds {word!r}; answers are 0, 1, 2, …: leave it out by --drop "
                f"{name!r}, or say by --levels '{name}=LOWEST,…,HIGHEST' what its words mean"
            )
    problems.report()
    return rows.astype(np.float64), weights, told


def _andersen(model: RaschModel, rows: Any, weights: Any) -> str:
    """Return the test of low against high scores, or why there is none."""
    try:
        return str(model.andersen(rows, sample_weight=weights))
    except ValueError as error:
        return f"There is no Andersen's test: {error}"


def _write_tables(found: dict[str, Any], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, result in found.items():
        frame = result.to_frame()
        columns = {str(column): frame[column].to_numpy() for column in frame.columns}
        write_table(columns, str(folder / f"{name}.csv"), False)
    click.echo(f"{printable(str(folder))}: tables written", err=True)


def _write_persons(
    model: RaschModel, rows: Any, table: TableData, key: str | None, method: str, path: str
) -> None:
    """Write the score, ability and standard error of every person, and the class if there are."""
    found = model.abilities(rows, method=method)
    columns: dict[str, Any] = {} if key is None else {key: np.asarray(table.column(key))}
    if model.weights_.size > 1:
        columns["class"] = model.predict(rows)
    columns |= {
        "score": found.scores,
        "ability": found.estimate,
        "standard_error": found.standard_error,
    }
    write_table(columns, path, False)
    click.echo(f"{printable(path)}: written", err=True)
