"""The order of levels that are text: as given by the user, or alphabetical, which is reported."""

from collections.abc import Mapping, Sequence
from typing import Any

from exchangeable.tables.layout import Choice, matching
from exchangeable.tables.problems import Problems
from exchangeable.tables.reading import TableData, import_pandas, listed

ORDINAL = "ordinal"


def order_levels(table: TableData, texts: Sequence[str], problems: Problems) -> dict[str, str]:
    """Give columns ordered levels; return their kind, ordinal, by name.

    Parameters
    ----------
    table : TableData
        The table, whose columns become ordered categories.
    texts : sequence of str
        Columns with their levels, such as ``q_*=never,rarely,often``.
    problems : Problems
        Collects problems.

    Examples
    --------
    >>> import pandas as pd
    >>> table = TableData("t.csv", pd.DataFrame({"q": ["often", None, "never"]}))
    >>> order_levels(table, ["q=never,rarely,often"], Problems("t.csv"))
    {'q': 'ordinal'}
    >>> table.frame["q"].cat.codes.tolist()
    [2, -1, 0]
    """
    if not texts:
        return {}
    pandas = import_pandas("reading a table")
    names = [str(name) for name in table.frame.columns]
    told = dict[str, str]()
    for text in texts:
        pattern, equals, listing = text.partition("=")
        levels = [level.strip() for level in listing.split(",")]
        if not equals or len(levels) < 2 or len(set(levels)) < len(levels):
            raise ValueError(
                f"--levels {text!r}: expected COLUMN=LOWEST,…,HIGHEST, each level once"
            )
        found = matching(pattern, names)
        if not found:
            problems.add(f"--levels names {pattern!r}, which is not a column")
        for name in found:
            values = table.frame[name]
            cells = values.dropna().astype(str)
            others = [cell for cell in dict.fromkeys(cells) if cell not in levels]
            if others:
                problems.add(f"column {name!r} holds {listed(others)}, which --levels leaves out")
                continue
            table.frame[name] = pandas.Categorical(
                cells.reindex(values.index), levels, ordered=True
            )
            told[name] = ORDINAL
    return told


def alphabetical(frame: Any, names: Sequence[str], choice: Choice) -> list[str]:
    """Return a note about ordinal columns of text without a given order."""
    found: Mapping[str, list[str]] = {
        name: sorted(map(str, frame[name].dropna().unique()))
        for name in names
        if choice.kinds.get(name) == ORDINAL and frame[name].dtype.kind in "OUT"
        if not hasattr(frame[name], "cat")
    }
    if not found:
        return []
    first = next(iter(found))
    return [
        f"levels are in the order of the alphabet in {listed(list(found))}: in {first!r} "
        f"{' < '.join(found[first][:10])} (--levels {first + '=…'!r} says otherwise)"
    ]
