"""`info` and `inspect`: the contents of a model file, as a short list or as an HTML page."""

from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table

from exchangeable.cli.errors import one_line
from exchangeable.cli.options import busy, model_argument, open_model, shown
from exchangeable.cli.texts import examples
from exchangeable.report import write_report
from exchangeable.runtime.text import printable
from exchangeable.tables.coding import Coding
from exchangeable.tables.raw import RawCoding
from exchangeable.tables.words import AnyCoding, WordCoding
from exchangeable.tables.writing import write_json


@click.command(epilog=examples("info buys.exch", "info buys.exch --json"))
@model_argument
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object.")
@one_line
def info(model_path: str, as_json: bool) -> None:
    """Show what a model file contains."""
    saved, coding = open_model(model_path)
    model = saved.model
    facts: dict[str, Any] = {
        "file": model_path,
        "size": Path(model_path).stat().st_size,
        "class": type(model).__name__,
        "variables": int(model.n_features_in_),
    }
    if hasattr(model, "classes_"):
        facts["classes"] = model.classes_.tolist()
    elif hasattr(model, "weights_") and hasattr(model, "n_blocks_"):
        facts["components"] = int(model.weights_.size)
    if hasattr(model, "n_blocks_"):
        facts["number of blocks"] = model.n_blocks_.tolist()
    facts["coding"] = _described(coding)
    if getattr(model, "columns_", None) is not None:
        facts["kinds"] = [f"{name}: {kind}" for name, kind in model.kinds_.items()]
    facts["target"] = coding.target
    facts["parameters"] = {name: str(value) for name, value in model.get_params().items()}
    facts["written by"] = saved.libraries
    if as_json:
        write_json(facts)
        return
    table = Table(show_header=False, box=None)
    for name, value in facts.items():
        table.add_row(name, shown(decimal(value) if name == "size" else _listed(value)))
    console = Console()
    if not console.is_terminal:
        console.width = 120
    console.print(table)


def _described(coding: AnyCoding) -> str:
    if isinstance(coding, RawCoding):
        return "columns as they are"
    if isinstance(coding, WordCoding):
        return f"words of the column {coding.column!r}"
    if isinstance(coding, Coding):
        kinds = [column.kind for column in coding.columns]
        counts = {kind: kinds.count(kind) for kind in ("binary", "number", "category")}
        words = {
            "binary": "binary",
            "number": "of numbers, split at the median",
            "category": "of categories",
        }
        return ", ".join(f"{n} columns {words[kind]}" for kind, n in counts.items() if n)
    return "numbered columns of a sparse file"


def _listed(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={entry}" for name, entry in value.items())
    if isinstance(value, list):
        more = f" and {len(value) - 20} more" if len(value) > 20 else ""
        return ", ".join(str(entry) for entry in value[:20]) + more
    return "none" if value is None else str(value)


@click.command(
    epilog=examples("inspect buys.exch", "inspect buys.exch --output report.html"),
)
@model_argument
@click.option("-o", "--output", metavar="FILE", help="Write an HTML page instead of tables.")
@click.option(
    "--top", type=click.IntRange(1), default=5, show_default=True, help="Number of blocks to list."
)
@one_line
def inspect(model_path: str, output: str | None, top: int) -> None:
    """Show the blocks of a model, or write an HTML page to explore it.

    The page is one file that needs no network. It shows the blocks and the distributions of their
    counts, and where the family allows it a panel that answers questions as you set variables.
    """
    saved, coding = open_model(model_path)
    model = getattr(saved.model, "model_", saved.model)
    if output is not None:
        with busy("writing the page"):
            write_report(model, output, names=coding.variables, title=Path(model_path).stem)
        click.echo(f"wrote {printable(output)}", err=True)
        return
    if not hasattr(model, "partitions_"):
        raise ValueError(
            f"{model_path} is a {type(model).__name__}, which has no blocks to show; use "
            "'exchangeable info'"
        )
    console = Console()
    if not console.is_terminal:
        console.width = 120
    labels = getattr(model, "classes_", np.arange(model.n_blocks_.size))
    for y, label in enumerate(labels.tolist()):
        console.print(_blocks(model, y, label, coding.variables, top))


def _blocks(model: Any, y: int, label: Any, names: list[str], top: int) -> Table:
    """Return a table of the largest blocks of a class."""
    blocks, counts = model.partitions_[y], model.count_probabilities_[y]
    title = shown(f"{label}: {len(blocks)} blocks")
    table = Table("variables", "mean", "correlation", "which", title=title, title_justify="left")
    for b in sorted(range(len(blocks)), key=lambda b: -len(blocks[b]))[:top]:
        members = [names[j] for j in blocks[b][:8]]
        more = f" and {len(blocks[b]) - 8} more" if len(blocks[b]) > 8 else ""
        mean, correlation = block_moments(counts[b])
        table.add_row(
            f"{len(blocks[b]):,}",
            f"{mean:.3f}",
            "" if len(blocks[b]) == 1 else f"{correlation:+.3f}",
            shown(", ".join(members) + more),
        )
    return table


def block_moments(probabilities: Any) -> tuple[float, float]:
    """Return the mean of a block's variables, and the correlation of any two of them.

    >>> [round(value, 3) for value in block_moments(np.array([0.5, 0.0, 0.5]))]
    [0.5, 1.0]
    """
    m = len(probabilities) - 1
    counts = np.arange(m + 1)
    mean = float(probabilities @ counts) / m
    variance = mean * (1 - mean)
    if m < 2 or variance <= 0:
        return mean, 0.0
    both = float(probabilities @ (counts * (counts - 1))) / (m * (m - 1))
    return mean, (both - mean**2) / variance
