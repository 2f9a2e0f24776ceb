"""From sums over rows to parameters: `Family`, or `Trainer` as the alternative to EM."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.families.model import Model
from exchangeable.families.sums import Batch, EMData, RowsInMemory, Sums

if TYPE_CHECKING:
    from exchangeable.data.examples import Examples
    from exchangeable.families.mixture import Mixture
    from exchangeable.families.problem import Problem
    from exchangeable.structure.proposals import Proposal, Proposer

SMALLEST_SHARE = 1e-12
"""Lower bound of a component's probability."""


@dataclass(frozen=True)
class QuickFit:
    """The result of `Family.quick_fit`.

    Attributes
    ----------
    mixture : Mixture
        The parameters.
    log_likelihood : float
        Log-likelihood of all rows.
    converged : bool
        Whether it converged.
    """

    mixture: "Mixture"
    log_likelihood: float
    converged: bool


class Family(ABC):
    """Turns sums over rows into parameters, for one run of EM.

    Parameters
    ----------
    problem : Problem
        The rows, the blocks and the strengths of the priors.
    """

    closed_form: ClassVar[bool] = False
    """Whether `first` is the best fit to complete, labelled rows."""
    learns_by_class: ClassVar[bool] = False
    """Whether blocks are learned from labelled rows class by class, or for all classes at once by
    Algorithm 1."""
    remembers: ClassVar[bool] = True
    """Whether `first` stores something that later steps need."""

    def __init__(self, problem: "Problem") -> None:
        self.problem = problem

    @abstractmethod
    def start(self, data: EMData, init: str, rng: np.random.Generator) -> Sums:
        """Return initial posteriors, and their sums.

        ``init="rows"``: each component starts close to a row of the data; ``init="random"``: at
        random.
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
        """Return parameters for given posteriors.

        Parameters
        ----------
        data : EMData
            The rows.
        sums : Sums
            The result of `start`, or sums under the fit of the previous family in the chain.
        blocks : Proposal
            The initial blocks.
        before : Mixture, optional
            The fit of the previous family in the chain.
        rng : Generator, optional
            For families whose runs should differ in more than their posteriors.
        """

    def resume(self, data: EMData, mixture: "Mixture") -> "Mixture":
        """Prepare to continue from an earlier fit instead of `first`, possibly with other rows.

        Returns that fit, enlarged if these rows need it.
        """
        return mixture

    @abstractmethod
    def following(self, data: EMData, model: Any, sums: Any, step: int) -> list[Model]:
        """Return the parameters after one step; steps are numbered from 1.

        If there are several candidates, EM takes the one with the highest likelihood. Step 0
        requests parameters alone: no new blocks or trees.
        """

    def steps(
        self, data: RowsInMemory, mixture: "Mixture", sums: Any, batches: Sequence[Batch]
    ) -> "tuple[Mixture, Sums] | None":
        """Take a step of EM for each of several batches of rows, one after the other.

        Returns the last parameters, and sums that have moved towards those of each batch in turn;
        None if the family does not support such steps.

        Parameters
        ----------
        data : RowsInMemory
            All rows.
        mixture : Mixture
            The initial parameters.
        sums : Sums
            The sums from which they were computed.
        batches : sequence of Batch
            The rows of each step.
        """
        return None

    def with_blocks(self, data: EMData, model: Any, sums: Any, blocks: "Proposal") -> Model | None:
        """Return parameters for new blocks, None if these are the old ones."""
        raise NotImplementedError(f"{type(self).__name__} does not learn blocks while it is fitted")

    def candidates(
        self, data: EMData, model: Any, sums: Any, step: int, proposals: Sequence["Proposal"]
    ) -> list[Model]:
        """Return the candidate models: the old blocks with new parameters, and the new blocks."""
        changed = [self.with_blocks(data, model, sums, blocks) for blocks in proposals]
        return [*self.following(data, model, sums, step), *filter(None, changed)]

    def prior_gain(self, before: Any, after: Any) -> float:
        """Return the increase of the prior's log-density from one model to another.

        Together with the increase in log-likelihood, it is the increase of EM's objective.
        """
        return 0.0

    def learners(self, data: Any) -> "list[Proposer] | None":
        """Return the learners that propose blocks during EM; None for those of the problem."""
        return None

    def log_shares(self, totals: FloatArray) -> FloatArray:
        """Return the log-probability of each class, unless the problem fixes it."""
        if self.problem.log_prior is not None:
            return self.problem.log_prior
        return self.log_shares_of(totals)

    @staticmethod
    def log_shares_of(totals: FloatArray) -> FloatArray:
        """Return the log-shares of some weights, none of them zero."""
        shares = np.maximum(totals / totals.sum(), SMALLEST_SHARE)
        return np.asarray(np.log(shares / shares.sum()))

    def start_of(self, init: str, number: int) -> str:
        """Return how a run starts, by its number: ``init="both"`` alternates."""
        return ("rows", "random")[number % 2] if init == "both" else init

    def widened(self, mixture: "Mixture", sums: Any, rows: "Examples") -> "tuple[Mixture, Any]":
        """Return a mixture, and sums under it, enlarged for rows that are to be added.

        Most families need no enlargement.
        """
        return mixture, sums

    def carried(self, before: Any, sums: Any, after: Any) -> Any:
        """Return sums under one model as a pass under another model with the same blocks has them.

        Expectations of missing values stay as they were. Most sums do not depend on the model.
        """
        return sums

    def own_blocks(self, data: Any, sums: Sums) -> "Proposal | None":
        """Return the initial blocks, if the family learns them in its own way."""
        return None

    def block_data(self, data: Any) -> Any:
        """Return the rows from which the first blocks are learned."""
        return data

    def prepared(self, data: Any, sums: Sums) -> Model | None:
        """Return parameters for drawing missing entries, before there are any others."""
        return None

    def quick_fit(
        self,
        data: RowsInMemory,
        start: FloatArray | None,
        restarts: int,
        rng: np.random.Generator,
        tol: float,
        max_iter: int,
    ) -> QuickFit | None:
        """Fit few distinct rows without the steps of `run_em`; None if the family cannot.

        For the many small fits of a bootstrap.

        Parameters
        ----------
        data : RowsInMemory
            The rows.
        start : array of shape (n_rows, n_classes), optional
            Initial posteriors.
        restarts : int
            Number of additional random starts.
        rng : Generator
            Generates the random starts.
        tol : float
            Stop when the log-likelihood of all rows improves by less than this.
        max_iter : int
            Maximum number of steps.
        """
        return None

    def distance(self, before: Any, after: Any) -> float:
        """Return how much a step has changed the parameters; 0 if one step is the whole M-step."""
        return 0.0


class Begun(NamedTuple):
    """Training that was started earlier and is to be continued.

    Attributes
    ----------
    n_iter : int
        Iterations done so far.
    parts : mapping from name to array
        The result of `Trainer.state` after the last of them, possibly read from a file.
    """

    n_iter: int
    parts: Mapping[str, Any]


class Trainer(ABC):
    """A family's own training, used instead of EM.

    Parameters
    ----------
    problem : Problem
        The rows, the held-out rows, and the family's settings.
    """

    def __init__(self, problem: "Problem") -> None:
        self.problem = problem

    @abstractmethod
    def train(
        self,
        data: RowsInMemory,
        rng: np.random.Generator,
        tol: float,
        max_iter: int,
        begun: Begun | None = None,
    ) -> Iterator[tuple[float, float]]:
        """Train, one iteration at a time, until held-out rows improve by less than `tol`.

        After each iteration, it yields the approximate average log-likelihoods of the rows and of
        the held-out rows. The caller may stop iterating at any time. Training that was `begun`,
        with a generator of the same seed, continues where it stopped; a state that does not belong
        to this training raises a `ValueError`.
        """

    @abstractmethod
    def state(self) -> Mapping[str, Any]:
        """Return the state needed to continue after the latest iteration: arrays by name.

        The arrays are not modified later.
        """

    @abstractmethod
    def mixture(self, data: RowsInMemory) -> "Mixture":
        """Return the best result of training so far; at least one iteration was made."""

    @abstractmethod
    def scores(self, mixture: "Mixture", n_jobs: int | None) -> tuple[FloatArray, FloatArray]:
        """Return log P of each training row, and of each held-out row, under the `mixture` found.

        Single precision is allowed if it is faster. Without held-out rows there are no scores.
        """

    @property
    @abstractmethod
    def converged(self) -> bool:
        """Whether training has converged."""
