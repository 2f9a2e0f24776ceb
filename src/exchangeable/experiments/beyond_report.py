"""The Markdown page about the density benchmark, written from the finished cells."""

import csv
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from exchangeable.datasets._density import DENSITY_SETS
from exchangeable.experiments.beyond import AVERAGE, FAMILIES, JOINED, NAIVE_BAYES, PAPERS
from exchangeable.experiments.store import Row, Store
from exchangeable.families import REGISTRY

SEARCHED = tuple(name for name in FAMILIES if name != NAIVE_BAYES)
SEVERAL = (AVERAGE, JOINED)
COLUMNS = (NAIVE_BAYES, PAPERS, *SEARCHED, *SEVERAL)
CHOSEN = (NAIVE_BAYES, *SEARCHED, *SEVERAL)
"""Models whose settings were chosen on the validation rows."""
BEST = "best of the published tables listed"
PUBLISHED = ("learnspn", "idspn", "mt", "ratspn", "einet", "hyperspn", "xcnet40", "hclt")
MINUS = "\N{MINUS SIGN}"
HEAD = """# Density: every family on the benchmark

This page is written by `exchangeable reproduce --table beyond`; the cells are in
`results/beyond.csv`. Every setting (number of components, strength of the pooled prior, shrinkage
of edges, iteration to stop at, family of the average, shares of joined families) was chosen on the
validation rows; the test rows were scored once by each fit. An empty cell has not been run yet; the
same command continues with it. The number of fits in each average is listed among the settings.
Seconds were measured on two cores that were also doing other work.

What each component is made of, by family:

"""


def published() -> dict[str, Row]:
    """Return the published test log-likelihoods, by data set."""
    text = files("exchangeable.experiments").joinpath("published_density.csv").read_text()
    return {row["dataset"]: row for row in csv.DictReader(text.splitlines())}


def write_report(store: Store, page: Path) -> None:
    """Write the page."""
    sets = [name for name in DENSITY_SETS if store.find(dataset=name)]
    parts = [HEAD + _families(), _results(store, sets), _verdict(store, sets)]
    parts.append(_settings(store, sets))
    parts += [_costs(store, sets), _literature(sets)]
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n".join(parts), encoding="utf-8")


def _families() -> str:
    """Return a list of the families, each in one sentence."""
    lines = [f"- {NAIVE_BAYES}: independent variables"]
    lines += [f"- {name}: {REGISTRY[name].summary}" for name in SEARCHED]
    return "\n".join(lines) + "\n"


def _tests(store: Store, name: str, model: str) -> list[float]:
    return [float(row["test"]) for row in store.find(dataset=name, model=model)]


def _cell(values: list[float]) -> str:
    if not values:
        return ""
    digits = 3 if abs(values[0]) < 20 else 2
    text = f"{np.mean(values):.{digits}f}"
    if len(values) > 1:
        text += f" ± {np.std(values, ddof=1):.{digits}f} ({len(values)})"
    return text.replace("-", MINUS)


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
    text = (
        "## Test log-likelihood\n\nMean over seeds ± standard deviation, the number of seeds in "
        "brackets; a single number is one seed. The average is one mixture made of several fits of "
        "the family that does best on the validation rows. Joined families are one mixture too, "
        "made of such averages of all families, with the shares under which the validation rows "
        "are most probable.\n\n"
    )
    return text + _table(["data", *COLUMNS, BEST], rows)


def _verdict(store: Store, sets: list[str]) -> str:
    known = published()
    ahead: list[str] = []
    equal: list[str] = []
    behind: list[str] = []
    for name in sets:
        cells = [row for model in SEVERAL for row in store.find(dataset=name, model=model)]
        if not cells or name not in known:
            continue
        chosen = max(cells, key=lambda row: float(row["valid"]))
        gap = float(chosen["test"]) - float(known[name]["best"])
        text = f"{name} ({gap:+.3f})".replace("-", MINUS)
        # Published figures have two decimals: a gap below half of the last one is no difference.
        (ahead if gap > 0.005 else behind if gap < -0.005 else equal).append(text)
    lines = [
        "## Compared with the best of the published tables listed\n",
        "The average or the joined families, whichever is better on the validation rows. The test "
        "rows are the same, but not the models: a gap of less than about two standard errors of "
        "the mean over test rows is no evidence of anything.\n",
    ]
    for label, names in (("Ahead", ahead), ("Equal to two decimals", equal), ("Behind", behind)):
        lines.append(f"{label}: {', '.join(names) if names else 'none'}.\n")
    return "\n".join(lines)


def _settings(store: Store, sets: list[str]) -> str:
    rows = []
    for name in sets:
        line = [name]
        for model in CHOSEN:
            cells = store.find(dataset=name, model=model)
            line.append(_describe(cells[0]) if cells else "")
        rows.append(line)
    text = (
        "## Settings chosen on the validation rows\n\nNumber of components (or of hidden states), "
        "pseudo-rows of the pooled prior and, where there are edges, pseudo-rows that pull them "
        "towards independence. For joined families: the number of fits of each, and its "
        "share.\n\n"
    )
    return text + _table(["data", *CHOSEN], rows)


def _describe(row: Row) -> str:
    if row["model"] == JOINED:
        return str(row["family"])
    text = f"{row['n_components']}, {float(row['pooling']):g}"
    if float(row["shrinkage"]) > 0:
        text += f", {float(row['shrinkage']):g}"
    if row["model"] == AVERAGE:
        text = f"{row['n_averaged']} fits of {row['family']}: {text}"
    return text


def _costs(store: Store, sets: list[str]) -> str:
    rows = []
    for name in sets:
        line = [name]
        for model in COLUMNS:
            cells = store.find(dataset=name, model=model)
            line.append(_cost(cells) if cells else "")
        rows.append(line)
    text = (
        "## Seconds and size\n\nSeconds for one fit (for averages and joined families: all fits), "
        "seconds for the search in brackets, and number of parameters.\n\n"
    )
    return text + _table(["data", *COLUMNS], rows)


def _cost(cells: list[Row]) -> str:
    seconds = np.mean([float(row["seconds"]) for row in cells])
    searched = [float(row["search_seconds"]) for row in cells if row.get("search_seconds")]
    text = f"{seconds:.1f}"
    if searched:
        text += f" ({searched[0]:.0f})"
    return f"{text}; {_size(int(cells[0]['n_parameters']))}"


def _size(number: int) -> str:
    return f"{number / 1e6:.1f}M" if number >= 1e6 else f"{number / 1e3:.0f}k"


def _literature(sets: list[str]) -> str:
    known: dict[str, Any] = published()
    rows = [
        [name, *(known[name][model].replace("-", MINUS) for model in PUBLISHED)]
        for name in sets
        if name in known
    ]
    text = (
        "## Published test log-likelihoods\n\nThe tables that were seen. Single figures of the "
        "best column come from papers that report on few of these sets, and are named there "
        "(accidents: gated HCLT, arXiv 2608.12869). Not seen, and so not compared: *Continuous "
        "Mixtures of Tractable Probabilistic Models* (AAAI 2023), *Probabilistic Integral "
        "Circuits* (2024) and ensembles of LearnPSDD, the first two of which claim the state of "
        "the art.\n\n"
    )
    return text + _table(["data", *PUBLISHED], rows)
