"""Choosing the blocks of one class or component."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray, check_number
from exchangeable.data.examples import Examples
from exchangeable.data.groups import Group, group_ones
from exchangeable.data.rows import Rows
from exchangeable.families.common.tables import block_counts
from exchangeable.partitions import Partition, log_factorials
from exchangeable.runtime.threads import run
from exchangeable.structure.conditions import (
    equal_means_p_value,
    split_by_covariance,
    split_by_variance,
)
from exchangeable.structure.evidence import merge_blocks
from exchangeable.structure.pairs import split_by_pairs
from exchangeable.structure.sweep import sweep_counts, sweep_each

METHODS = ("evidence", "welch", "independent", "full")
NEGLIGIBLE = 1e-8
"""Rows of less weight than this are ignored when the blocks of a component are learned."""
FAR_APART = 20.0
"""Blocks of a class whose rates of ones are this many standard errors apart are never merged."""
EQUAL_MEANS_LEVEL = 0.01
"""Level of the test that all variables have equal means, before evidence merging looks for
blocks."""


@dataclass(frozen=True)
class BlockSettings:
    """The learners' settings, as given by users.

    Attributes
    ----------
    significance : float
        That of the sweep, and of conditions 2 and 3.
    start : float
        Significance of the finer sweep that evidence merging starts from.
    prior : float
        Dirichlet parameter of the evidence.
    conditions : sequence of int
        The conditions of Proposition 3.3 that must hold in a block: 1, and 2 or 3 if requested.
    """

    significance: float
    start: float
    prior: float
    conditions: Sequence[int]

    def check(self) -> None:
        """Reject invalid settings."""
        for name in ("significance", "start"):
            if not 0 < check_number(getattr(self, name), name) < 1:
                raise ValueError(f"{name} must lie between 0 and 1, got {getattr(self, name)!r}")
        if not 0 < check_number(self.prior, "prior") < np.inf:
            raise ValueError(f"prior must be positive and finite, got {self.prior!r}")
        numbers = self.conditions
        if (
            not isinstance(numbers, Sequence | set)
            or not set(numbers) <= {1, 2, 3}
            or 1 not in numbers
        ):
            raise ValueError(
                f"conditions={numbers!r}: expected (1,), (1, 2), (1, 3) or (1, 2, 3), "
                "the numbers of Proposition 3.3"
            )


@dataclass(frozen=True)
class BlockLearner:
    """Learns blocks from the rows of a class, by one of `METHODS`."""

    name: str
    settings: BlockSettings

    @property
    def needs_moments(self) -> bool:
        """Whether the blocks depend on the data at all."""
        return self.name in ("evidence", "welch")

    def learn(self, rows: Rows, group: Group, ones: FloatArray) -> Partition:
        """Return the blocks for a group of rows, given the frequency of each variable in it."""
        if self.name == "independent":
            return Partition.from_labels(np.arange(rows.n_variables))
        if self.name == "full" or group.total <= 1:
            return Partition.whole(rows.n_variables)
        if self.name == "welch":
            partition = sweep_counts(ones, group.total, self.settings.significance)
        else:
            partition = self._merge(rows, group, ones)
        return self._split(partition, rows, group, ones)

    def without_rows(self, n_variables: int, n_classes: int) -> list[Partition]:
        """Return blocks that do not depend on rows."""
        if self.needs_moments:
            raise TypeError(f"blocks={self.name!r} are learned from rows without holes")
        labels = np.zeros(n_variables, dtype=np.int32)
        if self.name == "independent":
            labels = np.arange(n_variables, dtype=np.int32)
        return [Partition.from_labels(labels)] * n_classes

    def phases(self) -> list["BlockLearner"]:
        """Return the learners that EM uses in sequence, each until convergence.

        Merging starts when the sweep has converged: in the first iterations, when components hardly
        differ, it would merge blocks that should stay separate, and EM would not recover.
        """
        if self.name == "evidence":
            return [BlockLearner("welch", self.settings), self]
        return [self] if self.needs_moments else []

    def propose(
        self,
        examples: Examples,
        posterior: FloatArray,
        moments: FloatArray,
        n_components: int,
        n_jobs: int | None = None,
    ) -> list[list[Partition]]:
        """Return proposals for the blocks of all components, given the examples' posteriors.

        `moments` are the posteriors' two sums for each variable and component, as in `Sums`.

        The sweep tests the values x·P(y | x) over *all* examples, as in the paper's Algorithm 1.
        Evidence merging proposes the sweep's blocks as well as the merged ones.
        """
        if not self.needs_moments:
            return [self.without_rows(examples.rows.n_variables, n_components)]
        swept = self.sweeps(moments, examples.total, n_jobs)
        if self.sweeps_only:
            return swept
        proposals = run(
            lambda y: self._refine(
                examples.rows,
                examples.weights * posterior[:, y],
                swept[0][y],
                swept[-1][y],
                np.ascontiguousarray(moments[0, :, y]),
            ),
            range(n_components),
            n_jobs,
        )
        return [list(proposal) for proposal in zip(*proposals, strict=True)]

    def propose_one(
        self, rows: Rows, weights: FloatArray, moments: FloatArray, n: float
    ) -> list[Partition]:
        """Return proposals for one component.

        `weights` are the shares of each row in the component, `moments` its two sums for each
        variable as in `Sums`, and `n` is the total weight of all rows.
        """
        swept = self.sweeps(moments[:, :, None], n)
        if self.sweeps_only:
            return swept[0]
        return self._refine(rows, weights, swept[0][0], swept[-1][0], moments[0])

    @property
    def sweeps_only(self) -> bool:
        """Whether blocks are learned from the moments of the rows alone."""
        return self.name == "welch" and len(self.settings.conditions) == 1

    def sweeps(
        self, moments: FloatArray, n: float, n_jobs: int | None = 1
    ) -> list[list[Partition]]:
        """Return the sweep's blocks of every component; for merging, those of a finer one too."""
        levels = [self.settings.significance]
        if self.name == "evidence" and self.settings.start != self.settings.significance:
            levels.append(self.settings.start)
        return sweep_each(moments, n, levels, n_jobs)

    def _refine(
        self,
        rows: Rows,
        weights: FloatArray,
        coarse: Partition,
        fine: Partition,
        ones: FloatArray,
    ) -> list[Partition]:
        """Return a component's proposals, given the blocks of a coarse and of a fine sweep."""
        members = np.flatnonzero(weights > NEGLIGIBLE)
        group = Group(members, weights[members])
        proposals = [coarse]
        if self.name == "evidence":
            proposals.append(self._merge_blocks(rows, group, fine))
        return [self._split(proposal, rows, group, ones) for proposal in proposals]

    def _merge(self, rows: Rows, group: Group, ones: FloatArray) -> Partition:
        """Merge the blocks of a fine sweep by their evidence.

        Variables sorted by their observed means look different even if they are not, and the
        evidence does not account for the sorting. So one test of all means together comes first:
        unless it rejects, the variables are one block.
        """
        one_block = Partition.whole(rows.n_variables)
        row_counts = block_counts(rows, group, one_block)[0]
        if equal_means_p_value(ones, row_counts, group.weights) > EQUAL_MEANS_LEVEL:
            return one_block
        fine = sweep_counts(ones, group.total, self.settings.start)
        return self._merge_blocks(rows, group, fine, FAR_APART)

    def _merge_blocks(
        self, rows: Rows, group: Group, fine: Partition, limit: float = np.inf
    ) -> Partition:
        merged = merge_blocks(
            block_counts(rows, group, fine),
            fine.sizes,
            group.weights,
            self.settings.prior,
            log_factorials(rows.n_variables),
            limit,
        )
        return fine.merged(merged)

    def _split(self, partition: Partition, rows: Rows, group: Group, ones: FloatArray) -> Partition:
        """Split blocks by the requested further conditions."""
        significance, total = self.settings.significance, group.total
        if total <= 1:
            return partition
        if 2 in self.settings.conditions:
            partition = split_by_variance(partition, ones, total, significance)
        if 3 in self.settings.conditions:
            partition = split_by_covariance(partition, rows, group, ones, significance)
            partition = split_by_pairs(partition, rows, group, significance)
        return partition


Structure = BlockLearner | list[Partition]
"""The source of blocks: learned from each class's rows, or given, one partition per class."""


def learn_partitions(
    rows: Rows, groups: Sequence[Group], structure: Structure, n_jobs: int | None = None
) -> list[Partition]:
    """Return the blocks of each group of rows, as given or learned."""
    if isinstance(structure, list):
        return structure
    if structure.needs_moments:
        sums = group_ones(rows, groups, n_jobs)
    else:
        sums = [np.empty(0)] * len(groups)

    def learn(y: int) -> Partition:
        return structure.learn(rows, groups[y], sums[y])

    return run(learn, range(len(groups)), n_jobs)


def is_method(structure: Any) -> bool:
    """Whether blocks are learned by a named method, rather than given."""
    return isinstance(structure, str)


def check_structure(
    structure: Any,
    settings: BlockSettings,
    n_variables: int,
    classes: Sequence[Any],
    names: Sequence[str] | None = None,
) -> Structure:
    """Return the method or the partitions that the user's `blocks` specify.

    These are the name of a method, a partition for all classes, or a dict from class to partition;
    a partition is a list of blocks, a block a list of variables' numbers or names.
    """
    settings.check()
    if is_method(structure):
        return BlockLearner(structure, settings)
    if not isinstance(structure, Mapping):
        return [_from_lists(structure, n_variables, names)] * len(classes)
    missing = [c for c in classes if c not in structure]
    if missing:
        raise ValueError(f"blocks gives no partition for the classes {missing}")
    return [_from_lists(structure[c], n_variables, names) for c in classes]


def _from_lists(blocks: Any, n_variables: int, names: Sequence[str] | None) -> Partition:
    """Return a partition given by the user, with feature names replaced by their numbers."""
    if isinstance(blocks, str) or not isinstance(blocks, Iterable):
        raise TypeError(f"a partition must be a list of blocks of variables, got {blocks!r}")
    number = {name: position for position, name in enumerate(() if names is None else names)}
    numbered = []
    for b, block in enumerate(blocks):
        if isinstance(block, str) or not isinstance(block, Iterable):
            raise TypeError(f"block {b} is {block!r}; expected a list of variables")
        variables = list(block)
        unknown = [v for v in variables if isinstance(v, str) and v not in number]
        if unknown:
            raise ValueError(f"block {b} names {unknown[0]!r}, which is not a feature of X")
        numbered.append([number[v] if isinstance(v, str) else v for v in variables])
    return Partition.from_blocks(numbered, n_variables, names)
