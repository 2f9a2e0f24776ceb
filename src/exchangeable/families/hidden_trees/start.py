"""The start of EM for a hidden tree: a mixture of trees.

A state represents a component found by naive Bayes, together with whether the block has many ones.
A child's component tends to be that of its parent, and whether it has many ones depends on whether
its parent has: a mixture of trees. This is only imposed loosely, so that EM can find states of its
own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families.hidden_trees.model import HiddenModel
from exchangeable.families.hidden_trees.tree import HiddenTree
from exchangeable.partitions import Partition

START_POOLING, START_STEPS = 4.0, 15
"""Pseudo-rows and steps of the naive Bayes mixture that EM starts from."""
HELD = 0.9
"""Initial probability that a block's component is that of its parent."""
SURE = 0.9
"""Initial certainty with which a state determines whether the block has many ones."""
SMALL = 1e-3
"""Mass that keeps every pair of states possible."""


@dataclass(frozen=True)
class States:
    """What each state represents at the start.

    Attributes
    ----------
    component : array of shape (n_states,)
        Its component.
    fits : array of shape (n_states, 2)
        Whether it includes blocks with few ones, and blocks with many.

    Examples
    --------
    With an odd number of states the last component is not split.

    >>> states = States.of(3)
    >>> states.component.tolist(), states.fits.tolist()
    ([0, 1, 0], [[True, False], [True, True], [False, True]])
    """

    component: IntArray
    fits: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, n_states: int) -> "States":
        """Return the states of half as many components, rounded up."""
        k = n_components(n_states)
        component = np.concatenate([np.arange(k), np.arange(n_states - k)])
        few = np.arange(n_states) < k
        return cls(component, np.stack([few, ~few | (component >= n_states - k)], axis=1))

    @property
    def split(self) -> npt.NDArray[np.bool_]:
        """Which states represent only blocks with few ones, or only with many."""
        return np.asarray(~self.fits.all(axis=1))

    def joint(self, mass: FloatArray) -> FloatArray:
        """Return the mass of each state of a block's parent and of the block.

        `mass` is by whether the parent has many ones, whether the block has, and component.
        """
        same = self.component[:, None] == self.component
        fits = self.fits.astype(np.float64)
        both = np.einsum("sm,tn,mns->st", fits, fits, mass[:, :, self.component])
        return np.where(same, both, 0.0)


def n_components(n_states: int) -> int:
    """Return the number of components of the naive Bayes mixture behind the states."""
    return (n_states + 1) // 2


def halves(masses: Sequence[FloatArray]) -> IntArray:
    """Return for each block the count up to which it has few ones, about half of the rows.

    >>> halves([np.array([6.0, 4.0]), np.array([1.0, 4.0, 3.0, 2.0])]).tolist()
    [0, 1]
    """
    cuts = [np.abs(np.cumsum(mass / mass.sum())[:-1] - 0.5).argmin() for mass in masses]
    return np.array(cuts, dtype=np.int64)


@dataclass(frozen=True)
class StartMasses:
    """Sums under a naive Bayes mixture, from which states are constructed.

    Attributes
    ----------
    by_count : list of arrays of shape (size + 1, n_components)
        The mass of each count of each block.
    cuts : array of shape (n_blocks,)
        The largest count of each block that counts as few.
    pairs : array of shape (n_blocks, 2, 2, n_components)
        The mass by whether a block's parent has many ones, and whether it has.
    """

    by_count: Sequence[FloatArray]
    cuts: IntArray
    pairs: FloatArray


def mixture_in_disguise(
    partition: Partition,
    parent: npt.NDArray[np.int32],
    start: StartMasses,
    shares: FloatArray,
    n_states: int,
) -> tuple[HiddenModel, FloatArray]:
    """Return the initial hidden tree, and log P of the root's states.

    Parameters
    ----------
    partition, parent
        Blocks, and each block's parent.
    start : StartMasses
        Sums under the naive Bayes mixture.
    shares : array of shape (table_size,)
        The overall share of each count of each block.
    n_states : int
        Number of states of each block.
    """
    states = States.of(n_states)
    log_q = np.empty((partition.table_size, n_states))
    masses = np.empty((partition.n_blocks, n_states))
    for b, (begin, size) in enumerate(zip(partition.starts, partition.sizes, strict=True)):
        entries, number = slice(begin, begin + size + 1), np.arange(size + 1)
        fits = states.fits[:, (number > start.cuts[b]).astype(int)].T
        seen = start.by_count[b][:, states.component] * fits
        log_q[entries] = np.log(_first_counts(seen, shares[entries, None], states.split))
        masses[b] = seen.sum(axis=0)
    edges, root = loose_edges(states, parent, masses, start.pairs)
    return HiddenModel([HiddenTree.make(partition, parent, log_q, edges)]), np.log(root)


def loose_edges(
    states: States, parent: npt.NDArray[np.int32], masses: FloatArray, pairs: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the initial edges, and the probabilities of the root's states.

    Parameters
    ----------
    states : States
        What the states represent.
    parent : array of shape (n_blocks,)
        Each block's parent.
    masses : array of shape (n_blocks, n_states)
        The mass of each state of each block.
    pairs : array of shape (n_blocks, 2, 2, n_components)
        The mass by whether a block's parent has many ones, and whether it has.
    """
    n_blocks, n_states = masses.shape
    edges = np.full((n_blocks, n_states, n_states), 1.0 / n_states)
    root = np.empty(n_states)
    for b in range(n_blocks):
        usual = masses[b] + 1.0 / n_states
        usual /= usual.sum()
        if parent[b] == n_blocks:
            root = usual
            continue
        joint = states.joint(pairs[b]) + SMALL * usual
        edges[b] = HELD * joint / joint.sum(axis=1, keepdims=True) + (1 - HELD) * usual
    return edges, root


def _first_counts(seen: FloatArray, usual: FloatArray, split: npt.NDArray[np.bool_]) -> FloatArray:
    """Return q(l | z) of a block: observed counts, shrunk towards the overall shares."""
    totals = seen.sum(axis=0)
    own = (seen + START_POOLING * usual) / (totals + START_POOLING)
    sure = np.where(totals > 0, seen / np.where(totals > 0, totals, 1.0), usual)
    return np.where(split, SURE * sure + (1 - SURE) * usual, own)
