"""The specification of a family, with its name, purpose and abilities: `FamilySpec`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from exchangeable.families.abilities import ABILITIES
from exchangeable.families.family import Family, Trainer
from exchangeable.families.items import Conditional
from exchangeable.families.later import Later
from exchangeable.families.model import Model
from exchangeable.runtime.memory import check_memory, times_available

if TYPE_CHECKING:
    from numpy.random import Generator

    from exchangeable.data.examples import Examples
    from exchangeable.families.common.features import Features
    from exchangeable.families.common.log_linear.scores import LogLinear
    from exchangeable.families.mixture import Mixture
    from exchangeable.families.problem import Problem


@dataclass(frozen=True)
class SearchSpace:
    """Where a search over a family's sizes and priors begins and ends.

    Attributes
    ----------
    first_components, most_components : int
        Number of components of the first fit, and its maximum.
    pooling : tuple of float
        Pseudo-rows of the first fit, for few and for many variables.
    alone : bool
        Whether the number of components is independent of what is best for other families.
    blocks : tuple of str
        The blocks to try, each searched separately.
    steps : mapping from name to tuple of float
        What is varied, and by which factors, coarse ones first: numbers of components, strengths of
        priors, or the family's own settings.
    nanoseconds : float
        Approximate nanoseconds of a fit per row, variable and component; it decides which fits come
        first, and which are not started when time is short.
    power : float
        That time is proportional to this power of rows times variables.
    squared : float
        The same per row, pair of variables and component.
    pairs : float
        The same per pair of variables and component, independent of the number of rows.
    growth : float
        With more components than at first, the time grows by this power, approximately.
    start_up : float
        Minimum duration of a fit in seconds.
    most_on_device : int, optional
        Maximum number of components if a device runs the passes of EM. A search uses the device on
        which it trains networks, if there is one; None if passes run on the CPU unless users ask
        for a device.
    like : str, optional
        The family that is fitted first, and whose log-likelihood tells what to expect of this one.
    """

    first_components: int = 30
    most_components: int = 500
    pooling: tuple[float, float] = (8.0, 32.0)
    alone: bool = False
    blocks: tuple[str, ...] = ("auto",)
    steps: Mapping[str, tuple[float, ...]] = field(
        default_factory=lambda: {
            "n_components": (2.5, 1.5),
            "pooling": (4.0, 2.0),
            "shrinkage": (4.0, 2.0),
        }
    )
    nanoseconds: float = 100.0
    power: float = 1.0
    squared: float = 0.0
    pairs: float = 0.0
    growth: float = 1.0
    start_up: float = 0.0
    most_on_device: int | None = None
    like: str | None = None

    def seconds(self, n_rows: int, n_variables: int, n_components: int) -> float:
        """Return the approximate duration of a fit."""
        each = self.nanoseconds * float(n_rows * n_variables) ** self.power
        each += (self.squared * n_rows + self.pairs) * n_variables**2
        first = self.first_components
        work = first * float((n_components / first) ** self.growth)
        return float(self.start_up + 1e-9 * each * work)


NUMBER = 8
"""Bytes of a floating-point number."""


def least_memory(n_rows: int, n_variables: int, n_components: int) -> float:
    """Return the bytes of posteriors, old and new, and of one parameter per variable."""
    return NUMBER * n_components * (2.0 * n_rows + n_variables)


@dataclass(frozen=True)
class FamilySpec:
    """The name, purpose and abilities of a family.

    Attributes
    ----------
    name : str
        The name that users write: ``family="urns"``.
    summary : str
        One sentence for help texts and tables.
    model : type
        The parameters; several families may share one type.
    family : type
        How sums are turned into parameters, a `Family`; or how they are trained without EM, a
        `Trainer`.
    blocks : tuple of str
        The supported blocks, among ``"evidence"``, ``"welch"``, ``"independent"``, ``"full"`` and
        ``"given"``; the first is the meaning of ``blocks="auto"``.
    blocks_hint : str
        Advice for users who ask for other blocks.
    shared_blocks : bool
        Whether all components must have the same blocks.
    relearns : bool
        Whether EM continues to learn blocks by default, or keeps the initial ones.
    pooling : float or None
        Default number of pseudo-rows of the pooled prior; None for Laplace smoothing.
    shrinkage : float or None
        Default number of pseudo-rows that shrink an edge towards independence; None for families
        without edges.
    needs_smoothing : bool
        Whether ``alpha=0`` is rejected.
    most_variables : int or None
        The maximum number of variables.
    statistics : bool
        Whether its blocks come with statistics: it then replaces the family of the same name if
        users give such blocks.
    before : callable, optional
        Returns, for a problem, the name and the problem of the family that is fitted first and from
        which this one starts; None if it starts by itself.
    direct : type, optional
        Fits classes of complete, labelled rows from sums alone: `fit` and `add` in memory, `sums`
        and `fit_chunks` for rows in chunks.
    stream : type, optional
        Fits mixtures to batches that come one after the other: `keep` and `add`.
    cannot : mapping from ability to reason
        What it does not support, among `families.abilities.ABILITIES`, with the reason.
    search : SearchSpace or None
        For `ExchangeableDensity`; None if the family is only searched when requested.
    candidates : tuple of mappings
        Candidate parameters of a classifier, among which ``training="chosen"`` takes those that
        predict held-out rows best; ``components`` is the number of components per class.
    refits : str, optional
        For a family that is trained: the EM family whose parameters have the same type.
    goes_on : type, optional
        For a family that is trained: the `Family` by which EM continues from the result of
        training, if a fit continues with other rows, labels are missing, or rows come in batches.
    compact : callable, optional
        Returns, for a mixture, a number of parameters, a rank and a generator, a similar mixture
        with at most as many parameters. Similar components are merged, and the remaining parameters
        are factorised at the rank, unless that is None. It returns None if that is not possible.
    compact_model : type, optional
        The model of such factors.
    needs : str, optional
        An optional module that the family needs.
    normalise : callable, optional
        Returns, for log-linear scores of classes, the mixture with log P(x, y) = score − log of
        their total, and that logarithm; None if the family cannot represent such scores.
    features : callable, optional
        Returns, for `Examples` of columns of any kind and a `Problem`, their `Features`: hybrid
        training fits scores that are linear in these.
    kinds : tuple of str
        Kinds of columns that it supports.
    other_kinds : str, optional
        The family that replaces it if columns are of other kinds.
    row_priors : bool
        Whether passes accept a line of log-probabilities of the classes for every row, as
        covariates of the classes need.
    memory : callable
        Returns the least memory of a fit in bytes, from the numbers of distinct rows in memory, of
        variables and of components; 0 rows if only sums over them are kept. A fit for which there
        is too little memory is not started, and runs for which there is too little wait.
    components : int
        Default number of components.
    class_components : int, optional
        Number of components of each class, for a family whose components share parameters, so that
        a class must be a mixture by itself; None if a class is one component.
    most_per_row : float
        The maximum number of components per row.
    held_out : float or None
        Share of the rows to hold out if the user holds out none.
    conditional : callable, optional
        Returns the function that computes sums for the likelihood of answers given their total, for
        items of the supported kinds: see `families.items`.
    settings : object, optional
        The object that users may write instead of the name, with the family's own settings, here at
        their defaults. Its `family` is the family's name.
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
    candidates: tuple[Mapping[str, Any], ...] = ({}, {"training": "hybrid"})
    refits: str | None = None
    goes_on: type[Family] | None = None
    compact: "Callable[[Mixture, int, int | None, Generator], Mixture | None] | None" = None
    compact_model: type[Model] | None = None
    needs: str | None = None
    normalise: "Callable[[LogLinear, int | None], tuple[Mixture, float] | None] | None" = None
    features: "Callable[[Examples, Problem], Features] | None" = None
    kinds: tuple[str, ...] = ("binary",)
    other_kinds: str | None = None
    row_priors: bool = False
    memory: Callable[[int, int, int], float] = least_memory
    components: int = 20
    class_components: int | None = None
    most_per_row: float = 1.0
    held_out: float | None = None
    conditional: Conditional | None = None
    settings: Any = None

    def __post_init__(self) -> None:
        unknown = sorted(set(self.cannot) - set(ABILITIES))
        if unknown:
            raise ValueError(
                f"family {self.name!r} cannot {unknown[0]!r}, which is not an ability; expected "
                f"some of {', '.join(ABILITIES)}"
            )

    def __getattribute__(self, name: str) -> Any:
        value = object.__getattribute__(self, name)
        if type(value) is Later:
            value = value.found()
            object.__setattr__(self, name, value)
        return value

    def earlier(self, problem: Any) -> "tuple[str, Problem] | None":
        """Return the family that is fitted first, and its problem, if there is one."""
        found: tuple[str, Problem] | None = None if self.before is None else self.before(problem)
        return found

    def why_not(self, ability: str) -> str | None:
        """Return why the family cannot do something, None if it can."""
        needed = filter(None, map(self.why_not, ABILITIES[ability].needs))
        return next(needed, self.cannot.get(ability))

    def check(self, ability: str, asked: str) -> None:
        """Raise an error if the family cannot do something; `asked` names the request."""
        reason = self.why_not(ability)
        if reason is not None:
            raise ValueError(f"{asked} does not go with family={self.name!r}: {reason}")

    @property
    def draws_rows(self) -> bool:
        """Whether a fit draws rows at random all the time, and so needs them in memory."""
        return issubclass(self.family, Trainer)

    @property
    def by_em(self) -> "FamilySpec":
        """The family as EM goes on with it: of one that is trained, with what training has left."""
        if self.goes_on is None:
            return self
        return replace(self, family=self.goes_on, goes_on=None, memory=least_memory)

    @property
    def installed(self) -> bool:
        """Whether the module that it needs, if any, is installed."""
        return self.needs is None or find_spec(self.needs) is not None

    def check_size(self, n_variables: int) -> None:
        """Raise an error if there are too many variables for the family."""
        if self.most_variables is not None and n_variables > self.most_variables:
            raise ValueError(
                f"family={self.name!r} compares all pairs of variables; the limit is "
                f"{self.most_variables:,}, X has {n_variables:,}: choose fewer variables or "
                "another family"
            )

    def check_memory(self, n_rows: int, n_variables: int, n_components: int) -> None:
        """Raise an error if a fit needs more memory than there is; 0 rows if they are not kept."""
        rows = f"{n_rows:,} distinct rows of {n_variables:,}" if n_rows else f"{n_variables:,}"
        check_memory(
            self.memory(n_rows, n_variables, n_components),
            f"a fit of family={self.name!r} with {n_components:,} components to {rows} variables",
            "choose fewer components or variables, another family, or rows in chunks",
        )

    def runs_at_once(self, n_rows: int, n_variables: int, n_components: int) -> int:
        """Return how many runs of a fit there is memory for at a time, at least one."""
        return max(1, times_available(self.memory(n_rows, n_variables, n_components)))
