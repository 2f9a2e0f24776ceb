"""EM by steps over batches of rows, whose rate falls: it gets far in a few passes.

A pass of EM over all rows is one step. Here it is a step for every batch: sums move towards those
of the batch, far at first and less and less, and parameters follow. After twenty passes a hidden
tree is as good as after a hundred steps over all rows, and its optimum is often a better one. It is
for families that say so (`Family.steps`), and where held-out rows choose among the passes. The run
ends when the rate has fallen: further steps over all rows gain little, and slowly. Checkpoints hold
a run of steps when it has ended: the next step needs sums and draws that they do not have.
"""

from collections.abc import Callable
from dataclasses import replace
from threading import Event

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.contract import Family
from exchangeable.families.sums import Batch
from exchangeable.fitting.em import EMState, StopRule, judged
from exchangeable.fitting.progress import OnTheWay
from exchangeable.runtime.interrupts import GivenUp, giving_up

EPOCHS, PATIENCE = 20, 4
"""Passes over all rows, and after how many that do not help it is enough."""
SCHEDULE = (0.0, 0.3, 0.8, 1.0), (0.9, 0.1, 0.05, 0.01)
"""Parts of all passes, and the rate of the steps then."""
UNSTEADY = int(SCHEDULE[0][1] * EPOCHS)
"""Passes in which the rate is so high that held-out rows may grow less likely."""
STEPS, FEWEST = 48, 8
"""Of a pass, unless batches are too small or large, and at least: few rows have no batches."""
SMALLEST, LARGEST = 64, 2048
"""Rows of a batch."""


def take_steps(
    data: InMemory,
    family: Family,
    state: EMState,
    rule: StopRule,
    rng: np.random.Generator,
    report: Callable[[EMState | OnTheWay], None] = lambda state: None,
    stop: Event | None = None,
) -> EMState:
    """Return where steps over batches lead to, the state itself where the family takes none."""
    valid = family.problem.valid
    few = data.weights.size < FEWEST * SMALLEST
    if valid is None or few or type(family).steps is Family.steps:
        return state
    mixture, sums = state.mixture, data.expect(state.mixture)
    state = judged(state, mixture, sums, data, valid, rule)
    report(_on_the_way(state))
    for epoch in range(min(EPOCHS, rule.max_iter)):
        if stop is not None and stop.is_set():
            return state
        try:
            with giving_up():
                taken = family.steps(data, mixture, sums, batches(data.weights, epoch, rng))
                if taken is None:
                    return state
                mixture, sums = taken
                state = judged(state, mixture, sums, data, valid, rule, sums.totals)
        except GivenUp:
            return state
        report(_on_the_way(state))
        if state.n_iter - max(state.best_iter, UNSTEADY) >= PATIENCE:
            break
    state = replace(state, converged=state.n_iter >= EPOCHS or state.n_iter < rule.max_iter)
    report(state if state.converged else _on_the_way(state))
    return state


def _on_the_way(state: EMState) -> OnTheWay:
    """Return how far steps are, as what cannot be gone on from."""
    return OnTheWay(state.n_iter, False, state.told)


def batches(weights: FloatArray, epoch: int, rng: np.random.Generator) -> list[Batch]:
    """Return the batches of a pass over all rows, by chance.

    A row that weighs more than others is in several batches, with a part of its weight in each.

    Examples
    --------
    >>> found = batches(np.array([1.0] * 190 + [11.0] * 10), 0, np.random.default_rng(0))
    >>> [(batch.rows.size, float(batch.weights.sum()), round(batch.rate, 2)) for batch in found]
    [(74, 302.0, 0.9), (73, 299.0, 0.86), (73, 299.0, 0.81)]
    """
    n_rows, total = weights.size, float(weights.sum())
    size = int(np.clip(n_rows // STEPS, SMALLEST, LARGEST))
    count = max(1, n_rows // size)
    copies = np.clip(np.ceil(weights * (n_rows / total)).astype(np.int64), 1, count)
    order = rng.permutation(n_rows)
    rows, share = np.repeat(order, copies[order]), count * weights / copies
    progress = (epoch + np.arange(count) / count) / EPOCHS
    rates = np.interp(progress, *SCHEDULE)
    return [
        Batch(part, share[part], float(rate))
        for part, rate in zip((rows[b::count] for b in range(count)), rates, strict=True)
    ]
