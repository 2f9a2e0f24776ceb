"""The family of hidden trees: which tree, where EM starts, and how sums become parameters.

The tree is the Chow-Liu tree over the counts of the blocks. The first of several runs learns it
from the rows, the others from what the rows tell about pairs, disturbed at random: runs whose trees
differ make a better average. EM starts from a mixture of trees in disguise: a state is a component
found by naive Bayes together with whether the block has many ones.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray
from exchangeable.engines import forests, tree_kernels, trees
from exchangeable.engines.examples import Examples
from exchangeable.engines.forests import Sums
from exchangeable.engines.observed import flags
from exchangeable.models.families import DensityModel
from exchangeable.models.hidden import HiddenModel, HiddenTree
from exchangeable.models.pooled import Pool
from exchangeable.models.posteriors import HiddenSums
from exchangeable.partitions import Partition

START_POOLING, START_STEPS = 4.0, 15
"""Pseudo-rows and steps of the naive Bayes that EM starts from."""
HELD = 0.9
"""How surely a block's component is that of its parent when EM starts."""
SURE = 0.9
"""How surely a state says, when EM starts, whether the block has many ones."""
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
            That of the components of a naive Bayes mixture, about half as many as states.
        n_states : int
            Number of states of each block.
        rng : Generator, optional
            Disturbs the tree.
        """
        counts = block_counts(examples, self.partition)
        parent = self.learn_tree(examples, counts, rng)
        mass = examples.weights[:, None] * np.where(posterior > NOTHING, posterior, 0.0)
        cells = _Cells.of(counts, mass, n_states)
        n_blocks = self.partition.n_blocks
        log_q = np.empty((self.partition.table_size, n_states))
        edges = np.full((n_blocks, n_states, n_states), 1.0 / n_states)
        root = np.full(n_states, 1.0 / n_states)
        for b, (start, size) in enumerate(
            zip(self.partition.starts, self.partition.sizes, strict=True)
        ):
            seen = cells.by_count(b, int(size) + 1)
            known = self.shares[start : start + size + 1, None]
            own = (seen + START_POOLING * known) / (seen.sum(axis=0) + START_POOLING)
            split = cells.states_split
            own[:, split] = SURE * _sure(seen, known)[:, split] + (1 - SURE) * known
            log_q[start : start + size + 1] = np.log(own)
            usual = cells.totals(b) + 1.0 / n_states
            usual /= usual.sum()
            if parent[b] == n_blocks:
                root = usual
            else:
                joint = cells.joint(int(parent[b]), b) + 1e-3 * usual
                joint /= joint.sum(axis=1, keepdims=True)
                edges[b] = HELD * joint + (1 - HELD) * usual
        return HiddenModel([HiddenTree.make(self.partition, parent, log_q, edges)]), np.log(root)

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
        found = trees.best_tree(np.maximum(gains, LEAST_GAIN)[np.ix_(ranked, ranked)])
        parent = np.empty(found.size, dtype=np.int32)
        parent[ranked] = np.append(ranked, found.size)[found]
        return parent


def _sure(seen: FloatArray, known: FloatArray) -> FloatArray:
    """Return the shares of counts in each state, the usual ones where a state has no rows."""
    totals = seen.sum(axis=0)
    return np.where(totals > 0, seen / np.where(totals > 0, totals, 1.0), known)


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
        both = forests.pair_sums(examples.rows, everyone, weights)[np.ix_(order, order)]
        gains = np.empty_like(both)
        tree_kernels.pair_gains(total, np.diag(both).copy(), both, 0.0, gains)
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


@dataclass(frozen=True)
class _Cells:
    """States as pairs of a component and whether a block has many ones.

    With an odd number of states the last component is not split by its ones.
    """

    counts: npt.NDArray[np.int64]
    many: npt.NDArray[np.bool_]
    mass: FloatArray
    n_states: int

    @classmethod
    def of(cls, counts: npt.NDArray[np.int64], mass: FloatArray, n_states: int) -> "_Cells":
        """Cut the counts of each block where that halves the rows best."""
        total, weights = mass.sum(), mass.sum(axis=1)
        many = np.empty(counts.shape, dtype=np.bool_)
        for b, column in enumerate(counts.T):
            share = np.bincount(column, weights=weights) / total
            cut = int(np.abs(np.cumsum(share)[:-1] - 0.5).argmin()) if share.size > 1 else 0
            many[:, b] = column > cut
        return cls(counts, many, mass, n_states)

    @property
    def states_split(self) -> npt.NDArray[np.bool_]:
        """Which states are about one half of the counts."""
        k, h = self.mass.shape[1], self.n_states
        return np.concatenate([np.arange(k) < h - k, np.ones(h - k, dtype=np.bool_)])

    def _shares(self, b: int) -> FloatArray:
        """Return the mass of every row and state in a block."""
        k, h = self.mass.shape[1], self.n_states
        few = self.mass * ~self.many[:, b, None]
        few[:, h - k :] = self.mass[:, h - k :]
        return np.concatenate([few, self.mass[:, : h - k] * self.many[:, b, None]], axis=1)

    def totals(self, b: int) -> FloatArray:
        """Return the mass of each state of a block."""
        return np.asarray(self._shares(b).sum(axis=0))

    def by_count(self, b: int, n_counts: int) -> FloatArray:
        """Return the mass of each count and state of a block."""
        return np.asarray(np.eye(n_counts)[self.counts[:, b]].T @ self._shares(b))

    def joint(self, above: int, b: int) -> FloatArray:
        """Return the mass of each state of a block's parent, and its own, of one component."""
        k, h = self.mass.shape[1], self.n_states
        component = np.concatenate([np.arange(k), np.arange(h - k)])
        same = component[:, None] == component[None, :]
        high = np.concatenate([np.zeros(k), np.ones(h - k)]).astype(bool)
        split = self.states_split
        out = np.zeros((h, h))
        for up in (False, True):
            for low in (False, True):
                here = (self.many[:, above] == up) & (self.many[:, b] == low)
                mass = self.mass[here].sum(axis=0)[component]
                fits_up, fits = ~split | (high == up), ~split | (high == low)
                out += same * np.outer(fits_up, fits) * mass[:, None]
        return out
