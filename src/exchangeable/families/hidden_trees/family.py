"""The family of hidden trees: which tree, where EM starts, and how sums become parameters.

The tree is the Chow-Liu tree over the counts of the blocks. The first of several runs learns it
from the rows, the others from what the rows tell about pairs, disturbed at random: runs whose trees
differ make a better average.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray
from exchangeable.data.examples import Examples
from exchangeable.data.observed import flags
from exchangeable.families.common import forest_kernels, forests, log_linear
from exchangeable.families.common.expectation import HiddenSums
from exchangeable.families.common.log_linear import Sums
from exchangeable.families.common.pool import Pool
from exchangeable.families.hidden_trees.model import HiddenModel, HiddenTree
from exchangeable.families.hidden_trees.start import mixture_in_disguise
from exchangeable.families.urns.family import DensityModel
from exchangeable.partitions import Partition

DISTURBANCE = 0.5
"""Standard deviation of the logarithm of what mutual information is multiplied by."""
NOTHING = 1e-12
"""Smaller posteriors do not count when EM starts."""
LEAST_GAIN = 1e-9
"""Blocks that tell nothing about each other are joined nevertheless: a tree has one root."""


@dataclass(frozen=True)
class HiddenFamily:
    """Trees of blocks with hidden states.

    Attributes
    ----------
    pool : Pool
        The prior of the counts: pseudo-rows of each state of each block.
    shrinkage : float
        Pseudo-rows of each state of a block's parent that pull the edge towards independence.
    partition : Partition
        The blocks.
    shares : array of shape (table_size,)
        The share of the training set with each count of each block, none of them zero.
    """

    pool: Pool
    shrinkage: float
    partition: Partition
    shares: FloatArray

    @classmethod
    def of(cls, pool: Pool, shrinkage: float, partition: Partition) -> "HiddenFamily":
        """Return the family of given blocks."""
        shares = pool.smooth(partition, pool.histograms([partition])[0])
        alone = np.flatnonzero(partition.sizes == 1)
        means = pool.means[[int(partition.blocks[b][0]) for b in alone]]
        shares[partition.starts[alone]] = 1 - means
        shares[partition.starts[alone] + 1] = means
        return cls(pool, shrinkage, partition, shares)

    def first(
        self,
        examples: Examples,
        posterior: FloatArray,
        n_states: int,
        rng: np.random.Generator | None = None,
    ) -> tuple[HiddenModel, FloatArray]:
        """Return where EM starts, and the probabilities of the root's states.

        Parameters
        ----------
        examples : Examples
            Rows without holes.
        posterior : array of shape (n_rows, n_components)
            That of the components of a naive Bayes mixture, half as many as states.
        n_states : int
            Number of states of each block.
        rng : Generator, optional
            Disturbs the tree.
        """
        counts = block_counts(examples, self.partition)
        parent = self.learn_tree(examples, counts, rng)
        mass = examples.weights[:, None] * np.where(posterior > NOTHING, posterior, 0.0)
        return mixture_in_disguise(self.partition, parent, counts, mass, self.shares, n_states)

    def following(
        self,
        examples: Examples,
        model: DensityModel,
        sums: Sums,
        step: int,
        n_jobs: int | None = None,
    ) -> HiddenModel:
        """Return the parameters that fit the posteriors, the prior included."""
        if not isinstance(model, HiddenModel) or not isinstance(sums, HiddenSums):
            raise TypeError(f"expected a hidden tree, got {type(model).__name__}")
        tree, starts, found = model.trees[0].messages, self.partition.starts, sums.tree
        counts = found.counts + self.pool.strength * self.shares[:, None]
        totals = np.add.reduceat(counts, starts, axis=0)
        log_q = np.log(counts / np.repeat(totals, self.partition.sizes + 1, axis=0))
        usual = np.add.reduceat(found.counts, starts, axis=0)
        usual /= usual.sum(axis=1, keepdims=True)
        edges = found.pairs + self.shrinkage * usual[:, None, :]
        edges[tree.parent == tree.parent.size] = 1.0
        edges /= edges.sum(axis=2, keepdims=True)
        return HiddenModel([HiddenTree.make(self.partition, tree.parent, log_q, edges)])

    def learn_tree(
        self, examples: Examples, counts: npt.NDArray[np.int64], rng: np.random.Generator | None
    ) -> npt.NDArray[np.int32]:
        """Return each block's parent in the Chow-Liu tree of the rows, disturbed or not.

        The root is the block that tells most about the others.
        """
        gains = count_gains(examples, self.partition, counts)
        if rng is not None:
            noise = np.triu(rng.normal(0.0, DISTURBANCE, gains.shape), 1)
            gains *= np.exp(noise + noise.T)
        ranked = np.argsort(-gains.sum(axis=1), kind="stable")
        found = forests.best_tree(np.maximum(gains, LEAST_GAIN)[np.ix_(ranked, ranked)])
        parent = np.empty(found.size, dtype=np.int32)
        parent[ranked] = np.append(ranked, found.size)[found]
        return parent


def block_counts(examples: Examples, partition: Partition) -> npt.NDArray[np.int64]:
    """Return the number of ones of each row in each block."""
    on = flags(examples.rows)
    if partition.n_blocks == partition.labels.size:
        return on[:, np.argsort(partition.labels)].astype(np.int64)
    return np.stack([on[:, block].sum(axis=1) for block in partition.blocks], axis=1)


def count_gains(
    examples: Examples,
    partition: Partition,
    counts: npt.NDArray[np.int64],
) -> FloatArray:
    """Return the rows' weight times the mutual information of the counts of every two blocks."""
    weights = examples.weights
    total, everyone = float(weights.sum()), np.arange(weights.size)
    if partition.n_blocks == partition.labels.size:
        order = np.argsort(partition.labels)
        both = log_linear.pair_sums(examples.rows, everyone, weights)[np.ix_(order, order)]
        gains = np.empty_like(both)
        forest_kernels.pair_gains(total, np.diag(both).copy(), both, 0.0, gains)
        return gains
    levels = [np.eye(size + 1)[counts[:, b]] for b, size in enumerate(partition.sizes)]
    flat = np.concatenate(levels, axis=1)
    both = flat.T @ (weights[:, None] * flat)
    alone = np.diag(both)
    with np.errstate(divide="ignore", invalid="ignore"):
        cells = np.where(both > 0, both * np.log(both * total / np.outer(alone, alone)), 0.0)
    starts = partition.starts
    gains = np.add.reduceat(np.add.reduceat(cells, starts, axis=0), starts, axis=1)
    np.fill_diagonal(gains, 0.0)
    return np.asarray(gains)
