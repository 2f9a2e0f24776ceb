"""Tables 1 to 3 from the finished cells."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.stats import ttest_rel

from exchangeable.experiments.classifiers import entrants_of
from exchangeable.experiments.paper import paper_figure, paper_figures
from exchangeable.experiments.problems import BOOLEAN, COLLECTIONS, DATASETS, run_names
from exchangeable.experiments.scale import Scale
from exchangeable.experiments.store import Row, Store
from exchangeable.experiments.views.parts import (
    MISSING,
    NOT_RUN,
    PLAIN,
    Cell,
    Difference,
    Section,
    TableView,
    compared,
    state_of,
)

SIGNIFICANT = 0.01
Scores = npt.NDArray[np.float64]


def allowed_gap(dataset: str) -> float:
    """Return how far an accuracy may differ from the paper's; splits of enron1 are random."""
    return 0.01 if dataset == "enron1" else 0.005


def properties_section(store: Store) -> Section:
    """Return Table 1: sizes, and blocks of the paper's sweep."""
    head = ("data", "variables", "training rows", "test rows", "blocks (paper)")
    rows, published = [], paper_figures("properties")
    for dataset in DATASETS:
        finished = store.find(dataset=dataset, model="MEVM")
        known = published[dataset]
        wanted = f"{known['blocks_mean']} ± {known['blocks_sd']}"
        if not finished:
            rows.append([Cell(dataset)] + [Cell(NOT_RUN, state=MISSING)] * 4)
            continue
        blocks = [int(number) for row in finished for number in row["blocks"].split()]
        sizes = []
        for column, name in (
            ("n_variables", "variables"),
            ("n_train", "train"),
            ("n_test", "test"),
        ):
            mean = np.mean([float(row[column]) for row in finished])
            sizes.append(Cell(f"{mean:,.1f} ({float(known[name]):,.1f})"))
        counts = Cell(f"{np.mean(blocks):.1f} ± {np.std(blocks):.1f} ({wanted})")
        rows.append([Cell(dataset), *sizes, counts])
    text = "Averages over runs (pairs of classes, folds or draws); the paper's in brackets."
    view = TableView("Properties of the classification sets (Table 1)", text, head, rows)
    return Section("Classification sets", "", [view])


def accuracy_section(table: str, store: Store, scale: Scale) -> Section:
    """Return Table 2 or 3: our accuracies and the paper's, the best in bold."""
    entrants = entrants_of(scale)
    names = [entrant.name for entrant in entrants]
    rows, differences = [], list[Difference]()
    for dataset in DATASETS if table == "two-class" else COLLECTIONS:
        runs = run_names(table, dataset, scale)
        by_model = {name: store.find(dataset=dataset, model=name) for name in names}
        best = best_models(table, by_model)
        cells = [Cell(dataset)]
        for entrant in entrants:
            finished = by_model[entrant.name]
            if not finished:
                cells.append(Cell(NOT_RUN, state=MISSING))
                continue
            ours = float(np.mean([float(row["accuracy"]) for row in finished]))
            paper, allowed = paper_figure(table, dataset, entrant.column), allowed_gap(dataset)
            note = _note(dataset, finished, runs, scale)
            cells.append(compared(ours, paper, 3, allowed, entrant.name in best, note))
            if paper is not None:
                state = state_of(ours, paper, allowed) if len(finished) == len(runs) else PLAIN
                args = (table, dataset, entrant.name, ours, paper, state)
                differences.append(Difference(*args))
        rows.append(cells)
    number, what = ("2", "pairs of classes") if table == "two-class" else ("3", "all classes")
    text = (
        "Ours (the paper's, the difference). Bold: not significantly worse than the best of the "
        f"row (paired t-test over {'runs' if table == 'two-class' else 'test rows'}, p < 0.01). "
        "Both kinds of MEVM are compared with the paper's MEVM. Beyond the paper: hybrid training, "
        "with one component per class and with 20 of them."
    )
    view = TableView(f"Accuracy, {what} (Table {number})", text, ("data", *names), rows)
    return Section(f"Classification: {what}", "", [view], differences=differences)


def _note(dataset: str, finished: Sequence[Row], runs: Sequence[str], scale: Scale) -> str:
    """Return a cell's note: fewer runs than planned, or fewer rows than in the paper."""
    note = ""
    if len(finished) < len(runs):
        note += f" [{len(finished)} of {len(runs)} runs]"
    size = int(finished[0]["n_train"])
    if dataset in BOOLEAN and size < scale.boolean_rows:
        note += f" [{size:,} rows]"
    elif dataset not in BOOLEAN and scale.name != "full":
        note += f" [{int(np.mean([int(row['n_train']) for row in finished])):,} rows]"
    return note


def best_models(table: str, by_model: dict[str, list[Row]]) -> set[str]:
    """Return the model with the highest mean, and those that are not significantly worse."""
    scores = {name: _scores(table, rows) for name, rows in by_model.items() if rows}
    if not scores:
        return set()
    first = max(scores, key=lambda name: float(np.mean(list(scores[name].values()))))
    best = {first}
    for name, own in scores.items():
        shared = sorted(set(own) & set(scores[first]))
        gaps = np.array([scores[first][run] - own[run] for run in shared])
        if not gaps.any() or (len(shared) > 1 and _p_value(gaps) >= SIGNIFICANT):
            best.add(name)
    return best


def _p_value(gaps: Scores) -> float:
    if np.ptp(gaps) == 0:
        return 0.0
    return float(ttest_rel(gaps, np.zeros_like(gaps)).pvalue)


def _scores(table: str, rows: Sequence[Row]) -> dict[str, float]:
    """Return the pairs for the test: accuracies of runs, or which test rows were correct."""
    if table == "two-class":
        return {row["run"]: float(row["accuracy"]) for row in rows}
    bits = np.unpackbits(np.frombuffer(bytes.fromhex(rows[0]["right"]), dtype=np.uint8))
    return {str(i): float(bit) for i, bit in enumerate(bits[: int(rows[0]["n_test"])])}
