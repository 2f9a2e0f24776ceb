"""Random tables of blocks, and counts expected in rows with holes, written out plainly."""

import numpy as np
from scipy.special import comb, logsumexp

from exchangeable.families.common.tables import Tables


def random_tables(rng, partitions):
    """Return tables of random distributions of counts."""
    tables = Tables.layout(partitions)
    for y, partition in enumerate(partitions):
        parts = []
        for m in partition.sizes:
            ways = comb(m, np.arange(m + 1))
            parts.append(np.log(rng.dirichlet(np.ones(m + 1))) - np.log(ways))
        tables.of_class(y)[:] = np.concatenate(parts)
    return tables


def expected_counts(symbols, weights, partition, table):
    """Return the mass of each count, the hidden ones of each row and block spread out."""
    histogram = np.zeros(partition.table_size)
    log_p = np.zeros(len(symbols))
    for start, block in zip(partition.starts, partition.blocks, strict=True):
        known, hidden = (symbols[:, block] == 1).sum(axis=1), (symbols[:, block] < 0).sum(axis=1)
        for i, (c, h) in enumerate(zip(known, hidden, strict=True)):
            entries = start + c + np.arange(h + 1)
            term = table[entries] + np.log(comb(h, np.arange(h + 1)))
            log_p[i] += logsumexp(term)
            histogram[entries] += weights[i] * np.exp(term - logsumexp(term))
    return histogram, log_p
