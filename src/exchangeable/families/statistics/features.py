"""Values of statistics as features of linear scores, and the conversion to a distribution.

Given the class, P(x_b | y) = q_b(T_b(x_b) | y) / |S_T|, and |S_T| is the same in all classes: the
posterior of the classes is log-linear in indicators of the values of T. So each statistic is a
nominal column whose levels are its values, in addition to the remaining binary columns.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.examples import Examples
from exchangeable.data.rows import ColumnType, Rows, TypedRows
from exchangeable.families.blocks.model import BlockModel
from exchangeable.families.common.features import SharedTerms
from exchangeable.families.common.log_linear.scores import LogLinear
from exchangeable.families.mixed.features import MixedFeatures
from exchangeable.families.mixture import Mixture
from exchangeable.families.problem import Problem, fill_by_frequency
from exchangeable.families.statistics.family import EVIDENCE_PRIOR
from exchangeable.families.statistics.model import FittedBlock, MixedBlocksModel
from exchangeable.families.statistics.values import Reader
from exchangeable.partitions import Partition
from exchangeable.statistics import Statistic
from exchangeable.structure.statistic_blocks import StatisticBlock, log_evidence


@dataclass(frozen=True)
class StatisticFeatures:
    """Features of some rows.

    Attributes
    ----------
    inner : MixedFeatures
        Those of a table with a column for each statistic, and then the other variables.
    readers : list of (variables, statistic)
        What the first columns are.
    others : array
        The variables of the columns that follow.
    """

    inner: MixedFeatures
    readers: list[Reader]
    others: IntArray

    @classmethod
    def of(cls, examples: Examples, problem: Problem) -> "StatisticFeatures":
        """Return the features of rows, whose holes are filled by draws from each variable.

        Where a block has several statistics, the evidence of the classes' rows chooses one.
        """
        whole = fill_by_frequency(examples)
        symbols = whole.observed.symbols().astype(np.int64)
        readers, columns, types = list[Reader](), list[IntArray](), list[ColumnType]()
        for block in problem.statistic_blocks:
            statistic, position = _chosen(block, symbols[:, block.variables], whole)
            readers.append((block.variables, statistic))
            columns.append(position)
            types.append(ColumnType("nominal", statistic.n_values))
        others = problem.others
        table = np.column_stack([*columns, symbols[:, others]]).astype(np.float64)
        types += [ColumnType("binary", 2)] * others.size
        rows = TypedRows.of(table, tuple(types))
        own = Examples(rows, whole.weights, whole.clamp)
        single = [Partition.from_labels(np.arange(len(types)))] * problem.n_components
        return cls(MixedFeatures.of(own, replace(problem, structure=single)), readers, others)

    @property
    def ones(self) -> Rows:
        """The features that are on or off."""
        return self.inner.ones

    @property
    def numbers(self) -> FloatArray:
        """None."""
        return self.inner.numbers

    @property
    def columns(self) -> IntArray:
        """The column that each feature is of."""
        return self.inner.columns

    @property
    def together(self) -> IntArray:
        """No columns depend on each other in a class."""
        return self.inner.together

    @property
    def hidden_together(self) -> IntArray:
        """Numbers that features share which are known or hidden together."""
        return self.inner.hidden_together

    @property
    def scored(self) -> npt.NDArray[np.bool_]:
        """Which features generative scores look at."""
        return self.inner.scored

    @property
    def start(self) -> Callable[[LogLinear], FloatArray]:
        """Returns shared terms to begin with."""
        return self.inner.start

    @property
    def shared(self) -> Callable[[LogLinear, FloatArray], SharedTerms]:
        """Returns what some shared terms make of scores."""
        return self.inner.shared

    def mixture(self, scores: LogLinear, terms: FloatArray) -> Mixture:
        """Return blocks with statistics whose P(y | x) is the softmax of the scores."""
        made = self.inner.mixture(scores, terms)
        log_shares = dict[int, FloatArray]()
        parts: Any = made.model
        for part in parts.parts:
            for column, start, size in zip(part.columns, part.starts, part.sizes, strict=True):
                log_shares[int(column)] = part.log_shares[start : start + size]
        blocks = [FittedBlock(*reader, log_shares[b]) for b, reader in enumerate(self.readers)]
        rest = None
        if self.others.size:
            single = [log_shares[len(blocks) + i] for i in range(self.others.size)]
            rest = BlockModel.of_odds(np.stack([on - off for off, on in single]))
        return Mixture(MixedBlocksModel(blocks, rest, self.others), made.log_prior)


def _chosen(
    block: StatisticBlock, symbols: IntArray, examples: Examples
) -> tuple[Statistic, IntArray]:
    """Return the statistic with the highest evidence, and the position of each row's value."""
    tried = [(statistic, statistic._index(symbols)) for statistic in block.statistics]
    if len(tried) == 1:
        return tried[0]
    n_classes = int(examples.clamp.max()) + 1
    worth = []
    for statistic, position in tried:
        counts = np.zeros((statistic.n_values, n_classes))
        np.add.at(counts, (position, examples.clamp), examples.weights)
        worth.append(log_evidence(counts, statistic.log_sizes(), EVIDENCE_PRIOR))
    return tried[int(np.argmax(worth))]
