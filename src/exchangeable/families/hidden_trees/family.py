"""The family of hidden trees: the choice of the tree, the start of EM, and parameters from sums.

The tree is the Chow-Liu tree over the counts of the blocks. The first of several runs learns it
from the rows, the others from randomly perturbed mutual information: runs with different trees give
a better average.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray
from exchangeable.families.common import forest_kernels
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.common.pool import Pool
from exchangeable.families.common.pooled import PooledFamily
from exchangeable.families.common.streaming.streamed import Streamed
from exchangeable.families.contract import Model
from exchangeable.families.hidden_trees.edges import rooted_tree, shrunken_edges, table_gains
from exchangeable.families.hidden_trees.model import HiddenModel
from exchangeable.families.hidden_trees.passes.row_sums import (
    count_masses,
    half_masses,
    pair_masses,
)
from exchangeable.families.hidden_trees.start import (
    START_POOLING,
    START_STEPS,
    StartMasses,
    halves,
    mixture_in_disguise,
    n_components,
)
from exchangeable.families.hidden_trees.steps import take_steps
from exchangeable.families.hidden_trees.tree import HiddenTree
from exchangeable.families.mixture import Mixture
from exchangeable.families.sums import Batch, Sums
from exchangeable.partitions import Partition
from exchangeable.structure.proposals import Proposal


class HiddenFamily(PooledFamily):
    """Trees of blocks with hidden states; all components share one tree.

    The states of the root play the part of components; EM starts from a naive Bayes mixture with
    half as many.
    """

    naive_steps = START_STEPS
    partition: Partition
    shares: FloatArray

    @property
    def n_start_components(self) -> int:
        """Number of components of the naive Bayes mixture that EM starts from."""
        return n_components(self.problem.n_components)

    @property
    def start_pool(self) -> Pool:
        """The prior of the naive Bayes mixture that EM starts from."""
        return replace(self.problem.pool, strength=START_POOLING)

    def start_of(self, init: str, number: int) -> str:
        """Return how a run starts: from rows unless random starts are requested."""
        return "random" if init == "random" else "rows"

    def first(
        self,
        data: Any,
        sums: Sums,
        blocks: Proposal,
        before: Mixture | None,
        rng: np.random.Generator | None,
    ) -> Mixture:
        """Return the start of EM; `rng` perturbs the tree."""
        self._use(blocks.partitions[0])
        rows, partition = self.problem.source, self.partition
        parent = self.learn_tree(rows, rng)
        by_count, usual = rows.summed(partial(count_masses, partition=partition), sums.shares)
        cuts = halves(usual)
        pairs = rows.summed(
            partial(half_masses, partition=partition, parent=parent, cuts=cuts), sums.shares
        )
        start = StartMasses(by_count, cuts, pairs)
        model, log_prior = mixture_in_disguise(
            partition, parent, start, self.shares, self.problem.n_components
        )
        return Mixture(model, log_prior)

    def resume(self, data: Any, mixture: Mixture) -> Mixture:
        """Start with the blocks of the tree."""
        model: Any = mixture.model
        if len(model.trees) > 1:
            raise ValueError(
                f"warm_start=True goes on from one tree, but the fit before is an average of "
                f"{len(model.trees)}; fit with combine='best' first"
            )
        self._use(model.trees[0].messages.partition)
        return mixture

    def _use(self, partition: Partition) -> None:
        """Start with given blocks: compute the overall share of each of their counts."""
        pool = self.problem.pool
        shares = pool.smooth(partition, pool.histograms([partition])[0])
        alone = np.flatnonzero(partition.sizes == 1)
        means = pool.means[[int(partition.blocks[b][0]) for b in alone]]
        shares[partition.starts[alone]] = 1 - means
        shares[partition.starts[alone] + 1] = means
        self.partition, self.shares = partition, shares

    def prior_gain(self, before: Any, after: Any) -> float:
        """Return the gain in the expected log-probability of the pseudo-rows' counts."""
        old, new = (model.trees[0].messages.log_q for model in (before, after))
        return float(self.problem.pool.strength * (self.shares @ (new - old)).sum())

    def steps(
        self, data: Any, mixture: Mixture, sums: Any, batches: Sequence[Batch]
    ) -> tuple[Mixture, Sums]:
        """Take a step of EM for each batch of rows."""
        return take_steps(self, data, mixture, sums, batches)

    def pseudo_counts(self) -> tuple[FloatArray, float]:
        """Return the pseudo-rows of each count, and those of each row of an edge's table."""
        return self.problem.pool.strength * self.shares, self.problem.shrinkage

    def following(self, data: Any, model: Any, sums: Any, step: int) -> list[Model]:
        """Return the parameters for given posteriors, under the prior."""
        tree, starts, summed = model.trees[0].messages, self.partition.starts, sums.tree
        pseudo, shrinkage = self.pseudo_counts()
        counts = summed.counts + pseudo[:, None]
        totals = np.add.reduceat(counts, starts, axis=0)
        log_q = np.log(counts / np.repeat(totals, self.partition.sizes + 1, axis=0))
        masses = np.add.reduceat(summed.counts, starts, axis=0)
        edges = shrunken_edges(tree.parent, summed.pairs, masses, shrinkage)
        return [HiddenModel([HiddenTree.make(self.partition, tree.parent, log_q, edges)])]

    def learn_tree(
        self, rows: InMemory | Streamed, rng: np.random.Generator | None
    ) -> npt.NDArray[np.int32]:
        """Return each block's parent in the Chow-Liu tree of the rows, perturbed or not.

        The root is the block with the largest total mutual information.
        """
        both = rows.summed(partial(pair_masses, partition=self.partition))
        return rooted_tree(count_gains(both, self.partition, rows.total), rng)


def count_gains(both: FloatArray, partition: Partition, total: float) -> FloatArray:
    """Return the total weight times the mutual information of the counts of every two blocks.

    `both` is the result of `pair_masses`, `total` the total weight of the rows.
    """
    if partition.n_blocks == partition.labels.size:
        gains = np.empty_like(both)
        forest_kernels.pair_gains(total, np.diag(both).copy(), both, 0.0, gains)
        return gains
    return table_gains(both, partition.starts, total)
