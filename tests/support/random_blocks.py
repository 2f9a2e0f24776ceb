"""Random rows, and random blocks of their variables for several classes."""

import numpy as np

from exchangeable.partitions import Partition


def make(seed=0, n=700, n_variables=150, k=3, density=0.4):
    """Return a generator, rows, and a partition for each of `k` classes."""
    rng = np.random.default_rng(seed)
    X = (rng.random((n, n_variables)) < density).astype(np.int64)
    labels = [np.unique(rng.integers(0, 12, n_variables), return_inverse=True)[1] for _ in range(k)]
    return rng, X, [Partition.from_labels(one) for one in labels]
