"""Inner loops of EM over values of statistics: posteriors, and histograms by cell.

A row's *cell* in a block is the position of its value of T, or stands for its pattern of holes. The
cells are the same in every class; tables and histograms have one line per class.
"""

import numpy as np

from exchangeable.families.common.posteriors import NOTHING, settle
from exchangeable.runtime.kernels.cache import compiled
from exchangeable.runtime.kernels.loops import fill
from exchangeable.runtime.kernels.vectors import TILE

_compile = compiled()


@_compile
def score_cells(cells, first_cell, table, rest, span, priors, posterior):  # type: ignore[no-untyped-def]
    """Write the posteriors of a span of rows and return their log-likelihood.

    `cells` has a line per block, whose entries in the table begin at its `first_cell`; `rest` is
    what other variables score, one line per row, or empty. Posteriors that no sum notices are 0.
    """
    log_prior = priors.log_prior
    joint, log_likelihood = np.empty((log_prior.size, TILE)), 0.0
    for begin in range(span[0], span[1], TILE):
        end = min(begin + TILE, span[1])
        for y in range(log_prior.size):
            line = joint[y, : end - begin]
            fill(line, log_prior[y])
            for b in range(cells.shape[0]):
                entry, cell = table[y, first_cell[b] :], cells[b, begin:end]
                for r in range(cell.size):
                    line[r] += entry[cell[r]]
            if rest.size:
                for r in range(line.size):
                    line[r] += rest[begin + r, y]
        log_likelihood += settle(joint, np.int64(0), begin, end, priors, posterior)
        for y in range(log_prior.size):
            share = posterior[y, begin:end]
            for r in range(share.size):
                share[r] = share[r] if share[r] >= NOTHING else 0.0
    return log_likelihood


@_compile
def add_cells(cells, first_cell, weights, posterior, classes, histogram):  # type: ignore[no-untyped-def]
    """Add the rows' shares in some classes to their cells."""
    for y in range(classes[0], classes[1]):
        share = posterior[y]
        for b in range(cells.shape[0]):
            own, cell = histogram[y, first_cell[b] :], cells[b]
            for r in range(cell.size):
                own[cell[r]] += weights[r] * share[r]
