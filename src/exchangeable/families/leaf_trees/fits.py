"""Fits of the leaves of a tree, each by the family of its model."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.common.streaming.streamed import Streamed
from exchangeable.families.contract import Family
from exchangeable.families.leaf_trees.choice import chosen_statistic
from exchangeable.families.leaf_trees.leaves import Leaf
from exchangeable.families.leaf_trees.start import column_ranks, statistic_ranks
from exchangeable.families.mixed.family import MixedFamily
from exchangeable.families.mixed.rows.sums import held_sums
from exchangeable.families.problem import Problem
from exchangeable.families.statistics.family import StatisticFamily
from exchangeable.partitions import Partition
from exchangeable.statistics import Statistic
from exchangeable.structure.proposals import Proposal
from exchangeable.structure.statistic_blocks import StatisticBlock


@dataclass(frozen=True)
class LeafFit:
    """How one leaf is fitted.

    Attributes
    ----------
    variables : array
        Its variables.
    family : Family
        The family of its model, for the block's distinct rows.
    data : InMemory or Streamed
        These rows, with their weights; all rows if they come in chunks.
    statistic : Statistic, optional
        Its statistic; None if it has columns of any kind.
    """

    variables: IntArray
    family: Family
    data: InMemory | Streamed
    statistic: Statistic | None = None

    @property
    def whole(self) -> Partition:
        """All its variables as one block."""
        return Partition.from_labels(np.zeros(self.variables.size, dtype=np.int32))

    def first(self, mass: FloatArray) -> Leaf:
        """Return the leaf fitted to rows with known memberships in the states."""
        return self.of_shares(mass / self.data.weights[:, None])

    def of_shares(self, shares: Any) -> Leaf:
        """Return the same, given the share of each row, or a recipe for it."""
        sums = self.data.summed(held_sums, shares)
        blocks = Proposal([self.whole] * sums.totals.size)
        mixture = self.family.first(self.data, sums, blocks, None, None)
        return Leaf(self.variables, mixture.model)

    def following(self, leaf: Leaf, sums: Any, step: int) -> Leaf:
        """Return the leaf after one step."""
        model = self.family.candidates(self.data, leaf.model, sums, step, ())[0]
        return Leaf(self.variables, model)

    def ranks(self) -> FloatArray:
        """Return a number for every distinct row by which they are ordered."""
        assert isinstance(self.data, InMemory)
        if self.statistic is None:
            return column_ranks(self.data.examples)
        return statistic_ranks(self.data.examples, self.statistic)


def leaf_fit(
    problem: Problem,
    variables: IntArray,
    named: StatisticBlock | None,
    data: InMemory | Streamed,
) -> LeafFit:
    """Return how the leaf of some variables is fitted, after choosing its statistic."""
    whole = Partition.from_labels(np.zeros(variables.size, dtype=np.int32))
    own = replace(
        problem,
        examples=data.examples if isinstance(data, InMemory) else None,
        chunks=data if isinstance(data, Streamed) else None,
        valid=None,
        structure=[whole] * problem.n_components,
        statistic_blocks=(),
        others=np.empty(0, dtype=np.int64),
    )
    if named is None:
        family = MixedFamily(own)
        if problem.chunks is not None:
            family.types = tuple(problem.chunks.types[j] for j in variables)
        return LeafFit(variables, family, data)
    statistic = chosen_statistic(data, named.statistics)
    inside = StatisticBlock(np.arange(variables.size), (statistic,))
    return LeafFit(
        variables, StatisticFamily(replace(own, statistic_blocks=(inside,))), data, statistic
    )


def chosen_block(leaf: Leaf) -> StatisticBlock | None:
    """Return the block that a leaf has, with the statistic that was chosen."""
    model: Any = leaf.model
    return StatisticBlock(leaf.variables, (model.blocks[0].statistic,)) if leaf.of_bits else None
