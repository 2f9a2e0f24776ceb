"""The pages with the results: Markdown with charts as files, and one self-contained HTML file."""

import csv
import io
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from importlib.metadata import version
from pathlib import Path

from exchangeable.datasets._files import replacing
from exchangeable.experiments.reasons import CLAIMS, WRITTEN, explain
from exchangeable.experiments.scale import Scale
from exchangeable.experiments.tasks import open_stores
from exchangeable.experiments.views.classification import accuracy_section, properties_section
from exchangeable.experiments.views.curves import speed_section, theorem_section
from exchangeable.experiments.views.density import density_section
from exchangeable.experiments.views.parts import (
    AGREES,
    BETTER,
    PLAIN,
    WORSE,
    Difference,
    Section,
    TableView,
    signed,
)
from exchangeable.experiments.views.svg import line_chart

PACKAGES = ("exchangeable", "numpy", "scipy", "scikit-learn", "numba")
STYLE = """
body { font-family: system-ui, sans-serif; margin: 2rem auto; max-width: 90rem; padding: 0 1rem;
  color: #222; line-height: 1.45 }
table { border-collapse: collapse; font-size: 0.85rem; margin: 0.5rem 0 1.5rem }
th, td { border: 1px solid #ccc; padding: 0.25rem 0.5rem; text-align: right; white-space: nowrap }
th:first-child, td:first-child { text-align: left } th { background: #f3f3f3 }
.scroll { overflow-x: auto } .charts { display: flex; flex-wrap: wrap; gap: 1rem }
.agrees { background: #dcefdc } .better { background: #d6e6f7 } .worse { background: #f9ddd2 }
.missing { color: #888; font-style: italic }
"""


def write_pages(folder: Path, page: Path, scale: Scale) -> Path:
    """Write the Markdown page, its charts, the HTML page and a summary; return the HTML page."""
    stores = open_stores(folder)
    sections = [
        properties_section(stores["two-class"]),
        accuracy_section("two-class", stores["two-class"], scale),
        accuracy_section("multi-class", stores["multi-class"], scale),
        density_section(stores["density"]),
        theorem_section(stores["theorem"]),
        speed_section(stores["speed"]),
    ]
    html = folder / "reproduction.html"
    images = page.parent / "images"
    for section in sections:
        for chart in section.charts:
            _write(images / f"reproduction_{chart.name}.svg", line_chart(chart))
    _write(page, markdown(sections, scale))
    _write(html, html_page(sections, scale))
    _write(folder / "summary.csv", summary(sections))
    return html


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")


def about(scale: Scale) -> list[str]:
    """Return the page's introduction, as a list of paragraphs."""
    command = "exchangeable reproduce" + (" --quick" if scale.name == "quick" else "")
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    paragraphs = [
        f"Written by `{command}` from the finished cells on {datetime.now(UTC):%Y-%m-%d} (Python "
        f"{platform.python_version()}, {versions}). To run a row again, use for instance "
        "`exchangeable reproduce --table two-class --dataset webkb4 --again`.",
        "Seeds are fixed, and no setting was tuned on test data. A cell that has not been run yet "
        "is marked as such. Green cells of the HTML page agree with the paper's figure (within "
        "0.005 in accuracy, 0.01 on enron1, 1 % in log-likelihood), blue ones are better, red ones "
        "worse.",
        "Tables, counts and charts are computed from the cells. The claims and reasons below them "
        f"are commentary, last compared with the cells on {WRITTEN}.",
    ]
    if scale.name == "quick":
        paragraphs.append(
            "This is the quick run, with few runs and few rows: do not compare it with the paper."
        )
    return paragraphs


def tally(sections: Sequence[Section]) -> list[str]:
    """Return how many cells agree with the paper, for its MEVM and for the other models."""
    compared = [d for section in sections for d in section.differences if d.state != PLAIN]
    lines = []
    for label, chosen in (
        ("the paper's MEVM", [d for d in compared if d.model == "MEVM"]),
        ("MEVM with evidence merging", [d for d in compared if d.model == "MEVM, evidence"]),
        ("the other models", [d for d in compared if not d.model.startswith("MEVM")]),
    ):
        n = {state: sum(d.state == state for d in chosen) for state in (AGREES, BETTER, WORSE)}
        lines.append(
            f"Of {len(chosen)} finished cells of {label}, {n[AGREES]} agree with the paper, "
            f"{n[BETTER]} are better and {n[WORSE]} worse."
        )
    return lines


def explained(sections: Sequence[Section]) -> list[tuple[Difference, str]]:
    """Return the finished cells that differ from the paper, each with the reason."""
    return [
        (difference, explain(difference))
        for section in sections
        for difference in section.differences
        if difference.state in (BETTER, WORSE)
    ]


def _grouped(sections: Sequence[Section]) -> dict[str, list[Difference]]:
    """Return the cells that differ from the paper, by the paragraph that explains them."""
    by_reason: dict[str, list[Difference]] = {}
    for difference, reason in explained(sections):
        by_reason.setdefault(reason, []).append(difference)
    return by_reason


def _named(difference: Difference) -> str:
    digits = 2 if difference.table == "density" else 3
    gap = signed(difference.gap, digits)
    return f"{difference.dataset} {difference.model} ({difference.table}, {gap})"


def markdown(sections: Sequence[Section], scale: Scale) -> str:
    """Return the page as Markdown."""
    parts = ["# The paper's experiments, repeated", *about(scale), " ".join(tally(sections))]
    for section in sections:
        parts += [f"## {section.title}", section.text]
        for table in section.tables:
            parts += [f"### {table.title}", table.text, _markdown_table(table)]
        parts += [f"![{c.title}](images/reproduction_{c.name}.svg)" for c in section.charts]
    if scale.name == "full":
        parts += ["## Claims that we cannot confirm", *CLAIMS, "## Cells that differ, and why"]
        for reason, differences in _grouped(sections).items():
            parts.append(f"**{'; '.join(map(_named, differences))}.** {reason}")
    return "\n\n".join(part for part in parts if part) + "\n"


def _markdown_table(table: TableView) -> str:
    lines = [list(table.head), ["---"] * len(table.head)]
    lines += [[f"**{c.text}**" if c.best else c.text for c in row] for row in table.rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def html_page(sections: Sequence[Section], scale: Scale) -> str:
    """Return the page as one HTML file that needs nothing else."""
    title = "The paper's experiments, repeated"
    parts = [f"<h1>{title}</h1>", *(f"<p>{_prose(t)}</p>" for t in about(scale))]
    parts.append(f"<p>{_prose(' '.join(tally(sections)))}</p>")
    for section in sections:
        parts += [f"<h2>{escape(section.title)}</h2>", f"<p>{_prose(section.text)}</p>"]
        for table in section.tables:
            parts += [f"<h3>{escape(table.title)}</h3>", f"<p>{_prose(table.text)}</p>"]
            parts.append(_html_table(table))
        if section.charts:
            drawn = "\n".join(line_chart(chart) for chart in section.charts)
            parts.append(f'<div class="charts">{drawn}</div>')
    if scale.name == "full":
        parts.append("<h2>Claims that we cannot confirm</h2>")
        parts += [f"<p>{_prose(claim)}</p>" for claim in CLAIMS]
        parts.append("<h2>Cells that differ, and why</h2>")
        for reason, differences in _grouped(sections).items():
            named = escape("; ".join(map(_named, differences)))
            parts.append(f"<p><b>{named}.</b> {_prose(reason)}</p>")
    body = "\n".join(parts)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _prose(text: str) -> str:
    """Return text with `code` and **bold** marked up.

    >>> _prose("**Run** `this`")
    '<b>Run</b> <code>this</code>'
    """
    html = escape(text)
    for mark, tag in (("**", "b"), ("`", "code")):
        pieces = html.split(mark)
        html = "".join(f"<{tag}>{p}</{tag}>" if i % 2 else p for i, p in enumerate(pieces))
    return html


def _html_table(table: TableView) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in table.head)
    lines = []
    for row in table.rows:
        cells = []
        for cell in row:
            text = f"<b>{escape(cell.text)}</b>" if cell.best else escape(cell.text)
            cells.append(f'<td class="{cell.state}">{text}</td>')
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f'<div class="scroll"><table><tr>{head}</tr>\n' + "\n".join(lines) + "\n</table></div>"


def summary(sections: Sequence[Section]) -> str:
    """Return every compared figure as CSV: ours, the paper's, the difference."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("table", "dataset", "model", "ours", "paper", "difference", "verdict"))
    for section in sections:
        for d in section.differences:
            verdict = "incomplete" if d.state == PLAIN else d.state
            figures = (f"{d.ours:.5f}", d.paper, f"{d.gap:+.5f}", verdict)
            writer.writerow((d.table, d.dataset, d.model, *figures))
    return text.getvalue()
