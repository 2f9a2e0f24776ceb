"""The edges of a tree of hidden states: which blocks are joined, and their parameters."""

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families.common.forests import best_tree

DISTURBANCE = 0.5
"""Standard deviation of the log of the random factors that multiply mutual information."""
LEAST_GAIN = 1e-9
"""Blocks without mutual information are joined nevertheless, because a tree has one root."""


def table_gains(both: FloatArray, starts: IntArray, total: float) -> FloatArray:
    """Return the total weight of the rows times the mutual information of every two blocks.

    Parameters
    ----------
    both : array of shape (n_values, n_values)
        The weight of the rows with each value of one block and each of another; on the diagonal,
        that of each value.
    starts : array of shape (n_blocks,)
        The first value of each block.
    total : float
        The total weight of the rows.
    """
    alone = np.diag(both)
    with np.errstate(divide="ignore", invalid="ignore"):
        cells = np.where(both > 0, both * np.log(both * total / np.outer(alone, alone)), 0.0)
    gains = np.add.reduceat(np.add.reduceat(cells, starts, axis=0), starts, axis=1)
    np.fill_diagonal(gains, 0.0)
    return np.asarray(gains)


def rooted_tree(gains: FloatArray, rng: np.random.Generator | None) -> npt.NDArray[np.int32]:
    """Return each block's parent in the tree with the largest gains, perturbed if `rng` is given.

    The root is the block with the largest total gain. There is exactly one, whatever the gains are:
    kernels rely on it.

    >>> rooted_tree(np.full((3, 3), np.nan), None).tolist()
    [3, 0, 0]
    """
    if rng is not None:
        noise = np.triu(rng.normal(0.0, DISTURBANCE, gains.shape), 1)
        gains *= np.exp(noise + noise.T)
    ranked = np.argsort(-gains.sum(axis=1), kind="stable")
    above = best_tree(np.fmax(gains, LEAST_GAIN)[np.ix_(ranked, ranked)])
    parent = np.empty(above.size, dtype=np.int32)
    parent[ranked] = np.append(ranked, above.size)[above]
    return parent


def shrunken_edges(
    parent: npt.NDArray[np.int32], pairs: FloatArray, masses: FloatArray, shrinkage: float
) -> FloatArray:
    """Return P(z_b | z_parent) of every block, shrunk towards independence.

    Parameters
    ----------
    parent : array of shape (n_blocks,)
        Each block's parent.
    pairs : array of shape (n_blocks, n_states, n_states)
        Posterior weight of each state of a block's parent and its own.
    masses : array of shape (n_blocks, n_states)
        The same for each state.
    shrinkage : float
        Pseudo-rows of each row of a table.
    """
    usual = masses / masses.sum(axis=1, keepdims=True)
    edges = pairs + shrinkage * usual[:, None, :]
    edges[parent == parent.size] = 1.0
    edges /= edges.sum(axis=2, keepdims=True)
    return np.asarray(edges)
