"""Classes or components that consist of independent blocks: parameters, scores and queries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray, SymbolArray
from exchangeable.data.examples import Examples
from exchangeable.data.observed import Observed
from exchangeable.data.rows import Rows
from exchangeable.data.sketch import Sketch
from exchangeable.families.blocks import passes, saved
from exchangeable.families.blocks.holes import expected
from exchangeable.families.blocks.holes import passes as holes
from exchangeable.families.blocks.holes.states import HoleStates
from exchangeable.families.blocks.passes import BlockSums, Posteriors
from exchangeable.families.blocks.row_counts import RowCounts
from exchangeable.families.common import table_kernels
from exchangeable.families.common.log_linear import on_device
from exchangeable.families.common.log_linear.scores import LogLinear
from exchangeable.families.common.tables import Tables, score_tables
from exchangeable.families.contract import Arrays, Model
from exchangeable.families.mixture import Mixture
from exchangeable.families.page import OnPage, stacked_labels
from exchangeable.families.sums import RowsInMemory
from exchangeable.partitions import Partition, log_factorials
from exchangeable.runtime.kernels.uniforms import Uniforms
from exchangeable.runtime.threads import run

SMALL_TABLES = 1 << 18
"""Tables with fewer entries than this are not worth several threads."""
COUNTS = "counts of rows in blocks"
WINNER = "the candidate that was the likeliest"


@dataclass
class BlockModel(Model):
    """The blocks of each class, and the weight of the training rows by count in each block.

    The histograms are the sufficient statistics: they add up over batches. `tables` are the
    parameters computed from them, log q(l | y) − log C(m, l) for every block and count. `sketch` is
    a sample of the batches from which blocks are learned again; files do not store it.
    """

    kind: ClassVar[str] = "blocks"
    partitions: list[Partition]
    histograms: list[FloatArray]
    totals: FloatArray
    tables: Tables | None = None
    sketch: Sketch | None = None

    @classmethod
    def blank(cls, n_variables: int, n_classes: int) -> Self:
        """Return a model that has seen no rows; its one block per class is a placeholder."""
        partition = Partition.whole(n_variables)
        histograms = [np.zeros(partition.table_size) for _ in range(n_classes)]
        return cls([partition] * n_classes, histograms, np.zeros(n_classes))

    @classmethod
    def of_known_entries(cls, examples: Examples, posterior: FloatArray, alpha: float) -> Self:
        """Return independent variables, each with its frequency among the rows that know it."""
        return cls.of_known_sums(known_sums(examples, posterior), alpha)

    @classmethod
    def of_known_sums(cls, sums: Sequence[tuple[float, FloatArray, Any]], alpha: float) -> Self:
        """Return the same from the result of `known_sums` for all rows."""
        histograms = []
        for total, on, hidden in sums:
            known = np.maximum(total - hidden, on)
            with np.errstate(invalid="ignore"):
                share = np.where(known > 0, on / known, 0.5)
            histograms.append((total * np.stack([1 - share, share], axis=1)).ravel())
        single = Partition.from_labels(np.arange(sums[0][1].size))
        model = cls([single] * len(sums), histograms, np.array([total for total, *_ in sums]))
        model.set_tables(alpha)
        return model

    def only(self, classes: IntArray) -> Self:
        """Return the model of some of the classes."""
        part = type(self)(
            [self.partitions[y] for y in classes],
            [self.histograms[y] for y in classes],
            self.totals[classes],
        )
        part.tables = Tables.layout(part.partitions)
        part.tables.values[:] = np.concatenate([self.made_tables.of_class(y) for y in classes])
        return part

    @classmethod
    def stack(cls, models: Sequence["BlockModel"]) -> Self:
        """Return the model of all classes of several models."""
        stacked = cls(
            [partition for model in models for partition in model.partitions],
            [histogram for model in models for histogram in model.histograms],
            np.concatenate([model.totals for model in models]),
        )
        stacked.tables = Tables.layout(stacked.partitions)
        stacked.tables.values[:] = np.concatenate([model.made_tables.values for model in models])
        return stacked

    def set_tables(
        self, alpha: float, n_jobs: int | None = None, like: Tables | None = None
    ) -> None:
        """Compute the tables from the histograms, with Laplace smoothing (Theorem 4.2).

        `like` are tables of the same partitions, if there are any.
        """
        log_factorial = log_factorials(self.partitions[0].labels.size)
        tables = self._empty_tables(like)
        if tables.values.size < SMALL_TABLES:
            table_kernels.fill_table(
                np.concatenate(self.histograms),
                tables.starts,
                tables.first_block,
                alpha,
                self.totals,
                log_factorial,
                tables.values,
            )
            self.tables = tables
            return

        def fill(y: int) -> None:
            partition = self.partitions[y]
            table_kernels.fill_table(
                self.histograms[y],
                partition.starts,
                np.array([0, partition.n_blocks]),
                alpha,
                self.totals[y : y + 1],
                log_factorial,
                tables.of_class(y),
            )

        run(fill, range(len(self.partitions)), n_jobs)
        self.tables = tables

    def set_pooled_tables(
        self, pooled: Sequence[FloatArray], strength: float, like: Tables | None = None
    ) -> None:
        """Compute the tables under a pooled prior.

        `pooled` holds, for each class, the share of the whole training set with each count of each
        of its blocks; each class gets `strength` pseudo-rows distributed accordingly.
        """
        tables = self._empty_tables(like)
        for y, partition in enumerate(self.partitions):
            mass = self.histograms[y] + strength * pooled[y]
            totals = np.repeat(np.add.reduceat(mass, partition.starts), partition.sizes + 1)
            tables.of_class(y)[:] = np.log(mass / totals) - log_ways(partition)
        self.tables = tables

    def _empty_tables(self, like: Tables | None) -> Tables:
        if like is None:
            return Tables.layout(self.partitions)
        return replace(like, values=np.empty(like.values.size))

    @property
    def made_tables(self) -> Tables:
        """The tables, which must have been computed."""
        if self.tables is None:
            raise RuntimeError("the tables have not been computed")
        return self.tables

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.partitions)

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return self.partitions[0].labels.size

    @property
    def n_parameters(self) -> int:
        """Number of free parameters: one for each variable of a class, whatever its blocks."""
        return self.n_classes * self.n_variables

    def count_probabilities(self) -> list[list[FloatArray]]:
        """Return q(l | y) for every class, block and count l."""
        log_factorial = log_factorials(self.partitions[0].labels.size)
        result = []
        for y, partition in enumerate(self.partitions):
            blocks = []
            parts = np.split(self.made_tables.of_class(y), partition.starts[1:])
            for m, entries in zip(partition.sizes, parts, strict=True):
                log_ways = log_factorial[m] - log_factorial[: m + 1] - log_factorial[: m + 1][::-1]
                blocks.append(np.exp(entries + log_ways))
            result.append(blocks)
        return result

    def score(self, observed: Observed, n_jobs: int | None = None) -> FloatArray:
        """Return log P(e | y) for every row and class; e are the known entries of the row."""
        if observed.holes is None:
            return score_tables(observed.ones, self.made_tables, n_jobs)
        return holes.score(observed, self.made_tables, n_jobs)

    def log_totals(self) -> FloatArray:
        """Return log Σ_x P(x | y) of each class, from the values that scoring reads."""
        tables = map(self.made_tables.of_class, range(self.n_classes))
        by_class = map(saved.block_totals, self.partitions, tables)
        return np.array([sum(float(some.sum()) for some in totals) for totals in by_class])

    def marginals(self, observed: Observed, y: int) -> FloatArray:
        """Return P(x_j = 1 | e, y) for every row and variable."""
        return holes.marginals(observed, self.partitions[y], self.made_tables.of_class(y))

    def complete(self, observed: Observed, y: int) -> tuple[SymbolArray, FloatArray]:
        """Return the most probable completion x of every row in class y, and log P(x | y)."""
        return holes.complete(observed, self.partitions[y], self.made_tables.of_class(y))

    def draw(self, observed: Observed, y: int, rng: np.random.Generator) -> SymbolArray:
        """Return a random completion of every row in class y."""
        return holes.draw(observed, self.partitions[y], self.made_tables.of_class(y), rng)

    def drawn_rows(self, observed: Observed, y: int, uniforms: Uniforms) -> Rows:
        """Do the same for binary rows; y is the seed, and its random numbers may be cached."""
        partition, table = self.partitions[y], self.made_tables.of_class(y)
        drawn = holes.draw_packed(observed, partition, table, lambda size: uniforms.first(y, size))
        return super().drawn_rows(observed, y, uniforms) if drawn is None else drawn

    def expected_moments(
        self, data: RowsInMemory, posterior: FloatArray, least: float
    ) -> FloatArray:
        """Return the moments of rows, as in `Sums`, with expectations for missing entries."""
        examples, tables = data.examples, self.made_tables
        if passes.is_linear(tables):
            kept = posterior * (posterior > least)
            return holes.single_moments(examples, kept, tables, data.n_jobs)
        states = HoleStates.of(tables) if holes.few_states(tables) else None
        if states is None or examples.holes is None or not examples.holes.bits.size:
            return super().expected_moments(data, posterior, least)
        counted = row_counts_of(data, self.partitions)
        return expected.moments(counted, posterior, states, least, data.n_jobs)

    def numbers_drawn(self, observed: Observed, y: int) -> tuple[int, ...]:
        """Return how many random numbers `draw` takes: one per block, then one per variable."""
        return self.partitions[y].n_blocks, self.n_variables

    def expect(self, data: RowsInMemory, log_prior: FloatArray, moments: bool = False) -> BlockSums:
        """Score every row, and compute the sums for the next parameters and blocks."""
        examples, tables = data.examples, self.made_tables
        states = None
        if examples.holes is not None:
            states = None if passes.is_linear(tables) else holes.states_of(examples, tables)
            if states is None:
                return holes.expect(examples, tables, log_prior, data.n_jobs)
        elif passes.is_linear(tables) and not moments:
            return passes.expect_linear(examples, tables, log_prior, data.n_jobs)
        counted = row_counts_of(data, self.partitions)
        scores = passes.score(counted, states.tables if states else tables, log_prior, data.n_jobs)
        return self._summed(counted, scores, states, moments, data.n_jobs)

    def _summed(
        self,
        counted: RowCounts,
        scores: Posteriors,
        states: HoleStates | None,
        moments: bool,
        n_jobs: int | None,
    ) -> BlockSums:
        """Return the sums for the next step, given the posteriors."""
        if states is not None:
            return holes.complete_sums(counted, scores, self.made_tables, states, n_jobs)
        return passes.complete(counted, scores, moments=moments, n_jobs=n_jobs)

    def expect_on(
        self, device: Any, data: RowsInMemory, log_prior: FloatArray, moments: bool = False
    ) -> BlockSums | None:
        """Do the same on a device, for complete rows and fixed blocks."""
        if moments or not on_device.can(data.examples):
            return None
        return passes.expect_on(device, data, self.made_tables, log_prior)

    def posteriors(self, data: RowsInMemory, log_prior: FloatArray) -> FloatArray:
        """Return the posteriors of rows whose counts are not needed again."""
        if data.examples.holes is not None:
            return super().posteriors(data, log_prior)
        scores = passes.rescore(data.examples, self.made_tables, log_prior, data.n_jobs)
        return scores.posterior

    @classmethod
    def best(
        cls, data: RowsInMemory, candidates: Sequence[Mixture], moments: bool = False
    ) -> tuple[BlockSums, Mixture]:
        """Return the candidate with the highest log-likelihood, and its sums; counts are shared.

        The counts of the rows in its blocks are cached, so that unchanged blocks need not be
        counted again. The previous winner is the first guess.
        """
        models: list[Any] = [candidate.model for candidate in candidates]
        log_prior, last = candidates[0].log_prior, len(candidates) - 1
        if not last:
            sums = models[0].expect(data, log_prior, moments)
            _forget_all_but(data, models[0])
            return sums, candidates[0]
        looked_up = [model.made_tables for model in models]
        states: list[HoleStates | None] = [None for _ in models]
        if data.examples.holes is not None:
            states = [holes.states_of(data.examples, tables) for tables in looked_up]
            if not all(states):
                return cls._best_by_scores(data, candidates)
            looked_up = [each.tables for each in states if each]
        counted = [row_counts_of(data, model.partitions) for model in models]
        pairs = list(zip(counted, looked_up, strict=True))
        guess = min(data.memo.get(WINNER, last), last)
        winner, scores = passes.likeliest(pairs, log_prior, guess, data.n_jobs)
        data.memo[WINNER] = winner
        _forget_all_but(data, models[winner])
        rest = (counted[winner], scores, states[winner], moments, data.n_jobs)
        return models[winner]._summed(*rest), candidates[winner]

    @classmethod
    def _best_by_scores(
        cls, data: RowsInMemory, candidates: Sequence[Mixture]
    ) -> tuple[BlockSums, Mixture]:
        """Do the same for rows with missing entries in blocks with too many states."""
        models: list[Any] = [candidate.model for candidate in candidates]
        log_prior = candidates[0].log_prior
        worth = [
            holes.log_likelihood(data.examples, model.made_tables, log_prior, data.n_jobs)
            for model in models
        ]
        winner = int(np.argmax(worth))
        return models[winner].expect(data, log_prior), candidates[winner]

    def expected_log_likelihood(self) -> FloatArray:
        """Return Σ h·log(q / C) over the histogram of each class: its log-likelihood."""
        worth = []
        for histogram, table in zip(
            self.histograms, self.made_tables.split(self.made_tables.values), strict=True
        ):
            seen = histogram > 0
            worth.append(float(histogram[seen] @ table[seen]))
        return np.array(worth)

    def log_linear(self) -> LogLinear:
        """Return the scores of complete rows: linear terms if every variable is a block."""
        tables = self.made_tables
        if not passes.is_linear(tables):
            nothing = np.zeros((self.n_variables, self.n_classes))
            return LogLinear(np.zeros(self.n_classes), nothing, tables=tables)
        entry = tables.starts[tables.labels]
        off, on = tables.values[entry], tables.values[entry + 1]
        return LogLinear(off.sum(axis=0), on - off)

    @classmethod
    def of_odds(cls, log_odds: FloatArray) -> Self:
        """Return independent variables, given log P(x_j = 1 | y) / P(x_j = 0 | y)."""
        n, k = log_odds.shape
        single = Partition.from_labels(np.arange(n))
        off, on = -np.logaddexp(0.0, log_odds), -np.logaddexp(0.0, -log_odds)
        values = np.stack([off, on], axis=1).transpose(2, 0, 1).reshape(k, 2 * n)
        model = cls([single] * k, list(np.exp(values)), np.ones(k))
        model.tables = Tables.layout(model.partitions)
        model.tables.values[:] = values.ravel()
        return model

    def contributions(self, row: IntArray, y: int) -> tuple[float, FloatArray]:
        """Return the score of the empty row in class y, and what each of the row's ones adds.

        In a block with n ones, these share table[n] − table[0] equally.
        """
        partition, table = self.partitions[y], self.made_tables.of_class(y)
        zero = table[partition.starts]
        count = np.bincount(partition.labels[row], minlength=partition.n_blocks)
        gain = table[partition.starts + count] - zero
        return float(zero.sum()), (gain / np.maximum(count, 1))[partition.labels[row]]

    def on_page(self) -> OnPage:
        """Return blocks and look-ups."""
        values = self.made_tables.values
        data = {"labels": stacked_labels(self.partitions), "tables": values}
        return OnPage("blocks", "exchangeable.families.blocks", data, 4.0 * values.size)

    def encode(self) -> Arrays:
        """Return the parameters as arrays for a file."""
        return saved.encode(self.partitions, self.histograms, self.totals, self.made_tables)

    @classmethod
    def decode(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Return the model from arrays of a file, after checking everything."""
        return cls(*saved.decode(arrays))


def known_sums(
    examples: Examples, posterior: FloatArray
) -> list[tuple[float, FloatArray, FloatArray | float]]:
    """Return the weight of each class, and of its rows with each variable on, or missing."""
    n, totals = examples.rows.n_variables, examples.weights @ posterior
    entries = holes.entry_moments(examples, posterior)[0].T
    unknown: Any = [0.0] * totals.size if examples.holes is None else entries[:, n:]
    return [
        (float(total), on, hidden)
        for total, on, hidden in zip(totals, entries[:, :n], unknown, strict=True)
    ]


def log_ways(partition: Partition) -> FloatArray:
    """Return log C(m, l) of every block and count, in the layout of the partition."""
    log_factorial = log_factorials(partition.labels.size)
    sizes = np.repeat(partition.sizes, partition.sizes + 1)
    ones = np.arange(partition.table_size) - np.repeat(partition.starts, partition.sizes + 1)
    return np.asarray(log_factorial[sizes] - log_factorial[ones] - log_factorial[sizes - ones])


def row_counts_of(data: RowsInMemory, partitions: list[Partition]) -> RowCounts:
    """Return the rows' counts in some blocks, counting only those that are new."""
    kept: list[RowCounts] = data.memo.setdefault(COUNTS, [])
    for counted in kept:
        if counted.is_of(partitions):
            return counted
    counted = RowCounts.of(data.examples, partitions, kept, data.n_jobs)
    kept.append(counted)
    return counted


def _forget_all_but(data: RowsInMemory, model: BlockModel) -> None:
    """Keep the counts in one model's blocks alone."""
    kept: list[RowCounts] = data.memo.get(COUNTS, [])
    data.memo[COUNTS] = [counted for counted in kept if counted.is_of(model.partitions)]
