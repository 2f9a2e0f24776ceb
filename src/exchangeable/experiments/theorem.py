"""Theorem 4.4 as an experiment: learning curves for several Boolean functions.

The theorem says that an MEVM classifier is optimal under zero-one loss for conjunctions,
disjunctions and symmetric functions. Here blocks and parameters are learned from increasing numbers
of training rows, and accuracy is measured on test rows.
"""

from collections.abc import Callable

from exchangeable.datasets import make_boolean
from exchangeable.experiments.classifiers import BY_NAME, run_entrant
from exchangeable.experiments.problems import Problem
from exchangeable.experiments.scale import Scale
from exchangeable.experiments.store import Row
from exchangeable.experiments.tasks import Task

FUNCTIONS = {
    "conjunction": "fair",
    "disjunction": "fair",
    "parity": "uniform",
    "counting": "uniform",
    "threshold": "uniform",
    "exact": "uniform",
}
"""The functions, and how their rows are drawn: "fair" bits, as in the proof of the theorem, or a
"uniform" number of ones, as in the paper's experiments."""
MODELS = ("MEVM, evidence", "MEVM", "NB", "LogisticRegression", "DT")
N_VARIABLES, N_TEST, SLOW_ROWS = 100, 10_000, 10_000


def theorem_tasks(scale: Scale, n_jobs: int | None = None) -> list[Task]:
    """Return the points of the curves; slow classifiers are trained on at most 10,000 rows."""
    tasks = []
    for n_train in scale.curve_sizes:
        for function in FUNCTIONS:
            for seed in range(scale.curve_seeds):
                for model in MODELS:
                    slow = BY_NAME[model].slow
                    if slow and n_train > SLOW_ROWS:
                        continue
                    cell = {"function": function, "model": model, "n_train": n_train, "seed": seed}
                    work = _work(function, model, n_train, seed, n_jobs)
                    rank = (1 if slow else 0, False, slow, n_train, function, seed)
                    cost = 0.05 + n_train / 2e5 * (10 if slow else 1)
                    tasks.append(Task("theorem", cell, work, cost, rank))
    return tasks


def _work(
    function: str, model: str, n_train: int, seed: int, n_jobs: int | None
) -> Callable[[], Row]:
    def work() -> Row:
        ones = FUNCTIONS[function]
        train = make_boolean(function, n_train, N_VARIABLES, 2 * seed, ones=ones)
        test = make_boolean(function, N_TEST, N_VARIABLES, 2 * seed + 1, ones=ones)
        row = run_entrant(BY_NAME[model], Problem(*train, *test), None, n_jobs, keep_right=False)
        row["base_rate"] = f"{max(test[1].mean(), 1 - test[1].mean()):.6f}"
        return {name: row[name] for name in ("accuracy", "base_rate", "n_test", "n_variables")}

    return work
