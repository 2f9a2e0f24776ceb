"""What the commands that read tables and models have in common."""

from collections.abc import Callable
from typing import Any

import click
from rich.console import Console

from exchangeable.persistence import SavedModel, read_model
from exchangeable.tables.reading import FORMATS, TableData, read_table
from exchangeable.tables.words import AnyCoding, SparseCoding, coding_from_json

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

debug_option = click.option(
    "--debug", is_flag=True, help="Show the whole traceback if something goes wrong."
)
format_option = click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="Format of DATA; by default its ending says it, and '-' is CSV.",
)
output_option = click.option(
    "-o",
    "--output",
    default="-",
    metavar="FILE",
    help="Write to FILE (.csv, .tsv or .parquet) instead of standard output.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Write JSON lines.")
seed_option = click.option("--seed", type=click.IntRange(0), help="Seed of the random draws.")
given_option = click.option(
    "--given",
    multiple=True,
    metavar="'NAME=VALUE,…'",
    help="What is known, such as 'a=1,b=0'. May be given several times.",
)
model_argument = click.argument("model_path", metavar="MODEL")
data_argument = click.argument("data", metavar="DATA")


def examples(*lines: str) -> str:
    """Return the end of a help text: example commands, kept line by line."""
    return "\n".join(["\b", "Examples:", *(f"  exchangeable {line}" for line in lines)])


def busy(what: str) -> Any:
    """Return a context that tells, on an interactive terminal, what is being done."""
    return Console(stderr=True).status(what)


def open_model(path: str) -> tuple[SavedModel, AnyCoding]:
    """Return a model and how tables become its rows."""
    saved = read_model(path)
    coding = coding_from_json(saved.preprocessing)
    if coding is None:
        names = getattr(saved.model, "feature_names_in_", None)
        if names is None:
            return saved, SparseCoding(int(saved.model.n_features_in_))
        columns = [{"name": str(name), "kind": "binary"} for name in names]
        coding = coding_from_json({"kind": "columns", "columns": columns})
        assert coding is not None
    if len(coding.variables) != saved.model.n_features_in_:
        raise ValueError(
            f"{path}: {len(coding.variables)} variables are named, but the model has "
            f"{saved.model.n_features_in_}"
        )
    return saved, coding


def open_rows(data: str, form: str | None, coding: AnyCoding) -> tuple[TableData, Any]:
    """Return a table, and its rows as the model reads them."""
    with busy(f"reading {data}"):
        table = read_table(data, form)
        rows = coding.rows(table)
    unseen = coding.n_unseen(table)
    if unseen:
        click.echo(
            f"Warning: {unseen} cells hold categories that the model has not seen; they count as "
            "not known",
            err=True,
        )
    return table, rows


def evidence_of(given: tuple[str, ...], coding: AnyCoding) -> dict[int, int]:
    """Return what ``--given`` says, by the numbers of the variables."""
    place = {name: j for j, name in enumerate(coding.variables)}
    known: dict[int, int] = {}
    for text in given:
        whole = text.rpartition("=")[0].strip()
        parts = [text] if whole in place else [part for part in text.split(",") if part.strip()]
        for part in parts:
            for j, value in _assignment(part, place, coding).items():
                if known.setdefault(j, value) != value:
                    raise ValueError(f"--given says both 0 and 1 for {coding.variables[j]!r}")
    return known


def _assignment(part: str, place: dict[str, int], coding: AnyCoding) -> dict[int, int]:
    name, equals, value = (piece.strip() for piece in part.rpartition("="))
    if not equals or not name:
        raise ValueError(f"--given {part.strip()!r}: expected NAME=VALUE, such as a=1")
    if name in place and value in ("0", "1"):
        return {place[name]: int(value)}
    coded = coding.evidence(name, value)
    if coded is not None:
        return {place[variable]: on for variable, on in coded.items()}
    if name in place:
        raise ValueError(f"--given {part.strip()!r}: {name!r} is 0 or 1")
    close = [known for known in place if name.lower() in known.lower()][:8]
    hint = f"; did you mean {', '.join(close)}?" if close else ""
    raise ValueError(f"--given {part.strip()!r}: the model has no variable {name!r}{hint}")
