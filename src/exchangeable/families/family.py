"""How sums over rows become parameters: `Family`, or a `Trainer` in place of EM."""

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
"""A component's probability does not fall below this."""


@dataclass(frozen=True)
class QuickFit:
    """What `Family.quick_fit` has found.

    Attributes
    ----------
    mixture : Mixture
        The parameters.
    log_likelihood : float
        Of all rows.
    converged : bool
        Whether nothing more was to be gained.
    """

    mixture: "Mixture"
    log_likelihood: float
    converged: bool


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

    def resume(self, data: EMData, mixture: "Mixture") -> "Mixture":
        """Get ready to go on from an earlier fit instead of `first`, perhaps to other rows.

        Returned is that fit, with room for what these rows hold.
        """
        return mixture

    @abstractmethod
    def following(self, data: EMData, model: Any, sums: Any, step: int) -> list[Model]:
        """Return the parameters after one step, the steps being numbered from 1.

        Where there are several, EM takes those under which the rows are likeliest. Step 0 asks for
        parameters alone: no new blocks or trees.
        """

    def steps(
        self, data: RowsInMemory, mixture: "Mixture", sums: Any, batches: Sequence[Batch]
    ) -> "tuple[Mixture, Sums] | None":
        """Take a step of EM for each of some batches of rows, one after the other.

        Returned are the last parameters, and sums that have moved towards those of each batch in
        turn; None where the family takes no such steps.

        Parameters
        ----------
        data : RowsInMemory
            All rows.
        mixture : Mixture
            The parameters to begin with.
        sums : Sums
            The sums that these have led to.
        batches : sequence of Batch
            The rows of each step.
        """
        return None

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

    def widened(self, mixture: "Mixture", sums: Any, rows: "Examples") -> "tuple[Mixture, Any]":
        """Return a mixture, and sums under it, with room for rows that are to be added.

        Most families have room for all rows.
        """
        return mixture, sums

    def carried(self, before: Any, sums: Any, after: Any) -> Any:
        """Return sums under one model as a pass under another of the same blocks would have them.

        What is expected of missing values stays as it was. Most sums do not depend on the model.
        """
        return sums

    def own_blocks(self, data: Any, sums: Sums) -> "Proposal | None":
        """Return the blocks to begin with, if the family learns them in its own way."""
        return None

    def block_data(self, data: Any) -> Any:
        """Return the rows from which the first blocks are learned."""
        return data

    def prepared(self, data: Any, sums: Sums) -> Model | None:
        """Return parameters with which holes can be drawn, before there are any others."""
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
        """Fit to few distinct rows without the steps of `run_em`; None where there is no such way.

        For the many small fits of a bootstrap.

        Parameters
        ----------
        data : RowsInMemory
            The rows.
        start : array of shape (n_rows, n_classes), optional
            Posteriors to begin with.
        restarts : int
            Random starts beside them.
        rng : Generator
            For the random starts.
        tol : float
            A step that gains less than this in the log-likelihood of all rows is the last.
        max_iter : int
            Largest number of steps.
        """
        return None

    def distance(self, before: Any, after: Any) -> float:
        """Return how far a step has moved the parameters; 0 where one step is the whole M-step."""
        return 0.0


class Begun(NamedTuple):
    """Training that was begun before, and is to go on.

    Attributes
    ----------
    n_iter : int
        Iterations that were made.
    parts : mapping from name to array
        What `Trainer.state` has returned after the last of them, perhaps read from a file.
    """

    n_iter: int
    parts: Mapping[str, Any]


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
        self,
        data: RowsInMemory,
        rng: np.random.Generator,
        tol: float,
        max_iter: int,
        begun: Begun | None = None,
    ) -> Iterator[tuple[float, float]]:
        """Train, one iteration at a time, until held-out rows gain less than `tol`.

        After each it yields about what the rows and the held-out rows are worth: their average
        log-likelihoods. Whoever has enough stops asking. Training that was `begun`, with a
        generator of the same seed, goes on where it was; parts that are not those of this training
        are refused with a `ValueError`.
        """

    @abstractmethod
    def state(self) -> Mapping[str, Any]:
        """Return what training needs to go on after the latest iteration: arrays by name.

        They are not changed later.
        """

    @abstractmethod
    def mixture(self, data: RowsInMemory) -> "Mixture":
        """Return the best that training has found so far; at least one iteration was made."""

    @abstractmethod
    def scores(self, mixture: "Mixture", n_jobs: int | None) -> tuple[FloatArray, FloatArray]:
        """Return log P of each row to fit, and of each held out, under the `mixture` found.

        Single precision is enough where it is quicker. Without held-out rows there are no scores.
        """

    @property
    @abstractmethod
    def converged(self) -> bool:
        """Whether training has ended because nothing more was to be gained."""
