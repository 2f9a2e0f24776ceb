"""Tables 4 and 5 from the finished cells, and the rest of the benchmark."""

import numpy as np
from scipy.stats import wilcoxon

from exchangeable.arrays import FloatArray
from exchangeable.datasets._density import DENSITY_SETS
from exchangeable.experiments.beyond.report import BEST, published
from exchangeable.experiments.density import COLUMNS, LEARN_SPN, MODELS, OTHER_SETS, PAPER_SETS
from exchangeable.experiments.paper import paper_figure
from exchangeable.experiments.store import Store
from exchangeable.experiments.views.parts import (
    MISSING,
    NOT_RUN,
    PLAIN,
    Cell,
    Difference,
    Section,
    TableView,
    compared,
    plain,
    state_of,
)

ALLOWED = 0.01
"""Share of the paper's log-likelihood by which ours may differ."""
PUBLISHED = {"ACMN": "acmn", "SPN": "spn"}
PAPER_TESTS = {"NB": 0.0124, "LTM": 0.0188, "CL": 0.0022, "ACMN": 0.6384, "SPN": 0.7566}


def density_section(store: Store) -> Section:
    """Return test log-likelihoods of the paper's twelve sets and of the other eight, and tests."""
    differences: list[Difference] = []
    columns = (*MODELS, *([LEARN_SPN] if store.find(model=LEARN_SPN) else []))
    rows = [_row(store, name, columns, differences) for name in PAPER_SETS]
    head = ("data", *columns, *(f"{name} (published)" for name in PUBLISHED))
    text = (
        "Average log-likelihood of the test rows: ours (the paper's, the difference). Bold: the "
        "highest of ours. 20 components; of ten runs the one with the highest training likelihood "
        "is kept. MEVM and NB start as in the paper, with rows assigned to components at random."
    )
    tables = [TableView("Density (Table 5)", text, head, rows), _blocks(store)]
    tables += [_tests(store), _others(store, columns)]
    return Section("Density", "", tables, differences=differences)


def test_score(store: Store, dataset: str, model: str) -> float | None:
    """Return the average test log-likelihood of a finished cell, None if it has not been run."""
    rows = store.find(dataset=dataset, model=model)
    return float(rows[0]["test"]) if rows else None


def _row(
    store: Store, dataset: str, models: tuple[str, ...], differences: list[Difference]
) -> list[Cell]:
    scores = {model: test_score(store, dataset, model) for model in models}
    highest = max((value for value in scores.values() if value is not None), default=0.0)
    cells = [Cell(dataset)]
    for model, ours in scores.items():
        if ours is None:
            cells.append(Cell(NOT_RUN, state=MISSING))
            continue
        paper = paper_figure("density", dataset, COLUMNS.get(model))
        allowed = ALLOWED * abs(paper or ours)
        cells.append(compared(ours, paper, 2, allowed, round(ours, 2) == round(highest, 2)))
        if paper is not None:
            state = state_of(ours, paper, allowed)
            differences.append(Difference("density", dataset, model, ours, paper, state))
    figures = [paper_figure("density", dataset, column) for column in PUBLISHED.values()]
    return cells + [Cell("" if figure is None else plain(figure, 2)) for figure in figures]


def _blocks(store: Store) -> TableView:
    rows = []
    for dataset in PAPER_SETS:
        record = DENSITY_SETS[dataset]
        train, _, test = record.n_rows
        cells = [Cell(dataset), *(Cell(f"{n:,}") for n in (record.n_variables, train, test))]
        figures = [paper_figure("density", dataset, f"blocks_{name}") for name in ("mean", "sd")]
        for model in ("MEVM", "MEVM, evidence"):
            finished = store.find(dataset=dataset, model=model)
            if not finished:
                cells.append(Cell(NOT_RUN, state=MISSING))
                continue
            mean, deviation = (float(finished[0][f"blocks_{name}"]) for name in ("mean", "sd"))
            cells.append(Cell(f"{mean:.1f} ± {deviation:.1f}"))
        tree = store.find(dataset=dataset, model="LTM")
        shape = f"{tree[0]['method']}, {tree[0]['n_hidden']}" if tree else NOT_RUN
        cells.append(Cell(f"{figures[0]} ± {figures[1]}"))
        rows.append([*cells, Cell(shape, state=PLAIN if tree else MISSING)])
    head = (
        "data",
        "variables",
        "training rows",
        "test rows",
        "MEVM",
        "MEVM, evidence",
        "paper's MEVM",
        "LTM: method, hidden nodes",
    )
    text = (
        "Mean and standard deviation of the number of blocks over components, and the method that "
        "was chosen for the latent tree on the validation rows."
    )
    return TableView("Properties of the density sets (Table 4)", text, head, rows)


def _tests(store: Store) -> TableView:
    """Return Wilcoxon's signed-rank tests over the sets that are finished for both models."""
    rows = []
    for rival, paper in PAPER_TESTS.items():
        cells = [Cell(rival)]
        for model in ("MEVM", "MEVM, evidence"):
            pairs = []
            for dataset in PAPER_SETS:
                own = test_score(store, dataset, model)
                other = (
                    paper_figure("density", dataset, PUBLISHED[rival])
                    if rival in PUBLISHED
                    else test_score(store, dataset, rival)
                )
                if own is not None and other is not None:
                    pairs.append(own - other)
            cells.append(_wilcoxon(np.array(pairs)))
        rows.append([*cells, Cell(f"{paper:.4f}")])
    text = (
        "Two-sided p-values over the twelve sets, and on how many of them the MEVM is ahead. NB, "
        "LTM and CL are ours, ACMN and SPN published."
    )
    head = ("against", "MEVM", "MEVM, evidence", "paper")
    return TableView("Wilcoxon signed-rank tests", text, head, rows)


def _wilcoxon(gaps: FloatArray) -> Cell:
    if gaps.size < 2 or not gaps.any():
        return Cell(NOT_RUN, state=MISSING)
    p_value = float(wilcoxon(gaps).pvalue)
    return Cell(f"{p_value:.4f} (ahead on {int((gaps > 0).sum())} of {gaps.size})")


def _others(store: Store, models: tuple[str, ...]) -> TableView:
    best = published()
    rows = []
    for dataset in OTHER_SETS:
        figure = f"{plain(float(best[dataset]['best']), 2)} ({best[dataset]['best_model']})"
        rows.append([*_row(store, dataset, models, [])[: len(models) + 1], Cell(figure)])
    text = (
        "Sets of the benchmark that the paper leaves out, with the best of the published tables "
        "listed in density.md. Sets "
        "that are not in the data folder are downloaded with `--download`."
    )
    return TableView("The rest of the benchmark", text, ("data", *models, BEST), rows)
