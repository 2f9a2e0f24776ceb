"""Missing entries in batches of labelled rows."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.data.examples import Examples
from exchangeable.data.groups import Group
from exchangeable.data.observed import Observed, flags
from exchangeable.data.rows import Rows, as_rows
from exchangeable.families.blocks.model import BlockModel
from exchangeable.families.common.em_data import InMemory

STEPS = 5
"""Steps of EM in which a batch converges."""


def drawn_rows(
    before: BlockModel, observed: Observed, groups: Sequence[Group], alpha: float
) -> Rows:
    """Return the rows of a batch with missing entries drawn from their class, once it was seen.

    Before that they are drawn from the variables' frequencies in the batch.
    """
    matrix = flags(observed.ones).astype(np.uint8)
    examples, posterior = _labelled(observed, groups)
    first = BlockModel.of_known_entries(examples, posterior, alpha)
    for y, group in enumerate(groups):
        model = before if before.totals[y] > 0 else first
        members = np.asarray(group.members)
        matrix[members] = model.draw(observed.take(members), y, np.random.default_rng(y))
    return as_rows(matrix, None)


def with_expected(
    model: BlockModel,
    drawn: Sequence[FloatArray],
    observed: Observed,
    groups: Sequence[Group],
    alpha: float,
    n_jobs: int | None,
) -> BlockModel:
    """Return the model with expected counts of the batch in place of those drawn."""
    examples = _labelled(observed, groups)[0]
    pairs = zip(model.histograms, drawn, strict=True)
    others = [whole - own for whole, own in pairs]
    # A sample of all rows may have fewer of a count than the batch alone.
    kept = [
        bool((other > -1e-9 * total).all())
        for other, total in zip(others, model.totals, strict=True)
    ]
    for _ in range(STEPS):
        sums = model.expect(InMemory(examples, n_jobs=n_jobs), np.zeros(len(groups)))
        histograms = [
            np.maximum(other, 0.0) + own if keep else whole
            for other, own, keep, whole in zip(
                others, sums.histograms, kept, model.histograms, strict=True
            )
        ]
        model = replace(model, histograms=histograms)
        model.set_tables(alpha, n_jobs)
    return model


def _labelled(observed: Observed, groups: Sequence[Group]) -> tuple[Examples, FloatArray]:
    """Return the rows of a batch with their weights and classes, and these as posteriors."""
    weights, clamp = np.zeros(observed.n_rows), np.zeros(observed.n_rows, dtype=np.int64)
    for y, group in enumerate(groups):
        weights[group.members] = group.weights if group.weights.size else 1.0
        clamp[group.members] = y
    examples = Examples(observed.ones, weights, clamp, holes=observed.holes)
    return examples, (clamp[:, None] == np.arange(len(groups))).astype(np.float64)
