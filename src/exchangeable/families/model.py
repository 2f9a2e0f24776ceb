"""The contract for the parameters of a family: `Model`."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import UNASSIGNED, FloatArray, IntArray, SymbolArray, normalize_log
from exchangeable.data.examples import Examples
from exchangeable.data.observed import Observed
from exchangeable.data.rows import CountRows, Rows, TypedRows, as_rows
from exchangeable.families.items import ItemScale
from exchangeable.families.page import OnPage
from exchangeable.families.predictive import Normal, Normals
from exchangeable.families.sums import RowsInMemory, Sums
from exchangeable.partitions import Partition
from exchangeable.runtime.kernels.uniforms import Uniforms
from exchangeable.runtime.threads import row_ranges
from exchangeable.storage.checks import check_totals
from exchangeable.storage.limits import Budget

if TYPE_CHECKING:
    from exchangeable.families.common.log_linear.scores import LogLinear
    from exchangeable.families.mixture import Mixture
    from exchangeable.structure.statistic_blocks import StatisticBlock

MOST_CELLS = 1 << 24
"""Number of scores (rows by classes) held at a time."""
Arrays = dict[str, npt.NDArray[Any]]


class Completions(NamedTuple):
    """The most probable completion of every row.

    Attributes
    ----------
    rows : array of shape (n_rows, n_variables)
        The completed rows x.
    classes : array of shape (n_rows,)
        The class y of each.
    log_prob : array of shape (n_rows,)
        log P(x, y).
    bound : array of shape (n_rows,)
        Upper bound of log P(x, y) over all completions: `log_prob` itself if it is the maximum.
    """

    rows: SymbolArray
    classes: IntArray
    log_prob: FloatArray
    bound: FloatArray

    @classmethod
    def none(cls, observed: Observed) -> Self:
        """Return placeholders that are worse than every completion."""
        n_rows = observed.n_rows
        typed = isinstance(observed.ones, TypedRows | CountRows)
        kind = np.float64 if typed else np.uint8
        rows: Any = np.zeros((n_rows, observed.n_variables), dtype=kind)
        nothing = np.full(n_rows, -np.inf)
        return cls(rows, np.zeros(n_rows, dtype=np.int64), nothing, nothing.copy())

    def take(self, rows: IntArray) -> Self:
        """Return the completions of some rows."""
        x, classes, log_prob, bound = self
        return type(self)(x[rows], classes[rows], log_prob[rows], bound[rows])

    def take_better(self, other: Self) -> None:
        """Take over the rows that another candidate completes better; bounds hold for both."""
        better = other.log_prob > self.log_prob
        for mine, theirs in zip(self[:3], other[:3], strict=True):
            mine[better] = theirs[better]
        np.maximum(self.bound, other.bound, out=self.bound)


class Model(ABC):
    """Distributions over binary variables, one per class or component y.

    A row that is impossible in class y has score −inf there; its marginals, completion and draws in
    that class are never used, but must be numbers.
    """

    kind: ClassVar[str]
    """The name of the model in files."""
    partitions: Any
    """The blocks of each class, a list of Partition; see `single_variables`."""

    @property
    @abstractmethod
    def n_classes(self) -> int:
        """Number of classes."""

    @property
    @abstractmethod
    def n_variables(self) -> int:
        """Number of variables."""

    @property
    @abstractmethod
    def n_parameters(self) -> int:
        """Number of free parameters, without the probabilities of the classes."""

    @abstractmethod
    def score(self, observed: Observed, n_jobs: int | None = None) -> FloatArray:
        """Return log P(e | y), shape (n_rows, n_classes); e are a row's known entries."""

    def score_examples(self, examples: Examples, n_jobs: int | None = None) -> FloatArray:
        """Do the same for examples, in which intermediate results may be cached."""
        return self.score(examples.observed, n_jobs)

    @abstractmethod
    def marginals(self, observed: Observed, y: int) -> FloatArray:
        """Return P(x_j = 1 | e, y), shape (n_rows, n_variables); known entries stay 0 or 1."""

    def mean_marginals(self, observed: Observed, shares: FloatArray) -> FloatArray:
        """Return Σ_y shares[row, y]·P(x_j = 1 | e, y), shape (n_rows, n_variables).

        One class after another, unless a model has a way to answer all at once.
        """
        means = np.zeros((observed.n_rows, self.n_variables))
        for y in range(self.n_classes):
            members = np.flatnonzero(shares[:, y] > 0)
            if members.size:
                own = self.marginals(observed.take(members), y)
                means[members] += shares[members, y, None] * own
        return means

    def predictive(
        self, observed: Observed, variable: int, y: int
    ) -> FloatArray | Normal | Normals:
        """Return the distribution of an unknown variable, given the known ones.

        Probabilities of its levels or of the counts 0, 1, …, shape (n_rows, n_values), or `Normal`,
        or `Normals`; the default is for binary variables.
        """
        on = self.marginals(observed, y)[:, variable]
        return np.stack([1 - on, on], axis=1)

    @abstractmethod
    def complete(self, observed: Observed, y: int) -> tuple[SymbolArray, FloatArray]:
        """Return the most probable completion x of each row, and log P(x | y).

        If that is hard to find, as with hidden states in a class, it may return one that is hard to
        improve; `most_probable` then runs a search.
        """

    def most_probable(
        self, observed: Observed, log_prior: FloatArray, classes: IntArray
    ) -> Completions:
        """Return the jointly most probable completion and class, among some classes."""
        best = Completions.none(observed)
        for y in classes:
            rows, scores = self.complete(observed, int(y))
            log_prob = scores + log_prior[y]
            best.take_better(Completions(rows, np.full(len(rows), y), log_prob, log_prob))
        return best

    def alternatives(self, observed: Observed, most: int) -> list[npt.NDArray[Any]] | None:
        """Return completions of each row, one of which is the best for any weights of the classes.

        None if there may be more than `most` per row, or if this is not known. Hidden trees use
        this for models that are their leaves.
        """
        return None

    @abstractmethod
    def draw(self, observed: Observed, y: int, rng: np.random.Generator) -> SymbolArray:
        """Return a completion of each row, drawn from P(x | e, y)."""

    def imagined(self, n_rows: int, y: int, rng: np.random.Generator) -> Observed:
        """Return rows drawn from P(x | y)."""
        nothing = np.full((n_rows, self.n_variables), UNASSIGNED, dtype=np.int8)
        return Observed.from_symbols(self.draw(Observed.from_symbols(nothing), y, rng))

    def drawn_rows(self, observed: Observed, y: int, uniforms: Uniforms) -> Rows:
        """Do the same for binary rows; y is the seed, and its random numbers may be cached."""
        return as_rows(self.draw(observed, y, np.random.default_rng(y)), 0.0, 1)

    def numbers_drawn(self, observed: Observed, y: int) -> tuple[int, ...] | IntArray:
        """Return how many random numbers `draw` uses, so that rows in chunks find theirs.

        A tuple: for each row of a part (`Observed.chunks`), in turn. An array with one line per
        row: rows use theirs in the order of their states, and equal rows column by column.
        """
        raise NotImplementedError(f"{self.kind} do not say which random numbers a row takes")

    @abstractmethod
    def expect(self, data: RowsInMemory, log_prior: FloatArray, moments: bool = False) -> Sums:
        """Compute the posteriors of all rows, and the sums for the next parameters."""

    def shared_out(self, examples: Examples, mass: FloatArray) -> Sums:
        """Return the sums of rows with known class memberships.

        `mass`, of shape (n_rows, n_classes), replaces weights and posteriors. Hidden trees use this
        for models that are their leaves.
        """
        raise NotImplementedError(f"{self.kind} are not blocks of a tree with hidden states")

    def expected_moments(
        self, data: RowsInMemory, posterior: FloatArray, least: float
    ) -> FloatArray:
        """Return the moments of rows, as in `Sums`, with expectations for missing entries.

        Rows that belong to a class with probability at most `least` are left out of it.
        """
        moments = np.zeros((2, self.n_variables, self.n_classes))
        for y in range(self.n_classes):
            members = np.flatnonzero(posterior[:, y] > least)
            share = posterior[members, y]
            mass = data.examples.weights[members] * share
            for span, part in data.examples.observed.take(members).chunks():
                on = self.marginals(part, y)
                moments[0, :, y] += mass[span] @ on
                moments[1, :, y] += (mass[span] * share[span]) @ on
        return moments

    def expect_on(
        self, device: Any, data: RowsInMemory, log_prior: FloatArray, moments: bool = False
    ) -> Sums | None:
        """Do the same on a JAX device, in single precision; None if only `expect` can."""
        return None

    def posteriors(self, data: RowsInMemory, log_prior: FloatArray) -> FloatArray:
        """Return only P(y | e) of every row."""
        joint = self.score(data.examples.observed, data.n_jobs) + log_prior
        return np.exp(normalize_log(joint, log_prior)[0])

    @abstractmethod
    def only(self, classes: IntArray) -> Self:
        """Return the model of some of the classes, in the given order."""

    @classmethod
    @abstractmethod
    def stack(cls, models: Sequence[Any]) -> Self:
        """Return the model of all classes of several models."""

    @abstractmethod
    def encode(self) -> Arrays:
        """Return the parameters as arrays for a file."""

    @classmethod
    @abstractmethod
    def decode(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Return the model from arrays of a file, rejecting what the kernels cannot trust."""

    @classmethod
    def read(cls, arrays: Mapping[str, npt.NDArray[Any]], budget: Budget | None = None) -> Self:
        """Return the model from arrays of a file, if it is small enough and sums to one.

        Parameters
        ----------
        arrays : mapping from name to array
            The result of `encode`.
        budget : Budget, optional
            The work budget that is left for the rest of the file.
        """
        model = cls.decode(arrays)
        (budget or Budget()).spend(model.n_steps, f"a model of {cls.kind}")
        check_totals(model.log_totals(), cls.kind)
        return model

    @property
    def n_steps(self) -> float:
        """Nanoseconds of the first score, approximately; for a file there is a limit."""
        return 100.0 * self.n_classes * self.n_variables

    def log_totals(self) -> FloatArray:
        """Return log Σ_x P(x | y) of each class: 0 if its parameters define a distribution.

        Files are checked by it, so it should use little memory besides the parameters, and cache
        nothing.
        """
        nothing = np.full((1, self.n_variables), UNASSIGNED, dtype=np.int8)
        return np.asarray(self.score(Observed.from_symbols(nothing))[0])

    def count_probabilities(self) -> list[list[FloatArray]]:
        """Return P(l ones | y) for every class, block and count l; the default is for single ones.

        It is the distribution of a row about which nothing is known.
        """
        nothing = Observed.from_symbols(np.full((1, self.n_variables), UNASSIGNED, dtype=np.int8))
        means = [self.marginals(nothing, y)[0] for y in range(self.n_classes)]
        return [[np.array([1 - p, p]) for p in row] for row in means]

    def edges(self) -> list[IntArray]:
        """Return the (node, parent) of each edge of each class's forest; none by default.

        Nodes are variables, or the blocks of `partitions` if a family's forest is over blocks.
        """
        return [np.empty((0, 2), dtype=np.int64)] * self.n_classes

    @property
    def learned_partitions(self) -> Any:
        """The blocks of each class, over variables that no user-defined statistic reads."""
        return self.partitions

    def reads(self, blocks: Sequence["StatisticBlock"]) -> bool:
        """Whether the model has blocks with exactly these statistics."""
        return not blocks

    def units(self) -> IntArray:
        """Return, for each class, the number of the set of classes with which it shares parameters.

        Sets are numbered in the order of their classes; by default every class is a set by itself.
        """
        return np.arange(self.n_classes)

    def log_urn_weights(self) -> FloatArray:
        """Return the log-weight of each variable in its urn, shape (n_variables, n_classes)."""
        return np.zeros((self.n_variables, self.n_classes))

    def item_scale(self) -> ItemScale | None:
        """Return the items whose total is sufficient, if there is a single such block."""
        return None

    @property
    def own_marginals(self) -> FloatArray | None:
        """P(x_j = 1 | y), shape (n_classes, n_variables), if it does not depend on known entries.

        None if variables depend on each other within a class.
        """
        return None

    def level_shares(self) -> list[FloatArray] | None:
        """Return P(x_j = v | y) for every column, shape (n_levels, n_classes) each.

        None if columns depend on each other within a class, or one of them has no levels.
        """
        return None

    def whole(self) -> Self:
        """Return a model that can score any row; while fitting, some models cannot."""
        return self

    def log_linear(self) -> "LogLinear | None":
        """Return what complete rows score as linear terms, pairs and look-ups; None if no such."""
        return None

    def contributions(self, row: IntArray, y: int) -> tuple[float, FloatArray] | None:
        """Return the score of the empty row in class y, and what each of `row`'s ones adds.

        None if the score is not a sum over the variables that are on.
        """
        return None

    def on_page(self) -> OnPage | None:
        """Return the data for a report's page, None if only Python can compute the answers."""
        return None

    def log_likelihoods(
        self, log_prior: FloatArray, examples: Examples, n_jobs: int | None = None
    ) -> FloatArray:
        """Return the log-probability of each row, a part at a time if there are many classes."""
        each = np.empty(examples.rows.n_rows)
        for begin, end in row_ranges(each.size, max(1, MOST_CELLS // log_prior.size)):
            rows = examples.observed
            part = rows if end - begin == each.size else rows.take(np.arange(begin, end))
            each[begin:end] = normalize_log(self.score(part, n_jobs) + log_prior, log_prior)[1]
        return each

    @classmethod
    def best(
        cls, data: RowsInMemory, candidates: Sequence["Mixture"], moments: bool = False
    ) -> tuple[Sums, "Mixture"]:
        """Return the candidate with the highest log-likelihood, and the sums of a pass under it."""
        if len(candidates) > 1 and data.examples.clamp.size:  # labels count, too
            passes = [
                (each.model.expect(data, each.log_prior, moments), each) for each in candidates
            ]
            return max(passes, key=lambda made: made[0].log_likelihood)
        chosen = candidates[0]
        if len(candidates) > 1:
            worth = [each.log_likelihood(data.examples, data.n_jobs) for each in candidates]
            chosen = candidates[int(np.argmax(worth))]
        return chosen.model.expect(data, chosen.log_prior, moments), chosen


def single_variables(n_variables: int, n_classes: int) -> list[Partition]:
    """Return the partitions of a model in which every variable is a block of its own."""
    return [Partition.from_labels(np.arange(n_variables))] * n_classes
