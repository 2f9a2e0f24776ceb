"""What passes over rows sum, and the rows as EM sees them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.examples import Examples
from exchangeable.devices.passes.together import Together

if TYPE_CHECKING:
    from exchangeable.families.mixture import Mixture

ROUNDING, SINGLE_ROUNDING = 1e-11, 1e-6
"""Falls by less than this share of the log-likelihood are rounding: in double precision, and where
passes are made in single precision."""
NO_MOMENTS = np.empty((0, 0, 0))
NO_POSTERIOR = np.empty((0, 0))


@dataclass(frozen=True)
class Sums:
    """What a pass over rows has summed; families add what their own parameters need.

    Attributes
    ----------
    log_likelihood : float
        Of all rows, each by its weight.
    posterior : array of shape (n_rows, n_classes), or empty
        P(y | x) of every row, where it is kept.
    totals : array of shape (n_classes,)
        Posterior weight of each class.
    moments : array of shape (2, n_variables, n_classes), or empty
        Sums of the posteriors, and of their squares, over the rows with a variable on; what
        learning blocks needs.
    recipe : PosteriorRecipe, optional
        How to find the posteriors again, where they are not kept.
    """

    log_likelihood: float
    posterior: FloatArray
    totals: FloatArray
    moments: FloatArray = field(default_factory=lambda: NO_MOMENTS, kw_only=True)
    recipe: Any = field(default=None, kw_only=True)

    @property
    def shares(self) -> Any:
        """The posteriors, or how to find them again."""
        return self.posterior if self.posterior.size else self.recipe


class Batch(NamedTuple):
    """Some of the rows, for one step of EM.

    Attributes
    ----------
    rows : array
        Their numbers among the distinct rows.
    weights : array
        How much each counts, such that all together weigh about as much as all rows there are.
    rate : float
        How far sums move towards those of the batch.
    """

    rows: IntArray
    weights: FloatArray
    rate: float


class EMData(Protocol):
    """Rows as EM sees them, in memory, in chunks or on a cluster."""

    @property
    def n_jobs(self) -> int | None:
        """Number of threads."""

    @property
    def total(self) -> float:
        """The weight of all rows together."""

    @property
    def rounding(self) -> float:
        """The share of the log-likelihood by which passes may be wrong."""

    @property
    def n_variables(self) -> int:
        """Number of variables."""

    @property
    def kept(self) -> dict[Any, Any]:
        """What was computed of the rows alone, to be kept as long as they are."""

    def summed(self, function: Callable[..., Any], shares: Any = None) -> Any:
        """Return the sum over the rows of a function of `Examples`, and of posteriors if given.

        `shares` are those of some `Sums`. What the function returns must add up over rows.
        """

    def expect(self, mixture: "Mixture", moments: bool = False) -> Sums:
        """Return what a pass under some parameters sums."""

    def log_likelihood_held_out(self, rows: Examples, mixture: "Mixture") -> float:
        """Return the log-likelihood of other rows, which are held out, each by its weight."""

    def best(
        self, candidates: Sequence["Mixture"], moments: bool = False
    ) -> tuple[Sums, "Mixture"]:
        """Return the candidate with the highest log-likelihood, and what a pass under it sums."""


class RowsInMemory(EMData, Protocol):
    """Rows in memory, with what models keep about them from pass to pass."""

    @property
    def examples(self) -> Examples:
        """The distinct rows."""

    @property
    def device(self) -> Any:
        """Where passes are made, as far as models can; None for the processor."""

    @property
    def memo(self) -> dict[str, Any]:
        """What models keep from pass to pass."""

    @property
    def together(self) -> Together | None:
        """Where runs meet that make their passes on a device together."""
