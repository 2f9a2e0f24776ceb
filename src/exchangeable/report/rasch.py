"""A page about a Rasch model: items with their curves, abilities by score, tests, and methods."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exchangeable.classes.tables import Table, Tabular, p_text
from exchangeable.estimators.rasch import RaschModel
from exchangeable.rasch.andersen import AndersenTest
from exchangeable.rasch.answers import step_names
from exchangeable.rasch.differences import ItemDifferences
from exchangeable.report.frame import framed, scrolling, text, write_page

WIDTH, HEIGHT, MARGIN = 560, 260, 36
REACH = 4.0
"""Curves extend this far to both sides."""
COLOURS = ("#3f55c9", "#d56b2f", "#3a9a6a", "#8a4fc7", "#b8860b", "#c23b64", "#4a7f9e", "#6b6f7a")
METHODS = {"wle": "Warm's weighted likelihood", "eap": "expected a posteriori", "ml": "likelihood"}


@dataclass(frozen=True)
class Shown(Tabular):
    """Results as a table."""

    table: Table

    def as_table(self) -> Table:
        """Return the results as a table."""
        return self.table


@dataclass(frozen=True)
class RaschAnalysis:
    """A fitted model, and what is reported about it.

    Attributes
    ----------
    model : RaschModel
        The model.
    n_persons : int
        Number of persons.
    method : {"wle", "eap", "ml"}
        How abilities are estimated.
    test : AndersenTest or None
        Whether items have the same parameters in groups of persons.
    """

    model: RaschModel
    n_persons: int
    method: str = "wle"
    test: AndersenTest | None = None

    def tables(self) -> dict[str, Tabular]:
        """Return the results, by the names of their files."""
        found: dict[str, Tabular] = {"items": self._items()}
        for y in range(self.model.weights_.size):
            suffix = f"_class{y}" if self.model.weights_.size > 1 else ""
            found[f"scores{suffix}"] = self._scores(y)
        if self.test is not None and len(self.test.groups) == 2:
            one, other = self.test.groups
            caption = f"Items in group {one} less those in group {other}"
            found["groups"] = _differences(self.test.differences(), caption, f"{self.test}.")
        for y in range(1, self.model.weights_.size):
            caption = f"Items in class 0 less those in class {y}"
            found[f"classes_0_{y}"] = _differences(self.model.differences(0, y), caption)
        return found

    def _items(self) -> Shown:
        items = self.model.item_parameters_
        k, errors = items.n_classes, items.threshold_errors
        columns: dict[str, Any] = {"item": list(step_names(items.names, items.highest))}
        for y in range(k):
            suffix = f", class {y}" if k > 1 else ""
            columns[f"difficulty{suffix}"] = items.thresholds[:, y].tolist()
            columns[f"s.e.{suffix}"] = errors[:, y].tolist()
        sizes = ", ".join(f"class {y}: {size:.1%}" for y, size in enumerate(self.model.weights_))
        return Shown(Table(columns, "Difficulties of items", note=sizes if k > 1 else ""))

    def _scores(self, y: int) -> Shown:
        found = self.model.abilities(method=self.method, component=y)
        shares = self.model.score_distribution_[:, y]
        columns: dict[str, Any] = {"score": found.scores.tolist()}
        if shares.size == found.scores.size:
            columns["share"] = shares.tolist()
        columns |= {"ability": found.estimate.tolist(), "s.e.": found.standard_error.tolist()}
        where = f" in class {y}" if self.model.weights_.size > 1 else ""
        return Shown(Table(columns, f"Scores and abilities{where}"))

    @property
    def methods(self) -> str:
        """The methods, as a paper's methods section describes them."""
        items, k = self.model.item_parameters_, self.model.weights_.size
        graded = bool((items.highest > 1).any())
        what = "partial credit model" if graded else "Rasch model"
        told = f"{self.n_persons:,} persons answered {len(items.names)} items. "
        if k == 1:
            told += f"The {what} was fitted by conditional maximum likelihood"
        else:
            told += f"A mixed {what} of {k} classes was fitted by maximum likelihood (EM)"
        told += (
            "; missing answers are summed out, difficulties sum to zero. Abilities are estimates "
        )
        told += f"by {METHODS[self.method]}."
        if self.test is not None:
            told += f" {self.test}."
        return told


def write_rasch_report(
    analysis: RaschAnalysis, path: str | os.PathLike[str], *, title: str = "Rasch model"
) -> None:
    """Write a page about a Rasch model, replacing the file atomically.

    Parameters
    ----------
    analysis : RaschAnalysis
        What to report.
    path : path-like
        The file to write, usually ending in ``.html``. It needs no network.
    title : str
        Heading of the page.
    """
    write_page(rasch_html(analysis, title=title), path)


def rasch_html(analysis: RaschAnalysis, *, title: str = "Rasch model") -> str:
    """Return the page that `write_rasch_report` writes."""
    classes = range(analysis.model.weights_.size)
    curves = "".join(_curves_svg(analysis.model, y) for y in classes)
    sections = [("Curves", curves)]
    sections += [
        (str(result.as_table().caption), scrolling(result)) for result in analysis.tables().values()
    ]
    sections.append(("Methods", f"<p>{text(analysis.methods)}</p>"))
    return framed(title, sections)


def _differences(found: ItemDifferences, caption: str, note: str = "") -> Shown:
    columns = {
        "item": list(found.names),
        "difference": found.difference.tolist(),
        "s.e.": found.standard_error.tolist(),
        "z": found.z.tolist(),
        "p": [p_text(p) for p in found.p_value],
        "p (Holm)": [p_text(p) for p in found.adjusted_p_value],
    }
    return Shown(Table(columns, caption, {"z": 2}, note))


def _curves_svg(model: RaschModel, y: int) -> str:
    """Return the characteristic curves of the items of a class: the share of the highest answer."""
    items = model.item_parameters_
    at = np.linspace(-REACH, REACH, 61)
    heights = model.characteristic_curves(at, y) / items.highest
    x = MARGIN + (at + REACH) / (2 * REACH) * (WIDTH - 2 * MARGIN)
    lines = []
    for j, name in enumerate(items.names):
        if np.isnan(heights[:, j]).any():
            continue
        points = " ".join(
            f"{a:.1f},{HEIGHT - MARGIN - b * (HEIGHT - 2 * MARGIN):.1f}"
            for a, b in zip(x, heights[:, j], strict=True)
        )
        lines.append(
            f'<polyline points="{points}" fill="none" stroke="{COLOURS[j % len(COLOURS)]}" '
            f'stroke-width="1.5"><title>{text(name)}</title></polyline>'
        )
    ticks = "".join(
        f'<text x="{a:.1f}" y="{HEIGHT - 18}" text-anchor="middle">{value:g}</text>'
        for a, value in zip(np.interp([-4, -2, 0, 2, 4], at, x), (-4, -2, 0, 2, 4), strict=True)
    )
    where = f", class {y}" if model.weights_.size > 1 else ""
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" '
        f'aria-label="characteristic curves of items{where}">{"".join(lines)}{ticks}'
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 2}" text-anchor="middle">ability{where}</text>'
        f'<text x="2" y="{MARGIN}">1</text><text x="2" y="{HEIGHT - MARGIN}">0</text></svg>'
        + _legend(items.names)
    )


def _legend(names: Sequence[str]) -> str:
    """Return the legend of the items; with more items than colours, how to identify them."""
    if len(names) > len(COLOURS):
        return '<p class="note">Point at a curve to see which item it is.</p>'
    entries = "".join(
        f'<span><i style="background:{colour}"></i>{text(name)}</span>'
        for name, colour in zip(names, COLOURS, strict=False)
    )
    return f'<p class="legend">{entries}</p>'
