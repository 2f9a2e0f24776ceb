"""Results as tables: a data frame, Markdown, LaTeX or CSV, formatted as in papers."""

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from os import PathLike
from typing import Any

import numpy as np

from exchangeable.runtime.text import not_a_formula, printable, without_surrogates
from exchangeable.storage.files import replacing

MISSING = "—"
NUMERIC = re.compile(r"—|<?-?[\d,]+(\.\d+)?( \(.*\))?")
"""Texts that are aligned like numbers."""
LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "—": "--",
    "χ²": r"$\chi^2$",
    "R²": "$R^2$",
}
SIGNS = re.compile("|".join(sorted(map(re.escape, LATEX), key=len, reverse=True)))


@dataclass(frozen=True)
class Table:
    """A table of results.

    Attributes
    ----------
    columns : dict from name to sequence
        The columns, of equal length; numbers remain numbers.
    caption : str
        The title.
    digits : dict from name to int
        Digits after the point; 3 by default.
    note : str
        A note below the table.
    """

    columns: dict[str, Sequence[Any]]
    caption: str = ""
    digits: dict[str, int] = field(default_factory=dict)
    note: str = ""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values()), ()))

    def records(self) -> list[dict[str, Any]]:
        """Return one dict per row."""
        names = list(self.columns)
        rows = zip(*self.columns.values(), strict=True)
        return [dict(zip(names, map(_plain, row), strict=True)) for row in rows]

    def cells(self) -> list[list[str]]:
        """Return the rows as texts, rounded to the table's digits."""
        texts = [
            [cell_text(value, self.digits.get(name, 3)) for value in column]
            for name, column in self.columns.items()
        ]
        return [list(row) for row in zip(*texts, strict=True)]


class Tabular:
    """Mixin for results that are tables; `as_table` creates the table."""

    def as_table(self) -> Table:
        """Return the results as a table."""
        raise NotImplementedError

    def data_table(self) -> Table:
        """Return the results unrounded, as data; by default the same table."""
        return self.as_table()

    def to_frame(self) -> Any:
        """Return a data frame if pandas is installed, else a list of dicts."""
        table = self.data_table()
        try:
            import pandas
        except ImportError:
            return table.records()
        return pandas.DataFrame({name: list(values) for name, values in table.columns.items()})

    def to_markdown(self, path: str | PathLike[str] | None = None) -> str:
        """Return the table in Markdown, and write it to a file if one is given."""
        table = self.as_table()
        lines = [list(table.columns), *table.cells()]
        safe = [[_one_line(cell).replace("|", r"\|") for cell in line] for line in lines]
        widths = [max(3, *(len(line[i]) for line in safe)) for i in range(len(safe[0]))]
        right = [_is_number(column) for column in table.columns.values()]
        rows = [_aligned(line, widths, right) for line in safe]
        rule = [
            "-" * (width - 1) + (":" if at_right else "-")
            for width, at_right in zip(widths, right, strict=True)
        ]
        text = "\n".join(f"| {' | '.join(row)} |" for row in [rows[0], rule, *rows[1:]])
        return _written(text + (f"\n\n{table.note}" if table.note else "") + "\n", path)

    def to_latex(self, path: str | PathLike[str] | None = None) -> str:
        """Return the table in LaTeX (with booktabs), and write it to a file if one is given."""
        table = self.as_table()
        layout = "".join("r" if _is_number(c) else "l" for c in table.columns.values())
        lines = [[_latex(cell) for cell in line] for line in [list(table.columns), *table.cells()]]
        body = [" & ".join(line) + r" \\" for line in lines]
        note = [rf"\par\smallskip {{\footnotesize {_latex(table.note)}}}"] if table.note else []
        text = "\n".join(
            [
                r"\begin{table}",
                rf"\caption{{{_latex(table.caption)}}}",
                rf"\begin{{tabular}}{{{layout}}}",
                r"\toprule",
                body[0],
                r"\midrule",
                *body[1:],
                r"\bottomrule",
                r"\end{tabular}",
                *note,
                r"\end{table}",
            ]
        )
        return _written(text + "\n", path)

    def to_csv(self, path: str | PathLike[str] | None = None) -> str:
        """Return the table as unrounded CSV, and write it to a file if one is given."""
        table, file = self.data_table(), io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([_spreadsheet(name) for name in table.columns])
        for record in table.records():
            writer.writerow([_spreadsheet(value) for value in record.values()])
        return _written(file.getvalue(), path)

    def to_html(self) -> str:
        """Return the table in HTML."""
        table = self.as_table()
        right = [_is_number(column) for column in table.columns.values()]
        head = _html_row("th", list(table.columns), right)
        rows = "".join(_html_row("td", line, right) for line in table.cells())
        note = f"<p class='note'>{escape(_one_line(table.note))}</p>" if table.note else ""
        return (
            f"<table><caption>{escape(_one_line(table.caption))}</caption>"
            f"<thead>{head}</thead><tbody>{rows}</tbody></table>{note}"
        )

    def _repr_html_(self) -> str:
        return self.to_html()

    def __str__(self) -> str:
        table = self.as_table()
        lines = [[_one_line(cell) for cell in row] for row in [list(table.columns), *table.cells()]]
        widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
        right = [_is_number(column) for column in table.columns.values()]
        rows = ["  ".join(_aligned(line, widths, right)).rstrip() for line in lines]
        return "\n".join([*rows, table.note] if table.note else rows)


def cell_text(value: Any, digits: int = 3) -> str:
    """Return a value as printed in a table; unknown values are dashes.

    >>> cell_text(0.12345), cell_text(float("nan")), cell_text(12), cell_text("a")
    ('0.123', '—', '12', 'a')
    """
    value = _plain(value)
    if value is None or (isinstance(value, float) and not np.isfinite(value)):
        return MISSING
    if isinstance(value, float):
        return f"{value:,.{digits}f}"
    return str(value)


def p_text(value: float) -> str:
    """Return a p-value as printed in papers.

    >>> p_text(0.04321), p_text(0.00001)
    ('0.043', '<0.001')
    """
    if not np.isfinite(value):
        return MISSING
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _is_number(column: Sequence[Any]) -> bool:
    known = [_plain(value) for value in column if value is not None]
    return bool(known) and all(
        (isinstance(v, int | float) and not isinstance(v, bool))
        or (isinstance(v, str) and NUMERIC.fullmatch(v) is not None)
        for v in known
    )


def _one_line(text: str) -> str:
    return printable(" ".join(str(text).split()))


def _aligned(line: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> list[str]:
    parts = zip(line, widths, right, strict=True)
    return [text.rjust(width) if at_right else text.ljust(width) for text, width, at_right in parts]


def _latex(text: str) -> str:
    return SIGNS.sub(lambda found: LATEX[found[0]], _one_line(text))


def _spreadsheet(value: Any) -> Any:
    if isinstance(value, float) and not np.isfinite(value):
        return ""
    return not_a_formula(without_surrogates(value)) if isinstance(value, str) else value


def _html_row(tag: str, line: Sequence[str], right: Sequence[bool]) -> str:
    cells = [
        f'<{tag} class="number">{escape(_one_line(text))}</{tag}>'
        if at_right
        else f"<{tag}>{escape(_one_line(text))}</{tag}>"
        for text, at_right in zip(line, right, strict=True)
    ]
    return f"<tr>{''.join(cells)}</tr>"


def _written(text: str, path: str | PathLike[str] | None) -> str:
    if path is not None:
        with replacing(path, "w") as file:
            file.write(text)
    return text
