"""A page about a latent class analysis: class cards, criteria, tables, and a methods paragraph."""

import os
from typing import Any

import numpy as np

from exchangeable.classes.analysis import Analysis
from exchangeable.classes.profiles import Profiles
from exchangeable.classes.selection import Selection
from exchangeable.classes.tables import cell_text
from exchangeable.report.frame import framed, scrolling, text, write_page

WIDTH, HEIGHT, MARGIN = 560, 240, 56
CURVES = (("aic", "AIC", "#8a93a8"), ("bic", "BIC", "#3f55c9"), ("abic", "aBIC", "#d56b2f"))


def write_classes_report(
    analysis: Analysis, path: str | os.PathLike[str], *, title: str = "Latent classes"
) -> None:
    """Write a page about a latent class analysis, replacing the file atomically.

    Parameters
    ----------
    analysis : Analysis
        The result of `exchangeable.classes.analyse`.
    path : path-like
        The file to write, usually ending in ``.html``. It needs no network.
    title : str
        Heading of the page.
    """
    write_page(classes_html(analysis, title=title), path)


def classes_html(analysis: Analysis, *, title: str = "Latent classes") -> str:
    """Return the page that `write_classes_report` writes."""
    sure = analysis.classification
    k = analysis.model.weights_.size
    sections = [
        ("Classes", cards_html(analysis.errors.profiles)),
        ("How many classes", _criteria_svg(analysis.selection) + scrolling(analysis.selection)),
        ("Profiles", scrolling(analysis.errors.profiles)),
        ("Classification", scrolling(sure)),
    ]
    if analysis.effects is not None:
        sections.append(("Covariates", scrolling(analysis.effects)))
    if analysis.outcomes is not None:
        sections.append(("Outcomes", scrolling(analysis.outcomes)))
    sections.append(("Methods", f"<p>{text(analysis.methods)}</p>"))
    told = (
        f"{analysis.n_rows:,} rows, {k} {'class' if k == 1 else 'classes'}, entropy R² "
        f"{cell_text(sure.entropy_r2)}"
    )
    return framed(title, sections, told)


def cards_html(profiles: Profiles) -> str:
    """Return a card for each class: its size, and a bar with an interval for each answer."""
    cards = "".join(_card(profiles, y) for y in range(profiles.sizes.size))
    return f'<div class="cards">{cards}</div>'


def _card(profiles: Profiles, y: int) -> str:
    size = profiles.sizes[y]
    told = f"{size:.1%}"
    if profiles.size_interval is not None:
        low, high = profiles.size_interval[:, y]
        told += f" <small>({low:.1%} to {high:.1%})</small>"
    lines = []
    for i, entry in enumerate(profiles.entries):
        if entry.answer == "SD":
            continue
        name = entry.item if entry.kind == "binary" else f"{entry.item}: {entry.answer}"
        value = profiles.values[i, y]
        ends = (np.nan, np.nan) if profiles.interval is None else profiles.interval[:, i, y]
        scaled = _scaled(profiles, i, np.array([value, *ends]))
        lines.append(
            f'<div class="item"><b title="{text(name)}">{text(name)}</b>{_bar(*scaled)}'
            f"<em>{cell_text(float(value), 2)}</em></div>"
        )
    return (
        f'<div class="card"><h3>class {y}<span>{told}</span></h3><div class="size">'
        f'<i style="width:{100 * size:.1f}%"></i></div>{"".join(lines)}</div>'
    )


def _scaled(profiles: Profiles, i: int, numbers: Any) -> Any:
    """Scale numbers to between 0 and 1: means by the range of all classes and their intervals."""
    if profiles.entries[i].is_share:
        return np.clip(numbers, 0.0, 1.0)
    every = [profiles.values[i]] + (
        [] if profiles.interval is None else list(profiles.interval[:, i])
    )
    low, high = float(np.nanmin(every)), float(np.nanmax(every))
    return np.clip((numbers - low) / (high - low) if high > low else numbers * 0 + 0.5, 0.0, 1.0)


def _bar(value: float, low: float, high: float) -> str:
    if not np.isfinite(value):
        return '<span class="bar"></span>'
    whisker = ""
    if np.isfinite(low) and np.isfinite(high):
        whisker = f'<u style="left:{100 * low:.1f}%;width:{100 * (high - low):.1f}%"></u>'
    return f'<span class="bar"><i style="width:{100 * value:.1f}%"></i>{whisker}</span>'


def _criteria_svg(selection: Selection) -> str:
    """Return the information criteria as curves; nothing for a single model or several settings."""
    rows = selection.table
    if len(rows) < 2 or any(row.setting for row in rows):
        return ""
    tried = np.array([row.n_components for row in rows], dtype=np.float64)
    values = np.array([[getattr(row, name) for row in rows] for name, _, _ in CURVES])
    low, high = float(values.min()), float(values.max())
    span = high - low or 1.0
    width = tried.max() - tried.min() or 1.0
    x = MARGIN + (tried - tried.min()) / width * (WIDTH - 2 * MARGIN)
    parts = []
    for line, (_, _, colour) in zip(values, CURVES, strict=True):
        y = 20 + (high - line) / span * (HEIGHT - 60)
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
        dots = "".join(
            f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>'
            for a, b in zip(x, y, strict=True)
        )
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.6"/>{dots}'
        )
    legend = "".join(
        f'<circle cx="{WIDTH - 46}" cy="{16 + 16 * n}" r="3" fill="{colour}"/>'
        f'<text x="{WIDTH - 38}" y="{20 + 16 * n}">{label}</text>'
        for n, (_, label, colour) in enumerate(CURVES)
    )
    chosen = x[[model is selection.best for model in selection.models].index(True)]
    ticks = "".join(
        f'<text x="{a:.1f}" y="{HEIGHT - 18}" text-anchor="middle">{int(k)}</text>'
        for a, k in zip(x, tried, strict=True)
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" '
        'aria-label="information criteria by number of classes">'
        f'<line x1="{chosen:.1f}" x2="{chosen:.1f}" y1="12" y2="{HEIGHT - 34}" stroke="#aab3c5" '
        f'stroke-dasharray="2 3"/>{"".join(parts)}{legend}{ticks}'
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 2}" text-anchor="middle">number of classes</text>'
        f'<text x="2" y="24">{high:,.0f}</text>'
        f'<text x="2" y="{HEIGHT - 36}">{low:,.0f}</text></svg>'
    )
