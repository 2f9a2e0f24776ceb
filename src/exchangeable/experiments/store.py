"""Results that survive an interruption: a row per finished cell, in a file replaced atomically."""

import csv
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

Row = dict[str, Any]


class Store:
    """A CSV file of finished cells.

    Parameters
    ----------
    path : Path
        The file; it and its folder are created when the first cell is stored.
    key : tuple of str
        The columns that identify a cell.
    """

    def __init__(self, path: Path, key: tuple[str, ...]) -> None:
        self.path, self.key = path, key
        self.rows: list[Row] = []
        if path.exists():
            with path.open(newline="") as file:
                self.rows = list(csv.DictReader(file))
            missing = [name for name in key if self.rows and name not in self.rows[0]]
            if missing:
                raise ValueError(
                    f"{path} has no column {missing[0]!r}, so it does not hold results of this "
                    "experiment; name another file"
                )

    def find(self, **wanted: Any) -> list[Row]:
        """Return the finished cells with the given values."""
        return [
            row
            for row in self.rows
            if all(str(row[name]) == str(value) for name, value in wanted.items())
        ]

    def add(self, row: Row) -> None:
        """Store a finished cell, replacing an earlier one with the same key."""
        cell = [str(row[name]) for name in self.key]
        self.rows = [known for known in self.rows if [known[name] for name in self.key] != cell]
        self.rows.append({name: str(value) for name, value in row.items()})
        columns = list(dict.fromkeys(name for known in self.rows for name in known))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(suffix=".part", dir=self.path.parent)
        try:
            with os.fdopen(handle, "w", newline="") as file:
                writer = csv.DictWriter(file, columns, lineterminator="\n")
                writer.writeheader()
                writer.writerows(self.rows)
            os.replace(name, self.path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(name)
