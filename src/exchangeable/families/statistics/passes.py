"""A pass of EM over rows whose values of the statistics are known."""

from collections.abc import Sequence

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.data.examples import Examples
from exchangeable.families.common.posteriors import RowPriors
from exchangeable.families.statistics import kernels
from exchangeable.families.statistics.values import Values
from exchangeable.runtime.threads import row_ranges, run


def over_cells(
    examples: Examples,
    values: Sequence[Values],
    urns: Sequence[FloatArray],
    rest: FloatArray,
    log_prior: FloatArray,
    n_jobs: int | None,
) -> tuple[float, FloatArray, list[FloatArray]]:
    """Return the log-likelihood, the posteriors, and the histograms of each block.

    `urns` are the log-probabilities of a member of each S_t of each block, in each class; `rest` is
    the score of the other variables, one line per row, or empty.
    """
    n_classes, n_rows = log_prior.size, examples.rows.n_rows
    tables = [each.table(own) for each, own in zip(values, urns, strict=True)]
    first_cell = np.cumsum([0, *map(len, tables)])
    table = np.ascontiguousarray(np.concatenate(tables).T)
    cells = np.stack([each.cells for each in values])
    posterior, histogram = np.empty((n_classes, n_rows)), np.zeros(table.shape)
    priors = RowPriors(examples.weights, examples.clamp, log_prior)

    def score(span: tuple[int, int]) -> float:
        found = kernels.score_cells(cells, first_cell, table, rest, span, priors, posterior)
        return float(found)

    def add(classes: tuple[int, int]) -> None:
        kernels.add_cells(cells, first_cell, examples.weights, posterior, classes, histogram)

    log_likelihood = sum(run(score, examples.parts(n_classes * (len(values) + 2.0)), n_jobs))
    run(add, row_ranges(n_classes, 1 + n_classes // 4), n_jobs)
    by_block = np.split(histogram.T, first_cell[1:-1])
    expected = zip(values, by_block, urns, strict=True)
    return log_likelihood, posterior.T, [each.expected(*sums) for each, *sums in expected]
