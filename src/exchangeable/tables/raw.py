"""Columns of any kind that a model takes as they are."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from exchangeable.tables.reading import TableData, listed

TRUTH = {"true": True, "false": False}


@dataclass(frozen=True)
class RawCoding:
    """The columns that a model uses, by name, and the column it predicts, if any."""

    columns: tuple[str, ...]
    target: str | None = None

    @property
    def n_variables(self) -> int:
        """Number of columns."""
        return len(self.columns)

    @property
    def variables(self) -> list[str]:
        """The names of the columns."""
        return list(self.columns)

    def rows(self, table: TableData) -> Any:
        """Return the columns as a frame."""
        if table.frame is None:
            raise ValueError(
                f"{table.name}: the model was fitted to named columns, which this file does not "
                "have; give a CSV, TSV or Parquet file"
            )
        missing = [name for name in self.columns if name not in table.frame.columns]
        if missing:
            raise ValueError(
                f"{table.name}: lacks columns that the model uses: {listed(missing)}; add them, "
                "with empty cells where the values are unknown"
            )
        return table.frame[list(self.columns)]

    def evidence(self, name: str, value: str) -> dict[str, Any] | None:
        """Return what a text says about a column: a number where it is one, else the text."""
        if name not in self.columns:
            return None
        if value.lower() in TRUTH:
            return {name: TRUTH[value.lower()]}
        for kind in (int, float):
            try:
                return {name: kind(value)}
            except ValueError:
                continue
        return {name: value}

    def n_unseen(self, table: TableData) -> int:
        """Return 0: the model itself takes what it has not seen as unknown."""
        return 0

    def to_json(self) -> dict[str, Any]:
        """Return the coding as JSON values."""
        return {"kind": "raw", "columns": list(self.columns), "target": self.target}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "RawCoding":
        """Return the coding that `to_json` wrote, after checking it."""
        columns = value["columns"]
        if not all(isinstance(name, str) for name in columns) or len(set(columns)) < len(columns):
            raise ValueError("the columns have repeated names, or names that are not text")
        return cls(tuple(columns), value.get("target"))
