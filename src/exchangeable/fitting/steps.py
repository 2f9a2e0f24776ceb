"""EM by steps over batches of rows with a decreasing rate, which gets far in a few passes.

Ordinary EM makes one step per pass over all rows. Here every batch is followed by a step: sums move
towards those of the batch, by large steps first and then smaller ones, and parameters follow. After
twenty passes a hidden tree is as good as after a hundred steps over all rows, and often reaches a
better optimum. This is for families that opt in (`Family.steps`), and for fits in which held-out
rows choose among the passes. The run ends when the rate has fallen: further steps over all rows
improve little, and slowly. Checkpoints store a run only after it has ended, because the next step
needs sums and random numbers that they do not contain.
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
"""Number of passes over all rows, and number of passes without progress after which to stop."""
SCHEDULE = (0.0, 0.3, 0.8, 1.0), (0.9, 0.1, 0.05, 0.01)
"""Fractions of all passes, and the rate of the steps at these."""
UNSTEADY = int(SCHEDULE[0][1] * EPOCHS)
"""Number of passes at a rate so high that the held-out likelihood may decrease."""
STEPS, FEWEST = 48, 8
"""Batches per pass, within limits on their size, and the minimum number of smallest batches."""
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
    """Return the state after steps over batches, or the given state if the family has none."""
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
    """Return the progress of the steps, from which nothing can continue."""
    return OnTheWay(state.n_iter, False, state.told)


def batches(weights: FloatArray, epoch: int, rng: np.random.Generator) -> list[Batch]:
    """Return the random batches of a pass over all rows.

    A row with a large weight is in several batches, with part of its weight in each.

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
