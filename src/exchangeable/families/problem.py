"""The description of a fit: the rows, the blocks, and the strengths of the priors."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.examples import Examples, listed
from exchangeable.data.observed import flags
from exchangeable.data.rows import Rows, as_rows
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.common.pool import Pool
from exchangeable.families.common.streaming.streamed import Streamed
from exchangeable.families.mixture import Mixture
from exchangeable.partitions import Partition
from exchangeable.runtime.clock import Clock
from exchangeable.structure.learner import BlockLearner, Structure
from exchangeable.structure.statistic_blocks import StatisticBlock


@dataclass(frozen=True)
class Problem:
    """What is to be fitted, and to which rows; shared by all runs of a fit.

    Attributes
    ----------
    n_components : int
        Number of components or classes, or of hidden states if a family has those.
    structure : Structure
        Where blocks come from.
    examples : Examples or None
        The rows; None if they come in chunks.
    chunks : Streamed, optional
        The rows, if they come in chunks.
    valid : Examples or Streamed, optional
        Held-out rows, by which runs are stopped and compared.
    alpha : float
        Laplace smoothing; under a pooled prior, that of the training set's overall frequencies.
    pooling : float or None
        The pooled prior: pseudo-rows of each component, distributed as the training set.
    shrinkage : float
        Pseudo-rows that shrink an edge of a tree towards independence.
    relearns : bool
        Whether EM continues to learn blocks.
    accept : {"all", "component"}
        Whether blocks are accepted for all components together or for each separately.
    labelled : bool
        Whether components are classes with known labels.
    log_prior : array of shape (n_components,), optional
        Log-probabilities of the components, if they are not to be learned.
    statistic_blocks : tuple of StatisticBlock
        Blocks with a statistic, common to all components.
    others : array
        If there are some: the remaining variables, to which `structure` applies.
    varied : bool
        Whether the first run should vary too, as the others do.
    open_ended : bool
        Whether later rows may have more ones than any row so far.
    settings : object, optional
        The family's own settings.
    device : {"auto", "cpu", "gpu"}
        Where passes over rows, or training, run.
    anchor : Mixture, optional
        For families that continue from the result of training: the components that anchor them, if
        these differ from those they continue from.
    clock : Clock
        When the fit has to end, for families with long steps.
    """

    n_components: int
    structure: Structure
    examples: Examples | None = None
    chunks: Streamed | None = None
    valid: Examples | Streamed | None = None
    alpha: float = 0.1
    pooling: float | None = None
    shrinkage: float = 0.0
    relearns: bool = False
    accept: str = "all"
    labelled: bool = False
    log_prior: FloatArray | None = None
    statistic_blocks: tuple[StatisticBlock, ...] = ()
    others: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    varied: bool = False
    open_ended: bool = False
    settings: Any = None
    device: str = "auto"
    anchor: Mixture | None = None
    clock: Clock = field(default_factory=Clock)

    @property
    def rows(self) -> Examples:
        """The rows, which must be in memory."""
        if self.examples is None:
            raise TypeError("this family needs its rows in memory")
        return self.examples

    def known_partitions(self, n_variables: int) -> list[Partition] | None:
        """Return the blocks of each component if they do not depend on rows, otherwise None."""
        if not isinstance(self.structure, BlockLearner):
            return list(self.structure)
        if self.structure.needs_moments:
            return None
        return list(self.structure.without_rows(n_variables, self.n_components))

    @property
    def valid_rows(self) -> Examples | None:
        """The held-out rows, if any, which must be in memory."""
        if isinstance(self.valid, Streamed):
            raise TypeError("this family needs the rows held out in memory")
        return self.valid

    @cached_property
    def filled(self) -> Examples:
        """The rows, with missing entries drawn from each variable's frequency."""
        return fill_by_frequency(self.rows)

    @cached_property
    def source(self) -> InMemory | Streamed:
        """The rows without missing entries, over which the prior and the first parameters sum."""
        if self.chunks is not None:
            return self.chunks.filled
        return InMemory(self.filled, n_jobs=1)

    @cached_property
    def pool(self) -> Pool:
        """The pooled prior."""
        if self.pooling is None:
            raise TypeError("there is no pooled prior")
        return Pool.of(self.source, self.pooling, self.alpha)

    @cached_property
    def pairs(self) -> FloatArray:
        """The frequency of each pair of variables being on in the training set."""
        return self.pool.pairs()

    @cached_property
    def largest_count(self) -> int | None:
        """The largest number of ones in a row, None if missing entries make it unknown."""
        if self.open_ended:
            return None
        sets = [self.rows if self.chunks is None else self.chunks, self.valid]
        found = [self._most_ones(each) for each in sets if each is not None]
        known = [each for each in found if each is not None]
        return max(known) if len(known) == len(found) else None

    def _most_ones(self, rows: Examples | Streamed) -> int | None:
        if isinstance(rows, Examples):
            return None if rows.holes is not None else largest_count(rows.rows)
        if rows.has_holes:
            return None
        pool = self.pool if rows is self.chunks else Pool.of(rows, 0.0, self.alpha)
        one_block = Partition.whole(rows.n_variables)
        return int(np.flatnonzero(pool.histograms([one_block])[0])[-1])


def largest_count(rows: Rows) -> int:
    """Return the largest number of ones of a row."""
    if rows.indptr.size:
        return int(np.diff(rows.indptr).max(initial=0))
    return int(flags(rows).sum(axis=1).max(initial=0))


FILLED = "rows whose holes are filled"


def fill_by_frequency(examples: Examples) -> Examples:
    """Return the examples with missing entries drawn from each variable's frequency.

    They are drawn once and cached with the examples.
    """
    if examples.holes is None:
        return examples
    if FILLED not in examples.derived:
        examples.derived[FILLED] = _filled(examples)
    return examples.derived[FILLED]  # type: ignore[no-any-return]


def _filled(examples: Examples) -> Examples:
    states = examples.observed.symbols()
    known, on = states >= 0, states == 1
    weight = examples.weights @ known
    share = (examples.weights @ on + 0.5) / (weight + 1.0)
    drawn = np.random.default_rng(0).random(states.shape) < share
    return replace(
        examples,
        rows=listed(as_rows(np.where(known, on, drawn).astype(np.uint8), None)),
        holes=None,
        words=None,
        codes=None,
    )
