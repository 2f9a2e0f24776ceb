"""The parts of a page: tables of cells, charts, and differences that need an explanation."""

from collections.abc import Sequence
from dataclasses import dataclass, field

MINUS = "\N{MINUS SIGN}"
NOT_RUN = "not run"
AGREES, BETTER, WORSE, PLAIN, MISSING = "agrees", "better", "worse", "plain", "missing"


@dataclass(frozen=True)
class Cell:
    """One cell of a table: its text, whether it is among the best, and how it compares."""

    text: str
    best: bool = False
    state: str = PLAIN


@dataclass(frozen=True)
class Difference:
    """One of our figures and the paper's."""

    table: str
    dataset: str
    model: str
    ours: float
    paper: float
    state: str

    @property
    def gap(self) -> float:
        """Our figure minus the paper's."""
        return self.ours - self.paper


@dataclass(frozen=True)
class TableView:
    """A table with its title and an explanation."""

    title: str
    text: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True)
class ChartView:
    """A line chart, given by the points of each line."""

    name: str
    title: str
    x_label: str
    y_label: str
    lines: dict[str, list[tuple[float, float]]]
    log_x: bool = True
    log_y: bool = False


@dataclass
class Section:
    """A part of the page."""

    title: str
    text: str
    tables: list[TableView] = field(default_factory=list)
    charts: list[ChartView] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)


def signed(value: float, digits: int) -> str:
    """Return a number with its sign.

    >>> signed(0.0123, 3)
    '+0.012'
    """
    return f"{round(value, digits) + 0.0:+.{digits}f}".replace("-", MINUS)


def plain(value: float, digits: int) -> str:
    """Return a number with a typographic minus sign."""
    return f"{value:.{digits}f}".replace("-", MINUS)


def compared(
    ours: float, paper: float | None, digits: int, allowed: float, best: bool, note: str = ""
) -> Cell:
    """Return a cell with our figure and, if the paper has one, its figure and the difference.

    >>> compared(0.961, 0.958, 3, 0.005, best=False).text
    '0.961 (0.958, +0.003)'
    """
    text = plain(ours, digits)
    if paper is None:
        return Cell(text + note, best)
    text += f" ({plain(paper, digits)}, {signed(ours - paper, digits)})"
    return Cell(text + note, best, state_of(ours, paper, allowed))


def state_of(ours: float, paper: float, allowed: float) -> str:
    """Return whether a figure agrees with the paper's, or is better or worse (higher is better)."""
    gap = ours - paper
    if abs(gap) <= allowed + 1e-9:
        return AGREES
    return BETTER if gap > 0 else WORSE
