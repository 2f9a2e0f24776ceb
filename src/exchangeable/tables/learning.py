"""The coding of a table, decided when the model is fitted, with all problems at once."""

from typing import Any

from exchangeable.data.columns.column import KINDS
from exchangeable.data.columns.column import MOST_LEVELS as MOST_CATEGORIES
from exchangeable.data.columns.kinds import decide
from exchangeable.tables.coding import MOST_LEVELS, Coding, Column, learn_column
from exchangeable.tables.layout import Choice, choose_columns
from exchangeable.tables.ordering import alphabetical
from exchangeable.tables.problems import Problems
from exchangeable.tables.raw import RawCoding
from exchangeable.tables.reading import TableData, import_pandas, listed

MOST_YEARS = 24
"""Maximum number of years, or hours, as levels; more years are measurements."""
MANY = 20
"""With this many rows, a column with a different text in each row is no accident."""
MOSTLY = 0.8
"""If at least this share of cells are numbers, the others are taken for mistakes."""


def learn_coding(
    table: TableData, choice: Choice, binarize: str, any_kind: bool, problems: Problems
) -> tuple[Coding | RawCoding, list[str]]:
    """Return the coding of a table's columns, and messages for the user.

    Parameters
    ----------
    table : TableData
        The table to fit.
    choice : Choice
        Which columns to use, and their kinds.
    binarize : {"never", "auto"}
        Whether to code columns that are not binary.
    any_kind : bool
        Whether the model supports such columns directly.
    problems : Problems
        Collects problems.
    """
    problems.found += table.problems
    names, layout, notes = choose_columns(table, choice, problems)
    if table.frame.columns.duplicated().any():
        problems.report()  # columns of the same name cannot be looked at
    frame = layout.frame(table, problems)
    for name in choice.kinds:
        if name not in names:
            problems.add(f"--kind names {name!r}, which is not a column that is used")
    columns = list[Column]()
    for name in names:
        with problems.noted():
            columns.append(learn_column(name, frame[name]))
    other = [column for column in columns if column.kind != "binary"]
    notes += [*_keys(frame, other, choice), *alphabetical(frame, names, choice)]
    if binarize != "auto" and any_kind and (other or choice.kinds):
        check_kinds(frame, names, choice, problems)
        return RawCoding(tuple(names), choice.target, layout), notes
    if other and binarize != "auto":
        shown = ", ".join(f"{c.name!r} ({_kind_of(c)})" for c in other[:12])
        more = f" and {len(other) - 12} more" if len(other) > 12 else ""
        problems.add(
            f"{len(other)} of {len(columns)} columns are not binary: {shown}{more}; code them with "
            "--binarize auto, or leave them out with --drop COLUMN"
        )
    for column in other if binarize == "auto" else []:
        if len(column.levels) > MOST_LEVELS:
            problems.add(
                f"column {column.name!r} has {len(column.levels):,} categories; the limit is "
                f"{MOST_LEVELS}: leave it out with --drop {column.name!r}"
            )
        elif column.kind == "category":
            with problems.noted():
                _check_mistakes(frame[column.name], column.name)
    coding = Coding(tuple(columns), choice.target, layout)
    if not problems.found and len(set(coding.variables)) < len(coding.variables):
        problems.add("two variables get the same name after coding; rename a column")
    return coding, notes


def usual_kinds(rows: Any, coding: RawCoding) -> dict[str, str]:
    """Return kinds that cannot be inferred from values, unless they were given by the user.

    A number of which there is only one value is a category; years, if there are few, and hours are
    ordered levels, so that no values in between are drawn.

    Parameters
    ----------
    rows : DataFrame
        The columns that are fitted.
    coding : RawCoding
        Their original columns.
    """
    kinds = {}
    timed = {name for date in coding.layout.dates for name in date.variables}
    for name in coding.columns:
        if rows[name].dtype.kind not in "iuf":
            continue
        known = rows[name].dropna()
        if known.nunique() == 1 and known.iloc[0] not in (0, 1):
            kinds[name] = "nominal"
        elif name in timed and known.nunique() <= MOST_YEARS:
            kinds[name] = "ordinal"
    return kinds


def check_kinds(frame: Any, names: list[str], choice: Choice, problems: Problems) -> None:
    """Note columns that cannot have their kind, or seem to be something else."""
    for name in names:
        told = choice.kinds.get(name)
        if told is not None and told not in KINDS:
            continue
        with problems.noted():
            if told is None:
                _check_mistakes(frame[name], name)
            levels = frame[name].nunique() if frame[name].dtype.kind in "OUT" else 0
            if told is None and levels > MOST_CATEGORIES:
                raise ValueError(
                    f"column {name!r} has {levels:,} different texts; the limit is "
                    f"{MOST_CATEGORIES:,}: leave it out with --drop {name!r}, or name it by --id "
                    "if it is a key, or --text if it holds documents"
                )
            decide(frame[[name]], None if told is None else {name: told})


def _check_mistakes(column: Any, name: str) -> None:
    """Reject text that is mostly numbers: a few words turn the column into categories."""
    if column.dtype.kind not in "OUT":
        return
    known = column.dropna()
    numbers = import_pandas("reading a table").to_numeric(known, errors="coerce").notna()
    share = float(numbers.mean()) if len(known) else 0.0
    if not MOSTLY <= share < 1:
        return
    words = known[~numbers]
    row = column.index.get_loc(words.index[0]) + 1
    raise ValueError(
        f"column {name!r} holds numbers, except for {len(words):,} cells such as "
        f"{words.iloc[0]!r} in row {row}; correct them, or say --empty {str(words.iloc[0])!r} if "
        f"that means unknown, --kind '{name}=nominal' if all are categories, or --drop {name!r}"
    )


def items_of(frame: Any, names: list[str], choice: Choice) -> tuple[list[str], list[str]]:
    """Return the columns that can distinguish classes of rows, and messages about the others.

    Constant columns cannot, nor columns that have a different text in every row or number the rows;
    columns whose kind was given by the user are kept.
    """
    why = dict[str, list[str]]()
    for name in names:
        if name in choice.kinds:
            continue
        if frame[name].nunique() < 2:
            why.setdefault("constant", []).append(name)
        elif _has_other_texts(frame[name]):
            why.setdefault("another text in every row", []).append(name)
        elif _numbers_rows(frame[name]):
            why.setdefault("numbers of rows", []).append(name)
    out = {name for found in why.values() for name in found}
    notes = [
        f"left out as {reason}: {listed(found)} (--kind 'COLUMN=KIND' takes a column in)"
        for reason, found in why.items()
    ]
    return [name for name in names if name not in out], notes


def _has_other_texts(column: Any) -> bool:
    """Whether no two rows have the same text."""
    known = column.dropna()
    return column.dtype.kind in "OUT" and len(known) > MANY and bool(known.is_unique)


def _numbers_rows(column: Any) -> bool:
    """Whether whole numbers increase from every row to the next."""
    whole = column.dtype.kind in "iu" and len(column) > MANY
    return whole and bool(column.is_unique and column.is_monotonic_increasing)


def _keys(frame: Any, columns: list[Column], choice: Choice) -> list[str]:
    """Return a note about columns that seem to name or number the rows."""
    told = []
    for name in (column.name for column in columns if column.name not in choice.kinds):
        texts, numbers = _has_other_texts(frame[name]), _numbers_rows(frame[name])
        if texts or numbers:
            what = "another text in every row" if texts else "numbers that rise from row to row"
            told.append(f"{name!r} has {what}; if it is a key, give it by --id {name!r}")
    return told


def _kind_of(column: Column) -> str:
    if column.kind == "number":
        return "numbers"
    return f"{len(column.levels)} {'category' if len(column.levels) == 1 else 'categories'}"
