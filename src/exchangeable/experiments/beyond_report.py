"""The page about the density benchmark, written from the finished cells."""

import csv
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from exchangeable.datasets._density import DENSITY_SETS
from exchangeable.experiments.beyond import AVERAGE, FAMILIES, HIDDEN, JOINED, PAPERS
from exchangeable.experiments.store import Row, Store

ONE = ("naive Bayes", PAPERS, "tree", "weighted urn", "weighted tree", HIDDEN)
SEVERAL = (AVERAGE, JOINED)
COLUMNS = (*ONE, *SEVERAL)
PUBLISHED = ("learnspn", "idspn", "mt", "ratspn", "einet", "hyperspn", "xcnet40", "hclt")
MINUS = "\N{MINUS SIGN}"
HEAD = """# Density: weighted urns, trees and hidden trees on the benchmark

This page is written by `exchangeable reproduce --table beyond`; the cells are in
`results/beyond.csv`. Every setting (number of components, strength of the pooled prior, shrinkage
of edges, iteration to stop at, family of the average, shares of joined families) was chosen on the
validation rows; the test rows were scored once by each fit. An empty cell has not been run; the
same command goes on with it.
The number of fits in each average stands among the settings.
A hidden tree is one tree over the variables, each of which has a hidden state of its own; its
number of components is the number of these states.
Seconds were measured on two cores that had other work to do.

"""


def published() -> dict[str, Row]:
    """Return the published test log-likelihoods, by data set."""
    text = files("exchangeable.experiments").joinpath("published_density.csv").read_text()
    return {row["dataset"]: row for row in csv.DictReader(text.splitlines())}


def write_report(store: Store, page: Path) -> None:
    """Write the page."""
    sets = [name for name in DENSITY_SETS if store.find(dataset=name)]
    parts = [HEAD, _results(store, sets), _verdict(store, sets), _settings(store, sets)]
    parts += [_costs(store, sets), _literature(sets)]
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n".join(parts), encoding="utf-8")


def _tests(store: Store, name: str, model: str) -> list[float]:
    return [float(row["test"]) for row in store.find(dataset=name, model=model)]


def _cell(values: list[float]) -> str:
    if not values:
        return ""
    digits = 3 if abs(values[0]) < 20 else 2
    told = f"{np.mean(values):.{digits}f}"
    if len(values) > 1:
        told += f" ± {np.std(values, ddof=1):.{digits}f} ({len(values)})"
    return told.replace("-", MINUS)


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _results(store: Store, sets: list[str]) -> str:
    known = published()
    rows = []
    for name in sets:
        best = known[name]["best"].replace("-", MINUS) if name in known else ""
        by = known[name]["best_model"] if name in known else ""
        cells = [_cell(_tests(store, name, model)) for model in COLUMNS]
        rows.append([name, *cells, f"{best} ({by})"])
    told = (
        "## Test log-likelihood\n\nMean over seeds ± their standard deviation, with the number of "
        "seeds in brackets; a single number is one seed. The average is one mixture made of "
        "several fits of the family that does best on the validation rows. Joined families are one "
        "mixture too, of such averages of all families, each with the share that suits the "
        "validation rows.\n\n"
    )
    return told + _table(["data", *COLUMNS, "best published"], rows)


def _verdict(store: Store, sets: list[str]) -> str:
    known = published()
    ahead: list[str] = []
    level: list[str] = []
    behind: list[str] = []
    for name in sets:
        found = [row for model in SEVERAL for row in store.find(dataset=name, model=model)]
        if not found or name not in known:
            continue
        chosen = max(found, key=lambda row: float(row["valid"]))
        gap = float(chosen["test"]) - float(known[name]["best"])
        told = f"{name} ({gap:+.3f})".replace("-", MINUS)
        # Published figures have two decimals: closer than half of the last one is level.
        (ahead if gap > 0.005 else behind if gap < -0.005 else level).append(told)
    lines = [
        "## Beside the best published figure\n",
        "The average or the joined families, whichever is better on the validation rows.\n",
    ]
    for label, names in (("Ahead", ahead), ("Level to two decimals", level), ("Behind", behind)):
        lines.append(f"{label}: {', '.join(names) if names else 'none'}.\n")
    return "\n".join(lines)


def _settings(store: Store, sets: list[str]) -> str:
    rows = []
    for name in sets:
        line = [name]
        for model in (*FAMILIES, *SEVERAL):
            found = store.find(dataset=name, model=model)
            line.append(_describe(found[0]) if found else "")
        rows.append(line)
    told = (
        "## Settings chosen on the validation rows\n\nComponents (states of each variable of "
        "hidden trees), pseudo-rows of the pooled prior and, for trees, pseudo-rows that pull "
        "edges towards independence. For joined families the fits of each, and its share.\n\n"
    )
    return told + _table(["data", *FAMILIES, *SEVERAL], rows)


def _describe(row: Row) -> str:
    if row["model"] == JOINED:
        return str(row["family"])
    told = f"{row['n_components']}, {float(row['pooling']):g}"
    if float(row["shrinkage"]) > 0:
        told += f", {float(row['shrinkage']):g}"
    if row["model"] == AVERAGE:
        told = f"{row['n_averaged']} fits of {row['family']}: {told}"
    return told


def _costs(store: Store, sets: list[str]) -> str:
    rows = []
    for name in sets:
        line = [name]
        for model in COLUMNS:
            found = store.find(dataset=name, model=model)
            line.append(_cost(found) if found else "")
        rows.append(line)
    told = (
        "## Seconds and size\n\nSeconds of one fit (of all fits for averages and joined families), "
        "seconds of the search in brackets, and number of parameters.\n\n"
    )
    return told + _table(["data", *COLUMNS], rows)


def _cost(found: list[Row]) -> str:
    seconds = np.mean([float(row["seconds"]) for row in found])
    searched = [float(row["search_seconds"]) for row in found if row.get("search_seconds")]
    told = f"{seconds:.1f}"
    if searched:
        told += f" ({searched[0]:.0f})"
    return f"{told}; {_size(int(found[0]['n_parameters']))}"


def _size(number: int) -> str:
    return f"{number / 1e6:.1f}M" if number >= 1e6 else f"{number / 1e3:.0f}k"


def _literature(sets: list[str]) -> str:
    known: dict[str, Any] = published()
    rows = [
        [name, *(known[name][model].replace("-", MINUS) for model in PUBLISHED)]
        for name in sets
        if name in known
    ]
    return "## Published test log-likelihoods\n\n" + _table(["data", *PUBLISHED], rows)
