"""Options, arguments and messages that several commands share."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from exchangeable.data.columns.column import KINDS
from exchangeable.persistence import SavedModel, read_model
from exchangeable.runtime.text import printable
from exchangeable.tables.coding import Coding
from exchangeable.tables.delimited import Dialect
from exchangeable.tables.layout import DATES
from exchangeable.tables.problems import Problems
from exchangeable.tables.raw import RawCoding, known_levels, unseen_values
from exchangeable.tables.reading import FORMATS, TableData, read_table
from exchangeable.tables.words import AnyCoding, SparseCoding, coding_from_json

debug_option = click.option(
    "--debug", is_flag=True, help="Show the full traceback if something goes wrong."
)
drop_option = click.option(
    "--drop",
    multiple=True,
    metavar="PATTERN",
    help="Columns to leave out, by name or pattern such as 'date_*'; repeatable.",
)
kind_option = click.option(
    "--kind",
    "kinds",
    multiple=True,
    metavar="COLUMN=KIND",
    help=f"What a column is: {', '.join(KINDS)}; repeatable. By default its values decide.",
)
DIALECT: Sequence[Callable[..., Any]] = (
    click.option(
        "--format",
        "form",
        type=click.Choice(FORMATS),
        help="Format of DATA; by default the file's ending decides, and '-' is CSV.",
    ),
    click.option(
        "--sep",
        metavar="CHARACTER",
        help="What separates cells, such as ';' or tab; guessed by default.",
    ),
    click.option(
        "--encoding",
        metavar="NAME",
        help="Such as latin-1; by default UTF-8, or what a byte order mark says, or Windows-1252.",
    ),
    click.option(
        "--decimal",
        type=click.Choice([".", ","]),
        help="Decimal point or comma; guessed by default.",
    ),
    click.option(
        "--empty",
        multiple=True,
        metavar="TEXT",
        help="Text that means 'not known', besides empty cells, NA and the like; repeatable.",
    ),
)


def dialect_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that describe a table's format, as one argument `dialect`."""

    @functools.wraps(command)
    def wrapped(
        *arguments: Any,
        form: str | None,
        sep: str | None,
        encoding: str | None,
        decimal: str | None,
        empty: tuple[str, ...],
        **options: Any,
    ) -> Any:
        dialect = Dialect(form, sep, encoding, decimal, empty)
        return command(*arguments, dialect=dialect, **options)

    for option in reversed(DIALECT):
        wrapped = option(wrapped)
    return wrapped


output_option = click.option(
    "-o",
    "--output",
    default="-",
    metavar="FILE",
    help="Write to FILE (.csv, .tsv or .parquet) instead of standard output.",
)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Write JSON, one object per line."
)
seed_option = click.option("--seed", type=click.IntRange(0), help="Seed of the random draws.")
given_option = click.option(
    "--given",
    multiple=True,
    metavar="'NAME=VALUE,…'",
    help="What is known, such as 'a=1,b=0'; repeatable.",
)
dates_option = click.option(
    "--dates",
    type=click.Choice(DATES),
    default=DATES[0],
    show_default=True,
    help="Split dates into year, month, weekday and hour, as far as these vary, or drop them.",
)
date_format_option = click.option(
    "--date-format", metavar="FORMAT", help="How dates are written, such as '%m/%d/%Y'."
)
levels_option = click.option(
    "--levels",
    multiple=True,
    metavar="COLUMN=LOWEST,…,HIGHEST",
    help="The levels of an ordinal column in their order, by name or pattern; repeatable.",
)
id_option = click.option(
    "--id", "key", metavar="COLUMN", help="Column that identifies rows, which is copied."
)
model_argument = click.argument("model_path", metavar="MODEL")
data_argument = click.argument("data", metavar="DATA")


def busy(what: str) -> Any:
    """Return a context that shows, on an interactive terminal, what is being done."""
    return Console(stderr=True).status(shown(what))


def shown(value: Any) -> Text:
    """Return text for printing with rich: no markup, control characters escaped."""
    return Text(printable(str(value)))


def open_model(path: str, *needed: str) -> tuple[SavedModel, AnyCoding]:
    """Return a model, which must have one of the methods needed, and how tables become its rows."""
    saved = read_model(path)
    asked = (saved.model, getattr(saved.model, "model_", None))
    if needed and not any(hasattr(model, name) for model in asked for name in needed):
        raise ValueError(
            f"{path} is a {type(saved.model).__name__}, which has no answer to this; 'exchangeable "
            "info' shows what it is"
        )
    if not hasattr(saved.model, "n_features_in_") or hasattr(saved.model, "steps"):
        raise ValueError(
            f"{path} holds a {type(saved.model).__name__}, which takes what its first step takes, "
            "not tables; read it with exchangeable.load"
        )
    coding = coding_from_json(saved.preprocessing)
    if coding is None:
        names = getattr(saved.model, "feature_names_in_", None)
        if names is None:
            return saved, SparseCoding(int(saved.model.n_features_in_))
        columns = [{"name": str(name), "kind": "binary"} for name in names]
        coding = coding_from_json({"kind": "columns", "columns": columns})
        assert coding is not None
    if coding.n_variables != saved.model.n_features_in_:
        raise ValueError(
            f"{path}: the file names {coding.n_variables:,} variables, but its model has "
            f"{saved.model.n_features_in_}; the file is damaged, fit the model again"
        )
    return saved, coding


def notes(name: str, told: Sequence[str]) -> None:
    """Print messages about a table or a model, one per line."""
    for text in told:
        click.echo(f"Note: {printable(f'{name}: {text}')}", err=True)


def open_rows(
    data: str, dialect: Dialect, coding: AnyCoding, model: Any = None
) -> tuple[TableData, Any]:
    """Return a table, and its rows as the model reads them."""
    with busy(f"reading {data}"):
        dialect = dialect._replace(empty=(*coding.layout.empty, *dialect.empty))
        table = read_table(data, dialect)
        unseen: dict[str, list[Any]] = {}
        if isinstance(coding, RawCoding):
            problems = Problems(table.name)
            rows = coding.rows(table, problems)
            unseen = unseen_values(rows, model, problems)
            problems.report()
        else:
            rows = coding.rows(table)
            unseen = coding.unseen(table) if isinstance(coding, Coding) else {}
    notes(table.name, table.notes)
    if unseen:
        number = sum(map(len, unseen.values()))
        listed = ", ".join(f"{name}={cells[0]}" for name, cells in list(unseen.items())[:5])
        click.echo(
            f"Warning: {number:,} {'cell holds' if number == 1 else 'cells hold'} categories that "
            f"the model has not seen, such as {printable(listed)}; they are treated as unknown",
            err=True,
        )
    return table, rows


def evidence_of(given: tuple[str, ...], coding: AnyCoding, model: Any) -> dict[int, Any]:
    """Return the values set by ``--given``, by the numbers of the variables."""
    levels = known_levels(model)
    number = {name: j for j, name in enumerate(coding.variables)}
    known: dict[int, Any] = {}
    for text in given:
        whole = text.rpartition("=")[0].strip()
        parts = [text] if whole in number else [part for part in text.split(",") if part.strip()]
        for part in parts:
            for j, value in _assignment(part, number, coding, levels).items():
                if known.setdefault(j, value) != value:
                    raise ValueError(
                        f"--given sets {coding.variables[j]!r} to both {known[j]} and {value}; "
                        "give one value"
                    )
    return known


def _assignment(
    part: str, number: dict[str, int], coding: AnyCoding, levels: dict[Any, tuple[Any, ...]]
) -> dict[int, Any]:
    name, equals, value = (piece.strip() for piece in part.rpartition("="))
    if not equals or not name:
        raise ValueError(f"--given {part.strip()!r}: expected NAME=VALUE, such as a=1")
    if isinstance(coding, RawCoding):
        coded = coding.evidence(name, value, levels.get(name, ()))
    elif isinstance(coding, Coding):
        coded = coding.evidence(name, value)
    else:
        coded = None
    if coded is not None:
        return {number[variable]: on for variable, on in coded.items()}
    if name in number and value in ("0", "1"):
        return {number[name]: int(value)}
    if name in number:
        raise ValueError(f"--given {part.strip()!r}: {name!r} must be 0 or 1, got {value!r}")
    if name == coding.target:
        raise ValueError(
            f"--given {part.strip()!r}: {name!r} is what the model predicts; where it is known, "
            f"'exchangeable query' takes it as --class {value}"
        )
    close = [known for known in number if name.lower() in known.lower()][:8]
    hint = f"; did you mean {', '.join(close)}?" if close else ""
    raise ValueError(f"--given {part.strip()!r}: the model has no variable {name!r}{hint}")
