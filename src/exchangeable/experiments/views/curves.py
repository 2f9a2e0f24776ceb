"""Theorem 4.4's learning curves and the timings of EM from the finished cells."""

from collections import defaultdict

import numpy as np

from exchangeable.experiments.speed import MODELS as SPEED_MODELS
from exchangeable.experiments.store import Row, Store
from exchangeable.experiments.theorem import FUNCTIONS
from exchangeable.experiments.theorem import MODELS as CURVE_MODELS
from exchangeable.experiments.views.parts import (
    MISSING,
    NOT_RUN,
    Cell,
    ChartView,
    Section,
    TableView,
    plain,
)

Points = list[tuple[float, float]]


def theorem_section(store: Store) -> Section:
    """Return learning curves: accuracy against number of training rows, averaged over draws."""
    rows, charts = [], []
    for function, ones in FUNCTIONS.items():
        lines = {model: _curve(store, function, model) for model in CURVE_MODELS}
        cells = [Cell(function), Cell("fair bits" if ones == "fair" else "uniform count")]
        rates = [float(row["base_rate"]) for row in store.find(function=function)]
        cells.append(Cell(f"{np.mean(rates):.3f}") if rates else Cell(NOT_RUN, state=MISSING))
        cells += [_last(lines[model]) for model in CURVE_MODELS]
        rows.append(cells)
        if any(lines.values()):
            title = f"{function.capitalize()} of 100 variables"
            labels = ("training rows", "test accuracy")
            charts.append(ChartView(f"theorem_{function}", title, *labels, lines))
    head = ("function", "rows drawn by", "larger class", *CURVE_MODELS)
    text = (
        "Accuracy on 10,000 test rows of 100 variables, with the largest number of training rows "
        "(in brackets), averaged over draws. Conjunctions and disjunctions are of three variables."
    )
    view = TableView("Accuracy at the end of the curves", text, head, rows)
    about = (
        "The theorem says that an MEVM is optimal under zero-one loss for conjunctions, "
        "disjunctions and symmetric functions. It is about the model, not about learning it; the "
        "curves show how many rows are needed to learn blocks and parameters."
    )
    return Section("Theorem 4.4: learning curves", about, [view], charts)


def _curve(store: Store, function: str, model: str) -> Points:
    by_size: dict[int, list[float]] = defaultdict(list)
    for row in store.find(function=function, model=model):
        by_size[int(row["n_train"])].append(float(row["accuracy"]))
    return [(size, float(np.mean(scores))) for size, scores in sorted(by_size.items())]


def _last(points: Points) -> Cell:
    if not points:
        return Cell(NOT_RUN, state=MISSING)
    return Cell(f"{points[-1][1]:.3f} ({int(points[-1][0]):,})")


def speed_section(store: Store) -> Section:
    """Return seconds per iteration and to convergence, against the number of variables."""
    names = list(dict.fromkeys(row["dataset"] for row in store.rows))
    names.sort(key=lambda name: (not name.startswith("drawn"), _variables(store, name)))
    rows = []
    for name in names:
        finished = {model: store.find(dataset=name, model=model) for model in SPEED_MODELS}
        cells = [Cell(name), Cell(str(_variables(store, name)))]
        cells += [
            _timing(runs[0]) if runs else Cell(NOT_RUN, state=MISSING) for runs in finished.values()
        ]
        for column in ("per_iteration", "to_convergence"):
            cells.append(_ratio(finished["NB"], finished["MEVM"], column))
        rows.append(cells)
    head = ("data", "variables", *SPEED_MODELS, "NB / MEVM per iteration", "NB / MEVM in total")
    text = (
        "Milliseconds of processor time per iteration, number of iterations, and seconds of "
        "processor time to convergence, summed over all threads: 20 components, averages of three "
        "starts. Ratios above 1 mean that blocks are faster. Drawn sets have 5,000 rows."
    )
    charts = [
        _chart(store, "per_iteration", "speed_iteration", "Seconds per EM iteration, drawn sets"),
        _chart(store, "to_convergence", "speed_convergence", "Seconds to convergence, drawn sets"),
    ]
    about = (
        "The paper reports that EM is faster for MEVM than for naive Bayes, both per iteration and "
        "in total, by up to two orders of magnitude with 100 variables or more. Here both are "
        "measured with our own EM, whose naive Bayes touches only the ones of a row and is "
        "implemented as carefully as its blocks. Seconds depend on the machine and its load; "
        "ratios are more reliable."
    )
    view = TableView("Time of EM", text, head, rows)
    return Section("Speed", about, [view], [chart for chart in charts if any(chart.lines.values())])


def _variables(store: Store, name: str) -> int:
    return int(store.find(dataset=name)[0]["n_variables"])


def _timing(row: Row) -> Cell:
    each, total = float(row["per_iteration"]) * 1000, float(row["to_convergence"])
    return Cell(f"{plain(each, 1)} ms, {row['n_iter']}, {total:.2f} s")


def _ratio(over: list[Row], under: list[Row], column: str) -> Cell:
    if not over or not under:
        return Cell(NOT_RUN, state=MISSING)
    return Cell(f"{float(over[0][column]) / float(under[0][column]):.2f}")


def _chart(store: Store, column: str, name: str, title: str) -> ChartView:
    lines: dict[str, Points] = {}
    for model in SPEED_MODELS:
        drawn = [row for row in store.find(model=model) if row["dataset"].startswith("drawn")]
        lines[model] = sorted((float(row["n_variables"]), float(row[column])) for row in drawn)
    return ChartView(name, title, "variables", "seconds", lines, log_y=True)
