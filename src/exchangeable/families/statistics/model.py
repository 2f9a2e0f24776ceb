"""Blocks that are exchangeable with respect to statistics, beside the paper's blocks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray, SymbolArray
from exchangeable.data.columns.selection import example_columns, observed_columns
from exchangeable.data.examples import Examples
from exchangeable.data.observed import Observed
from exchangeable.families.blocks.model import BlockModel
from exchangeable.families.blocks.passes import BlockSums, soft_histograms
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.common.log_linear import on_device
from exchangeable.families.common.moments import sum_moments
from exchangeable.families.contract import Arrays, Model
from exchangeable.families.page import OnPage
from exchangeable.families.statistics import passes, saved
from exchangeable.families.statistics.on_device import expect_values
from exchangeable.families.statistics.values import Reader, values_in, values_of
from exchangeable.families.sums import NO_MOMENTS, NO_POSTERIOR, RowsInMemory, Sums
from exchangeable.partitions import Partition
from exchangeable.statistics import Statistic
from exchangeable.statistics.model import StatisticModel
from exchangeable.statistics.on_page import page_steps
from exchangeable.structure.statistic_blocks import StatisticBlock

REST = "rows of the rest"


@dataclass(frozen=True)
class StatisticSums(Sums):
    """The sums of a pass over rows.

    Attributes
    ----------
    histograms : list of arrays of shape (n_values, n_classes)
        For each block, the posterior weight of the rows with each value of its statistic.
    inner : BlockSums, optional
        The sums of the remaining variables.
    """

    histograms: list[FloatArray]
    inner: BlockSums | None


@dataclass(frozen=True)
class FittedBlock:
    """Variables, their statistic T, and the probabilities of its values in each class.

    Attributes
    ----------
    variables : array
        The variables, in the order in which T reads them.
    statistic : Statistic
        T.
    log_q : array of shape (n_values, n_classes)
        log P(T = t | y).
    """

    variables: IntArray
    statistic: Statistic
    log_q: FloatArray

    @cached_property
    def log_urns(self) -> FloatArray:
        """The log-probability of one member of each S_t, in each class."""
        return np.asarray(self.log_q - self.statistic.log_sizes_of_all[:, None])

    def of_class(self, y: int) -> StatisticModel:
        """Return the distribution of one class."""
        return StatisticModel(self.statistic, self.log_urns[:, y])

    def with_classes(self, log_q: FloatArray) -> "FittedBlock":
        """Return the block with other classes."""
        return FittedBlock(self.variables, self.statistic, log_q)


@dataclass(frozen=True)
class MixedBlocksModel(Model):
    """Classes of blocks with statistics, the same in each, and of the paper's blocks.

    Attributes
    ----------
    blocks : sequence of FittedBlock
        The blocks with statistics.
    rest : BlockModel, optional
        The distributions of the other variables.
    others : array
        The variables of `rest`, by number.
    """

    kind: ClassVar[str] = "blocks with statistics"
    blocks: Sequence[FittedBlock]
    rest: BlockModel | None
    others: IntArray

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.blocks[0].log_q.shape[1])

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return int(sum(block.variables.size for block in self.blocks) + self.others.size)

    @property
    def n_parameters(self) -> int:
        """Number of free parameters: for each statistic, the number of its values minus one."""
        own = sum(block.statistic.n_values - 1 for block in self.blocks) * self.n_classes
        return own + (0 if self.rest is None else self.rest.n_parameters)

    @cached_property
    def partitions(self) -> list[Partition]:
        """The blocks of each class."""
        result = []
        for y in range(self.n_classes):
            labels = np.empty(self.n_variables, dtype=np.int64)
            for number, block in enumerate(self.blocks):
                labels[block.variables] = number
            if self.rest is not None:
                labels[self.others] = self.rest.partitions[y].labels + len(self.blocks)
            result.append(Partition.from_labels(labels))
        return result

    @property
    def learned_partitions(self) -> list[Partition]:
        """The blocks of each class among the remaining variables."""
        every = Partition.from_labels(np.zeros(self.n_variables, dtype=np.int32))
        return [every] * self.n_classes if self.rest is None else self.rest.partitions

    def reads(self, blocks: Sequence[StatisticBlock]) -> bool:
        """Whether the model has exactly these blocks with statistics."""
        pairs = zip(self.blocks, blocks, strict=False)
        return len(self.blocks) == len(blocks) and all(
            np.array_equal(own.variables, asked.variables)
            and repr(own.statistic) in map(repr, asked.statistics)
            for own, asked in pairs
        )

    def count_probabilities(self) -> list[list[FloatArray]]:
        """Return, for every class and block, the probability of each value of its statistic."""
        result = []
        for y, partition in enumerate(self.partitions):
            by_block: list[Any] = [None] * partition.n_blocks
            for block in self.blocks:
                by_block[partition.labels[block.variables[0]]] = np.exp(block.log_q[:, y])
            if self.rest is not None:
                inner, known = self.rest.partitions[y], self.rest.only(np.array([y]))
                for number, q in enumerate(known.count_probabilities()[0]):
                    variable = self.others[inner.blocks[number][0]]
                    by_block[partition.labels[variable]] = q
            result.append(by_block)
        return result

    def on_page(self) -> OnPage | None:
        """Return the statistics' tables, and the scores of their values, if all have tables."""
        blocks, steps = [], 0.0
        for block in self.blocks:
            told = block.statistic._on_page()
            if told is None:
                return None
            urns = np.ascontiguousarray(block.log_urns.T)
            blocks.append({"variables": block.variables, "statistic": told, "urns": urns})
            steps += (1 + 2 * self.n_classes) * page_steps(told)
        rest = [] if self.rest is None else [self.rest.on_page()]
        steps += sum(each.steps for each in rest)
        data = {"classes": self.n_classes, "blocks": blocks, "others": self.others, "rest": rest}
        return OnPage("statistics", "exchangeable.families.statistics", data, steps)

    def score(self, observed: Observed, n_jobs: int | None = None) -> FloatArray:
        """Return log P(e | y), shape (n_rows, n_classes): e are a row's known entries."""
        total = np.zeros((observed.n_rows, self.n_classes))
        found = values_in(observed, self._readers)
        for block, values in zip(self.blocks, found, strict=True):
            total += values.scores(block.log_urns)
        if self.rest is not None:
            total += self.rest.score(observed_columns(observed, self.others), n_jobs)
        return total

    def log_totals(self) -> FloatArray:
        """Return log Σ_x P(x | y) of each class, the sum over its blocks."""
        totals = np.zeros(self.n_classes) if self.rest is None else self.rest.log_totals()
        for block in self.blocks:
            totals += np.logaddexp.reduce(block.log_q, axis=0)
        return totals

    def score_examples(self, examples: Examples, n_jobs: int | None = None) -> FloatArray:
        """Do the same for examples, for which values of the statistics are cached."""
        total = np.zeros((examples.rows.n_rows, self.n_classes))
        found = values_of(examples, self._readers)
        for block, values in zip(self.blocks, found, strict=True):
            total += values.scores(block.log_urns)
        if self.rest is not None:
            total += self.rest.score(rest_of(examples, self.others).observed, n_jobs)
        return total

    def log_likelihoods(
        self, log_prior: FloatArray, examples: Examples, n_jobs: int | None = None
    ) -> FloatArray:
        """Return the log-probability of each row."""
        joint = self.score_examples(examples, n_jobs) + log_prior
        return np.asarray(np.logaddexp.reduce(joint, axis=1))

    def marginals(self, observed: Observed, y: int) -> FloatArray:
        """Return P(x_j = 1 | e, y), shape (n_rows, n_variables); known entries stay 0 or 1."""
        out = np.empty((observed.n_rows, self.n_variables))
        for block, part in self._parts(observed):
            out[:, block.variables] = block.of_class(y).marginals(part, 0)
        if self.rest is not None:
            others = observed_columns(observed, self.others)
            out[:, self.others] = self.rest.marginals(others, y)
        return out

    def complete(self, observed: Observed, y: int) -> tuple[SymbolArray, FloatArray]:
        """Return the most probable completion x of each row, and log P(x | y)."""
        rows, scores = self._empty(observed), np.zeros(observed.n_rows)
        for block, part in self._parts(observed):
            rows[:, block.variables], each = block.of_class(y).complete(part, 0)
            scores += each
        if self.rest is not None:
            others = observed_columns(observed, self.others)
            rows[:, self.others], each = self.rest.complete(others, y)
            scores += each
        return rows, scores

    def alternatives(self, observed: Observed, most: int) -> list[npt.NDArray[Any]] | None:
        """Return a completion of each row for every possible value of T; None for two blocks."""
        if self.rest is not None or len(self.blocks) > 1:
            return None
        (block, part), *_ = self._parts(observed)
        statistic, found = block.statistic, []
        for assigned in part.symbols().astype(np.int64):
            possible = np.flatnonzero(np.isfinite(statistic._log_sizes(assigned)))
            if possible.size > most:
                return None
            rows = np.empty((possible.size, self.n_variables), dtype=np.uint8)
            rows[:, block.variables] = [statistic._complete(int(t), assigned) for t in possible]
            found.append(rows)
        return found

    def draw(self, observed: Observed, y: int, rng: np.random.Generator) -> SymbolArray:
        """Return a completion of each row, drawn from P(x | e, y)."""
        rows = self._empty(observed)
        for block, part in self._parts(observed):
            rows[:, block.variables] = block.of_class(y).draw_together(part, rng)
        if self.rest is not None:
            others = observed_columns(observed, self.others)
            rows[:, self.others] = self.rest.draw(others, y, rng)
        return rows

    @property
    def _readers(self) -> list[Reader]:
        """The variables and the statistic of each block."""
        return [(block.variables, block.statistic) for block in self.blocks]

    def _empty(self, observed: Observed) -> SymbolArray:
        return np.empty((observed.n_rows, self.n_variables), dtype=np.uint8)

    def _parts(self, observed: Observed) -> list[tuple[FittedBlock, Observed]]:
        """Return the known entries of the variables of each block."""
        symbols = observed.symbols()
        return [
            (block, Observed.from_symbols(symbols[:, block.variables])) for block in self.blocks
        ]

    def expect(
        self, data: RowsInMemory, log_prior: FloatArray, moments: bool = False
    ) -> StatisticSums:
        """Compute the posteriors of all rows, and the sums for the next parameters."""
        examples = data.examples
        rest = np.empty((0, 0))
        if self.rest is not None:
            rest = self.rest.score(rest_of(examples, self.others).observed, data.n_jobs)
        urns = [block.log_urns for block in self.blocks]
        values = values_of(examples, self._readers)
        passed = passes.over_cells(examples, values, urns, rest, log_prior, data.n_jobs)
        log_likelihood, posterior, histograms = passed
        inner = None
        if self.rest is not None:
            inner = given_sums(self.rest, rest_data(data, self.others), posterior, moments)
        return StatisticSums(
            log_likelihood,
            posterior,
            examples.weights @ posterior,
            histograms,
            inner,
            moments=NO_MOMENTS if inner is None else inner.moments,
        )

    def expect_on(
        self, device: Any, data: RowsInMemory, log_prior: FloatArray, moments: bool = False
    ) -> StatisticSums | None:
        """Do the same on a device, for complete rows and fixed blocks."""
        urns = [block.log_urns for block in self.blocks]
        finite = all(np.isfinite(each).all() for each in urns)
        if moments or not finite or not on_device.can(data.examples):
            return None
        values = values_of(data.examples, self._readers)
        others = None if self.rest is None else rest_of(data.examples, self.others).rows
        found = expect_values(device, data, values, urns, self.rest, others, log_prior)
        whole = found.whole
        return StatisticSums(
            whole.log_likelihood, whole.posterior, whole.totals, found.histograms, found.inner
        )

    def shared_out(self, examples: Examples, mass: FloatArray) -> StatisticSums:
        """Return the sums of rows with known class memberships."""
        histograms = self._histograms(examples, mass)
        inner = None
        if self.rest is not None:
            rows = rest_of(examples, self.others)
            every = InMemory(replace(rows, weights=np.ones(len(mass))), n_jobs=1)
            inner = given_sums(self.rest, every, mass, moments=False)
        return StatisticSums(0.0, NO_POSTERIOR, mass.sum(axis=0), histograms, inner)

    def _histograms(self, examples: Examples, mass: FloatArray) -> list[FloatArray]:
        """Return the expected mass of each value in each class, for each block."""
        pairs = zip(self.blocks, values_of(examples, self._readers), strict=True)
        return [values.histograms(mass, block.log_urns) for block, values in pairs]

    def only(self, classes: IntArray) -> Self:
        """Return the model of some of the classes."""
        blocks = [block.with_classes(block.log_q[:, classes]) for block in self.blocks]
        return type(self)(blocks, self.rest and self.rest.only(classes), self.others)

    @classmethod
    def stack(cls, models: Sequence[Any]) -> Self:
        """Return the model of all classes of several models, whose statistics must agree."""
        blocks = []
        for alike in zip(*[model.blocks for model in models], strict=True):
            if len({repr(block.statistic) for block in alike}) > 1:
                names = ", ".join(repr(block.statistic) for block in alike)
                raise ValueError(
                    f"the fits have chosen different statistics for a block ({names}); give one"
                )
            log_q = np.concatenate([block.log_q for block in alike], axis=1)
            blocks.append(alike[0].with_classes(log_q))
        rests = [model.rest for model in models]
        rest = None if rests[0] is None else BlockModel.stack(rests)
        return cls(blocks, rest, models[0].others)

    def encode(self) -> Arrays:
        """Return the parameters as arrays for a file."""
        triples = [(block.variables, block.statistic, block.log_q) for block in self.blocks]
        inner = {} if self.rest is None else self.rest.encode()
        return saved.encode(triples, inner, self.others)

    @classmethod
    def decode(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Return the model from arrays of a file, after checking everything."""
        triples, inner, others = saved.decode(arrays)
        rest = BlockModel.decode(inner) if others.size else None
        n_classes = triples[0][2].shape[1]
        if rest is not None and (rest.n_classes, rest.n_variables) != (n_classes, others.size):
            raise saved.ModelFileError("the blocks without statistics are of other variables")
        return cls([FittedBlock(*each) for each in triples], rest, others)


def rest_of(examples: Examples, others: IntArray) -> Examples:
    """Return the examples with the variables that are not in a block with a statistic."""
    key = (REST, others.tobytes())
    if key not in examples.derived:
        examples.derived[key] = example_columns(examples, others)
    return examples.derived[key]  # type: ignore[no-any-return]


def rest_data(data: RowsInMemory, others: IntArray) -> InMemory:
    """Return the same in the form of EM, with a cache that lives as long as the run's."""
    if REST not in data.memo:
        data.memo[REST] = InMemory(rest_of(data.examples, others), n_jobs=data.n_jobs)
    return data.memo[REST]  # type: ignore[no-any-return]


def given_sums(
    model: BlockModel, data: InMemory, posterior: FloatArray, moments: bool
) -> BlockSums:
    """Return the sums of given posteriors, with the model's expectations for missing entries."""
    examples, k = data.examples, posterior.shape[1]
    totals = examples.weights @ posterior
    if examples.holes is None:
        histograms = soft_histograms(
            examples, posterior, np.arange(k), model.partitions, data.n_jobs
        )
        found = sum_moments(examples, posterior, n_jobs=data.n_jobs) if moments else NO_MOMENTS
        return BlockSums(0.0, posterior, totals, histograms, moments=found)
    histograms = []
    for y in range(k):
        mass = examples.weights * posterior[:, y]
        own = Examples(examples.rows, mass, holes=examples.holes)
        sums = model.only(np.array([y])).expect(InMemory(own, n_jobs=data.n_jobs), np.zeros(1))
        histograms.append(sums.histograms[0])
    return BlockSums(0.0, posterior, totals, histograms)
