"""Columns of any kind that a model uses directly."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from exchangeable.data.columns.raw import raw_columns
from exchangeable.estimators.kinds import schema_of
from exchangeable.tables.layout import Layout
from exchangeable.tables.problems import Problems
from exchangeable.tables.reading import TableData, listed

TRUTH = {"true": True, "false": False}


@dataclass(frozen=True)
class RawCoding:
    """The columns that a model uses, by name, and the column it predicts, if any."""

    columns: tuple[str, ...]
    target: str | None = None
    layout: Layout = field(default_factory=Layout)

    @property
    def n_variables(self) -> int:
        """Number of columns."""
        return len(self.columns)

    @property
    def variables(self) -> list[str]:
        """The names of the columns."""
        return list(self.columns)

    def rows(self, table: TableData, problems: Problems | None = None) -> Any:
        """Return the columns as a frame; problems are raised, or noted if a collector is given.

        Parameters
        ----------
        table : TableData
            The table.
        problems : Problems, optional
            Collects problems. Columns that the table lacks are then empty.
        """
        own = Problems(table.name) if problems is None else problems
        own.found += table.problems
        frame = self.layout.frame(table, own)
        own.found += missing_columns(frame, self.columns, self.layout)
        if problems is None or frame.columns.duplicated().any():
            own.report()
        return frame.reindex(columns=list(self.columns))

    def evidence(
        self, name: str, value: str, levels: tuple[Any, ...] = ()
    ) -> dict[str, Any] | None:
        """Return the value that a text means for a column: a level, a number, or the text.

        Parameters
        ----------
        name : str
            The column.
        value : str
            The text.
        levels : tuple, optional
            The possible values, if they are known.
        """
        if name not in self.columns:
            return None
        by_word = {str(level).lower(): level for level in levels}
        by_word |= {str(level): level for level in levels}
        for word in (value, value.lower()):
            if word in by_word:
                return {name: by_word[word]}
        if levels:
            raise ValueError(
                f"--given {name}={value}: {value!r} is not one of its levels {listed(levels)}"
            )
        if value.lower() in TRUTH:
            return {name: TRUTH[value.lower()]}
        for kind in (int, float):
            try:
                return {name: kind(value)}
            except ValueError:
                continue
        return {name: value}

    def to_json(self) -> dict[str, Any]:
        """Return the coding as JSON values."""
        told = {"kind": "raw", "columns": list(self.columns), "target": self.target}
        return told | self.layout.to_json()

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "RawCoding":
        """Return the coding that `to_json` wrote, after checking it."""
        columns = value["columns"]
        if not all(isinstance(name, str) for name in columns) or len(set(columns)) < len(columns):
            raise ValueError("the columns have repeated names, or names that are not text")
        return cls(tuple(columns), value.get("target"), Layout.from_json(value))


def missing_columns(frame: Any, names: Iterable[str], layout: Layout) -> list[str]:
    """Return the columns of a model that a table lacks, as a problem, or nothing."""
    missing = dict.fromkeys(layout.source_of(n) for n in names if n not in frame.columns)
    if not missing:
        return []
    return [
        f"lacks columns that the model uses: {listed(missing)}; add them, with empty cells where "
        "the values are unknown"
    ]


def known_levels(model: Any) -> dict[Any, tuple[Any, ...]]:
    """Return the possible values of each column with levels, if the model knows them."""
    schema = schema_of(getattr(model, "model_", model))
    return {} if schema is None else {c.name: c.levels for c in schema.columns if c.levels}


def unseen_values(rows: Any, model: Any, problems: Problems) -> dict[str, list[Any]]:
    """Return the cells that are not a level of their column, and note invalid values.

    Parameters
    ----------
    rows : DataFrame
        Columns of any kind.
    model : estimator
        A model of such columns.
    problems : Problems
        Collects problems.
    """
    schema = schema_of(getattr(model, "model_", model))
    if schema is None:
        return {}
    found = dict[str, list[Any]]()
    for column, raw in zip(schema.columns, raw_columns(rows), strict=True):
        with problems.noted():
            numbers = column.encode(raw, "hole")[0]
            new = np.flatnonzero(np.isnan(numbers) & ~raw.holes)
            if new.size:
                found[str(column.name)] = raw.values[new].tolist()
    return found
