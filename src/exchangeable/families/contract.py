"""What a family of distributions must offer, so that everything else works over it.

A *model* holds the parameters of several distributions over the same binary variables, one per
class or component, and answers four questions about rows with holes. A *family* turns sums over
rows into parameters. A *specification* says what the family is called and what it can do. All other
modules (EM, search, averages, queries, files, command line, page) read these three and name none.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import UNASSIGNED, FloatArray, IntArray, SymbolArray, normalize_log
from exchangeable.data.examples import Examples
from exchangeable.data.observed import Observed
from exchangeable.families.abilities import ABILITIES
from exchangeable.families.sums import EMData, RowsInMemory, Sums
from exchangeable.partitions import Partition
from exchangeable.runtime.memory import check_memory, times_available
from exchangeable.runtime.threads import row_ranges
from exchangeable.storage.checks import check_totals
from exchangeable.storage.limits import Budget

if TYPE_CHECKING:
    from exchangeable.families.common.log_linear import LogLinear
    from exchangeable.families.mixture import Mixture
    from exchangeable.families.problem import Problem
    from exchangeable.structure.proposals import Proposal, Proposer

MOST_CELLS = 1 << 24
"""Scores of rows by classes that are held at once."""
SMALLEST_SHARE = 1e-12
"""A component's probability does not fall below this."""
Arrays = dict[str, npt.NDArray[Any]]


class Normal(NamedTuple):
    """Normal distributions, one per row: what is known about a measurement."""

    mean: FloatArray
    variance: FloatArray


class Model(ABC):
    """Distributions over binary variables, one per class or component y.

    A row that is impossible in class y has score −inf there; its marginals, completion and draws in
    that class are never used, but must be numbers.
    """

    kind: ClassVar[str]
    """What the parameters are called in files."""
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
        """Return log P(e | y), shape (n_rows, n_classes): e are a row's known entries."""

    @abstractmethod
    def marginals(self, observed: Observed, y: int) -> FloatArray:
        """Return P(x_j = 1 | e, y), shape (n_rows, n_variables); known entries stay 0 or 1."""

    def predictive(self, observed: Observed, variable: int, y: int) -> FloatArray | Normal:
        """Return the distribution of a variable that no row knows, given what rows know.

        Probabilities of its levels or of the counts 0, 1, …, shape (n_rows, n_values), or `Normal`;
        the default is for binary variables.
        """
        on = self.marginals(observed, y)[:, variable]
        return np.stack([1 - on, on], axis=1)

    @abstractmethod
    def complete(self, observed: Observed, y: int) -> tuple[SymbolArray, FloatArray]:
        """Return the most probable completion x of each row, and log P(x | y).

        Where that is hard to find, as with hidden states in a class, one that is hard to improve.
        """

    @abstractmethod
    def draw(self, observed: Observed, y: int, rng: np.random.Generator) -> SymbolArray:
        """Return a completion of each row, drawn from P(x | e, y)."""

    def numbers_drawn(self, observed: Observed, y: int) -> tuple[int, ...] | IntArray:
        """Return how many random numbers `draw` takes, by which rows find theirs in chunks.

        A tuple: for each row of a part (`Observed.chunks`), in turn. An array: for each of the
        rows, which then take them in the order of their states.
        """
        raise NotImplementedError(f"{self.kind} do not say which random numbers a row takes")

    @abstractmethod
    def expect(self, data: RowsInMemory, log_prior: FloatArray, moments: bool = False) -> Sums:
        """Find the posteriors of all rows, and sum what the next parameters are made of."""

    def expect_on(
        self, device: Any, data: RowsInMemory, log_prior: FloatArray, moments: bool = False
    ) -> Sums | None:
        """Do the same on a device of JAX, to single precision; None where only `expect` can."""
        return None

    def posteriors(self, data: RowsInMemory, log_prior: FloatArray) -> FloatArray:
        """Return P(y | e) of every row alone."""
        joint = self.score(data.examples.observed, data.n_jobs) + log_prior
        return np.exp(normalize_log(joint, log_prior)[0])

    @abstractmethod
    def only(self, classes: IntArray) -> Self:
        """Return the model of some of the classes, in the order they have here."""

    @classmethod
    @abstractmethod
    def stack(cls, models: Sequence[Any]) -> Self:
        """Return the model of all classes of several models."""

    @abstractmethod
    def encode(self) -> Arrays:
        """Return the parameters as the arrays that a file keeps."""

    @classmethod
    @abstractmethod
    def decode(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Return the model of arrays that were read, refusing what the kernels cannot trust."""

    @classmethod
    def read(cls, arrays: Mapping[str, npt.NDArray[Any]], budget: Budget | None = None) -> Self:
        """Return the model of arrays that were read, if it is small enough and adds up to one.

        Parameters
        ----------
        arrays : mapping from name to array
            What `encode` has returned.
        budget : Budget, optional
            The steps that are left to what is read from the same file.
        """
        model = cls.decode(arrays)
        (budget or Budget()).spend(model.n_steps, f"a model of {cls.kind}")
        check_totals(model.log_totals(), cls.kind)
        return model

    @property
    def n_steps(self) -> float:
        """About how many nanoseconds the first score takes, which a file must not let grow."""
        return 100.0 * self.n_classes * self.n_variables

    def log_totals(self) -> FloatArray:
        """Return log Σ_x P(x | y) of each class: 0 if its parameters make a distribution."""
        nothing = np.full((1, self.n_variables), UNASSIGNED, dtype=np.int8)
        return np.asarray(self.score(Observed.from_symbols(nothing))[0])

    def count_probabilities(self) -> list[list[FloatArray]]:
        """Return P(l ones | y) for every class, block and count l; the default is for single ones.

        It is what the model says of a row about which nothing is known.
        """
        nothing = Observed.from_symbols(np.full((1, self.n_variables), UNASSIGNED, dtype=np.int8))
        means = [self.marginals(nothing, y)[0] for y in range(self.n_classes)]
        return [[np.array([1 - p, p]) for p in row] for row in means]

    def edges(self) -> list[IntArray]:
        """Return, for each class, the (node, parent) of each edge of its forest, none by default.

        Nodes are variables, or the blocks of `partitions` where a family's forest is over those.
        """
        return [np.empty((0, 2), dtype=np.int64)] * self.n_classes

    def log_urn_weights(self) -> FloatArray:
        """Return the log-weight of each variable in its urn, shape (n_variables, n_classes)."""
        return np.zeros((self.n_variables, self.n_classes))

    @property
    def own_marginals(self) -> FloatArray | None:
        """P(x_j = 1 | y), shape (n_classes, n_variables), if nothing that is known changes it.

        None where variables depend on each other in a class.
        """
        return None

    def whole(self) -> Self:
        """Return the model that can score any row; while fitting, some cannot."""
        return self

    def log_linear(self) -> "LogLinear | None":
        """Return what complete rows score as linear terms, pairs and look-ups; None if no such."""
        return None

    def contributions(self, row: IntArray, y: int) -> tuple[float, FloatArray] | None:
        """Return what the empty row scores in class y and what each of `row`'s ones adds to that.

        None where a score is not a sum over the variables that are on.
        """
        return None

    def page_tables(self) -> dict[str, npt.NDArray[Any]] | None:
        """Return the arrays with which the page answers by itself, None where it cannot."""
        return None

    def log_likelihoods(
        self, log_prior: FloatArray, examples: Examples, n_jobs: int | None = None
    ) -> FloatArray:
        """Return the log-probability of each row, some rows at a time if there are many classes."""
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
        """Return the candidate with the highest log-likelihood, and what a pass under it sums."""
        chosen = candidates[0]
        if len(candidates) > 1:
            worth = [each.log_likelihood(data.examples, data.n_jobs) for each in candidates]
            chosen = candidates[int(np.argmax(worth))]
        return chosen.model.expect(data, chosen.log_prior, moments), chosen


def single_variables(n_variables: int, n_classes: int) -> list[Partition]:
    """Return the partitions of a model in which every variable is a block of its own."""
    return [Partition.from_labels(np.arange(n_variables))] * n_classes


class Family(ABC):
    """How sums over rows become parameters, for one run of EM.

    Parameters
    ----------
    problem : Problem
        The rows, the blocks and the strengths of the priors.
    """

    closed_form: ClassVar[bool] = False
    """Whether `first` fits complete rows with labels as well as can be."""
    learns_by_class: ClassVar[bool] = False
    """Whether labelled rows teach blocks class by class, or all at once by Algorithm 1."""
    remembers: ClassVar[bool] = True
    """Whether `first` leaves something behind that later steps need."""

    def __init__(self, problem: "Problem") -> None:
        self.problem = problem

    @abstractmethod
    def start(self, data: EMData, init: str, rng: np.random.Generator) -> Sums:
        """Return posteriors to begin with, and sums of them.

        ``init="rows"``: components lean towards rows of the data; ``init="random"``: at random.
        """

    @abstractmethod
    def held(self, data: EMData, posterior: FloatArray) -> Sums:
        """Return sums of given posteriors, as `start` does."""

    @abstractmethod
    def first(
        self,
        data: EMData,
        sums: Any,
        blocks: "Proposal",
        before: "Mixture | None",
        rng: np.random.Generator | None,
    ) -> "Mixture":
        """Return parameters that fit given posteriors.

        Parameters
        ----------
        data : EMData
            The rows.
        sums : Sums
            What `start` has returned, or sums under the fit of the family that comes before.
        blocks : Proposal
            The blocks to begin with.
        before : Mixture, optional
            What the family that comes before has been fitted to be.
        rng : Generator, optional
            For families whose runs should differ in more than their posteriors.
        """

    def resume(self, data: EMData, mixture: "Mixture") -> None:  # noqa: B027, most need nothing
        """Get ready to go on from an earlier fit instead of `first`, perhaps to other rows."""

    @abstractmethod
    def following(self, data: EMData, model: Any, sums: Any, step: int) -> list[Model]:
        """Return the parameters after one step, the steps being numbered from 1.

        Where there are several, EM takes those under which the rows are likeliest. Step 0 asks for
        parameters alone: no new blocks or trees.
        """

    def with_blocks(self, data: EMData, model: Any, sums: Any, blocks: "Proposal") -> Model | None:
        """Return parameters for new blocks, None where these are the old ones."""
        raise NotImplementedError(f"{type(self).__name__} does not learn blocks while it is fitted")

    def candidates(
        self, data: EMData, model: Any, sums: Any, step: int, proposals: Sequence["Proposal"]
    ) -> list[Model]:
        """Return the models to choose from: the old blocks with new parameters, and the new."""
        changed = [self.with_blocks(data, model, sums, blocks) for blocks in proposals]
        return [*self.following(data, model, sums, step), *filter(None, changed)]

    def prior_gain(self, before: Any, after: Any) -> float:
        """Return how much the log-density of the prior grows from one model to another.

        Together with the gain in log-likelihood it is the gain in what EM maximises.
        """
        return 0.0

    def learners(self, data: Any) -> "list[Proposer] | None":
        """Return what proposes blocks while EM runs; None for what the problem's structure says."""
        return None

    def log_shares(self, totals: FloatArray) -> FloatArray:
        """Return the log-probability of each class, unless the problem fixes it."""
        if self.problem.log_prior is not None:
            return self.problem.log_prior
        return self.log_shares_of(totals)

    @staticmethod
    def log_shares_of(totals: FloatArray) -> FloatArray:
        """Return the logs of shares of some weights, none of them zero."""
        shares = np.maximum(totals / totals.sum(), SMALLEST_SHARE)
        return np.asarray(np.log(shares / shares.sum()))

    def start_of(self, init: str, number: int) -> str:
        """Return how the numbered run starts: ``init="both"`` takes turns."""
        return ("rows", "random")[number % 2] if init == "both" else init

    def block_data(self, data: Any) -> Any:
        """Return the rows from which the first blocks are learned."""
        return data

    def prepared(self, data: Any, sums: Sums) -> Model | None:
        """Return parameters with which holes can be drawn, before there are any others."""
        return None

    def distance(self, before: Any, after: Any) -> float:
        """Return how far a step has moved the parameters; 0 where one step is the whole M-step."""
        return 0.0


class Trainer(ABC):
    """A family's own way to its parameters, in place of EM.

    Parameters
    ----------
    problem : Problem
        The rows, those held out, and the family's settings.
    """

    def __init__(self, problem: "Problem") -> None:
        self.problem = problem

    @abstractmethod
    def train(
        self, data: RowsInMemory, rng: np.random.Generator, tol: float, max_iter: int
    ) -> Iterator[tuple[float, float]]:
        """Train, one iteration at a time, until held-out rows gain less than `tol`.

        After each it yields about what the rows and the held-out rows are worth: their average
        log-likelihoods. Whoever has enough stops asking.
        """

    @abstractmethod
    def mixture(self, data: RowsInMemory) -> "Mixture":
        """Return the best that training has found so far; at least one iteration was made."""

    @property
    @abstractmethod
    def converged(self) -> bool:
        """Whether training has ended because nothing more was to be gained."""


@dataclass(frozen=True)
class SearchSpace:
    """Where a search over a family's sizes and priors begins, and where it ends.

    Attributes
    ----------
    first_components, most_components : int
        Number of components of the first trial, and the largest.
    pooling : tuple of float
        Pseudo-rows of the first trial, for few and for many variables.
    alone : bool
        Whether what other families found says nothing about the number of components here.
    climbs : bool
        Whether sizes and priors are searched, or the first trial is the only one.
    unasked : bool
        Whether it is tried where users name no families.
    """

    first_components: int = 30
    most_components: int = 1 << 30
    pooling: tuple[float, float] = (8.0, 32.0)
    alone: bool = False
    climbs: bool = True
    unasked: bool = True


NUMBER = 8
"""Bytes of a floating-point number."""


def least_memory(n_rows: int, n_variables: int, n_components: int) -> float:
    """Return the bytes of posteriors, old and new, and of one parameter per variable."""
    return NUMBER * n_components * (2.0 * n_rows + n_variables)


@dataclass(frozen=True)
class FamilySpec:
    """What a family is called, what it is for, and what it can do.

    Attributes
    ----------
    name : str
        As users write it: ``family="urns"``.
    summary : str
        One sentence for help texts and tables.
    model : type
        The parameters; several families may share one type.
    family : type
        How sums become them, a `Family`; or how they are trained without EM, a `Trainer`.
    blocks : tuple of str
        Which blocks it can have, of ``"evidence"``, ``"welch"``, ``"independent"``, ``"full"`` and
        ``"given"``; the first is what ``blocks="auto"`` stands for.
    blocks_hint : str
        What to do instead of asking for others.
    shared_blocks : bool
        Whether all components must have the same blocks.
    relearns : bool
        Whether EM goes on learning blocks by default, or keeps those it begins with.
    pooling : float or None
        Pseudo-rows of the pooled prior, where the user does not say; None for Laplace smoothing.
    shrinkage : float or None
        Pseudo-rows that pull an edge towards independence, where the user does not say; None for
        families without edges.
    needs_smoothing : bool
        Whether ``alpha=0`` is refused.
    most_variables : int or None
        The largest number of variables it can be fitted to.
    statistics : bool
        Whether its blocks come with statistics: it then stands for the family of the same name
        where users give such blocks.
    before : callable, optional
        Returns, given a problem, the name and the problem of the family which is fitted first, and
        from which this one starts.
    direct : type, optional
        Fits classes of complete and labelled rows from sums alone: `fit` and `add` in memory,
        `sums` and `fit_chunks` where rows come in chunks.
    stream : type, optional
        Fits mixtures to batches that come one after the other: `keep` and `add`.
    cannot : mapping from ability to reason
        What it refuses, of `families.abilities.ABILITIES`.
    search : SearchSpace or None
        For `ExchangeableDensity`; None where the family is not searched unless it is asked for.
    normalise : callable, optional
        Returns, given log-linear scores of classes, the mixture with log P(x, y) = score − log of
        their total, and that logarithm; None where the family cannot represent such scores.
    kinds : tuple of str
        Kinds of columns that it is for.
    other_kinds : str, optional
        The family that stands in for it where columns are of other kinds.
    memory : callable
        Returns how many bytes a fit needs at least, given the numbers of distinct rows in memory,
        of variables and of components; 0 rows where only sums over them are kept. A fit for which
        there is too little is not begun, and runs for which there is too little wait.
    components : int
        Number of components, where the user does not say.
    most_per_row : float
        The largest number of components for each row.
    held_out : float or None
        Share of the rows to hold out, where the user holds out none.
    settings : object, optional
        What users may write in place of the name, with settings of the family's own, here at their
        defaults. It has the family's name as `family`.
    """

    name: str
    summary: str
    model: type[Model]
    family: type[Family] | type[Trainer]
    blocks: tuple[str, ...]
    blocks_hint: str = ""
    shared_blocks: bool = False
    relearns: bool = False
    pooling: float | None = None
    shrinkage: float | None = None
    needs_smoothing: bool = False
    most_variables: int | None = None
    statistics: bool = False
    before: Any = None
    direct: Any = None
    stream: Any = None
    cannot: Mapping[str, str] = field(default_factory=dict)
    search: SearchSpace | None = None
    normalise: "Callable[[LogLinear, int | None], tuple[Mixture, float] | None] | None" = None
    kinds: tuple[str, ...] = ("binary",)
    other_kinds: str | None = None
    memory: Callable[[int, int, int], float] = least_memory
    components: int = 20
    most_per_row: float = 1.0
    held_out: float | None = None
    settings: Any = None

    def __post_init__(self) -> None:
        unknown = sorted(set(self.cannot) - set(ABILITIES))
        if unknown:
            raise ValueError(
                f"family {self.name!r} cannot {unknown[0]!r}, which is not an ability; expected "
                f"some of {', '.join(ABILITIES)}"
            )

    def why_not(self, ability: str) -> str | None:
        """Return why the family cannot do something, None where it can."""
        needed = filter(None, map(self.why_not, ABILITIES[ability].needs))
        return next(needed, self.cannot.get(ability))

    def check(self, ability: str, asked: str) -> None:
        """Refuse what the family cannot do, saying why; `asked` names what the user wants."""
        reason = self.why_not(ability)
        if reason is not None:
            raise ValueError(f"{asked} does not go with family={self.name!r}: {reason}")

    def check_size(self, n_variables: int) -> None:
        """Refuse more variables than the family can be fitted to."""
        if self.most_variables is not None and n_variables > self.most_variables:
            raise ValueError(
                f"family={self.name!r} compares all pairs of variables; the limit is "
                f"{self.most_variables:,}, X has {n_variables:,}: choose fewer variables or "
                "another family"
            )

    def check_memory(self, n_rows: int, n_variables: int, n_components: int) -> None:
        """Refuse a fit that needs more memory than there is; 0 rows if they are not kept."""
        rows = f"{n_rows:,} distinct rows of {n_variables:,}" if n_rows else f"{n_variables:,}"
        check_memory(
            self.memory(n_rows, n_variables, n_components),
            f"a fit of family={self.name!r} with {n_components:,} components to {rows} variables",
            "choose fewer components or variables, another family, or rows in chunks",
        )

    def runs_at_once(self, n_rows: int, n_variables: int, n_components: int) -> int:
        """Return how many runs of a fit there is memory for at a time, at least one."""
        return max(1, times_available(self.memory(n_rows, n_variables, n_components)))
