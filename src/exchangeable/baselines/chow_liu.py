"""The tree over the variables with the highest likelihood (Chow and Liu 1968)."""

from typing import Any, Self

import numpy as np

from exchangeable.arrays import FloatArray, IntArray, check_sample_weight
from exchangeable.baselines.base import TreeEstimator
from exchangeable.baselines.tree import BinaryTree, Table
from exchangeable.families.common import forest_kernels, forests
from exchangeable.runtime.attempts import all_or_nothing


class ChowLiuTree(TreeEstimator):
    """Density estimator: the tree of binary variables that maximises the likelihood.

    The edges are those of the spanning tree with the greatest total mutual information. Each
    variable then depends on its parent alone.

    Parameters
    ----------
    alpha : float, default=0.1
        Laplace smoothing: added to the number of rows with each value of a variable, given each
        value of its parent, and to the four cells of a pair when mutual information is computed.
    binarize : float or None, default=0.0
        Entries greater than this are on. With None all entries must be 0 or 1.
    n_jobs : int, optional
        Number of threads that score rows; all cores by default.

    Attributes
    ----------
    edges_ : ndarray of shape (n_edges, 2)
        One row (variable, parent) per edge.
    n_parameters_ : int
        Number of free parameters.
    log_likelihood_ : float
        Average log-likelihood of the training rows.

    Examples
    --------
    >>> import numpy as np
    >>> from exchangeable.baselines import ChowLiuTree
    >>> rng = np.random.default_rng(0)
    >>> first = rng.integers(0, 2, size=1000)
    >>> second = first ^ (rng.random(1000) < 0.1)
    >>> third = second ^ (rng.random(1000) < 0.1)
    >>> tree = ChowLiuTree().fit(np.stack([first, second, third], axis=1))
    >>> tree.edges_.tolist()
    [[1, 0], [2, 1]]
    """

    def __init__(
        self, *, alpha: float = 0.1, binarize: float | None = 0.0, n_jobs: int | None = None
    ) -> None:
        self.alpha = alpha
        self.binarize = binarize
        self.n_jobs = n_jobs

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the tree and its parameters.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Examples; an entry greater than `binarize` is on.
        y : ignored
            Present for scikit-learn's sake.
        sample_weight : array-like of shape (n_samples,), optional
            How much each row counts, 1 by default.
        """
        alpha = self._check_alpha()
        rows = self._binary(X, reset=True)
        table = Table.of(rows, check_sample_weight(sample_weight, len(rows)))
        parent = chow_liu_parents(table, alpha)
        self._tree = fit_seen(BinaryTree.of_parents(parent, rows.shape[1]), table, alpha)
        scores = self._tree.log_probabilities(table.columns, self.n_jobs)
        self.log_likelihood_ = float(scores @ table.weight / table.total)
        return self


def chow_liu_parents(table: Table, alpha: float) -> IntArray:
    """Return each variable's parent in the Chow-Liu tree, the number of variables for a root."""
    weight, ones, both = table.pair_counts(alpha)
    gains: FloatArray = np.empty_like(both)
    forest_kernels.pair_gains(weight, ones, both, 0.0, gains)
    return forests.best_tree(gains).astype(np.int64)


def fit_seen(tree: BinaryTree, table: Table, alpha: float) -> BinaryTree:
    """Return a tree without hidden nodes with the parameters that maximise the likelihood."""
    _, ones, both = table.pair_counts()
    joint = np.zeros((tree.parent.size, 2, 2))
    for v, p in enumerate(tree.parent):
        on = ones[tree.node[v]]
        if p < 0:
            joint[v, :, 0] = table.total - on, on
            continue
        above, together = ones[tree.node[p]], both[tree.node[v], tree.node[p]]
        joint[v, 1] = on - together, together
        joint[v, 0] = table.total - above - (on - together), above - together
    return tree.step(np.maximum(joint, 0.0), alpha)
