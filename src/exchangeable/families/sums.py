"""Sums of passes over rows, and the rows as EM sees them."""

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
"""Decreases of the log-likelihood by less than this share are rounding: in double precision, and
for passes in single precision."""
NO_MOMENTS = np.empty((0, 0, 0))
NO_POSTERIOR = np.empty((0, 0))


@dataclass(frozen=True)
class Sums:
    """The sums of a pass over rows; families add what their own parameters need.

    Attributes
    ----------
    log_likelihood : float
        Weighted log-likelihood of all rows.
    posterior : array of shape (n_rows, n_classes), or empty
        P(y | x) of every row, if it is kept.
    totals : array of shape (n_classes,)
        Posterior weight of each class.
    moments : array of shape (2, n_variables, n_classes), or empty
        Sums of the posteriors, and of their squares, over the rows with a variable on; needed for
        learning blocks.
    recipe : PosteriorRecipe, optional
        How to compute the posteriors again, if they are not kept.
    """

    log_likelihood: float
    posterior: FloatArray
    totals: FloatArray
    moments: FloatArray = field(default_factory=lambda: NO_MOMENTS, kw_only=True)
    recipe: Any = field(default=None, kw_only=True)

    @property
    def shares(self) -> Any:
        """The posteriors, or how to compute them again."""
        return self.posterior if self.posterior.size else self.recipe


class Batch(NamedTuple):
    """Some of the rows, for one step of EM.

    Attributes
    ----------
    rows : array
        Their numbers among the distinct rows.
    weights : array
        Their weights, scaled such that their sum is about that of all rows.
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
        """The total weight of the rows."""

    @property
    def rounding(self) -> float:
        """The relative error of the log-likelihood of a pass."""

    @property
    def n_variables(self) -> int:
        """Number of variables."""

    @property
    def kept(self) -> dict[Any, Any]:
        """A cache for what depends on the rows alone, which lives as long as they do."""

    def summed(self, function: Callable[..., Any], shares: Any = None) -> Any:
        """Return the sum over the rows of a function of `Examples`, and of posteriors if given.

        `shares` are those of some `Sums`. The results of the function must add up over rows.
        """

    def expect(self, mixture: "Mixture", moments: bool = False) -> Sums:
        """Return the sums of a pass under some parameters."""

    def log_likelihood_held_out(self, rows: Examples, mixture: "Mixture") -> float:
        """Return the weighted log-likelihood of other rows, which are held out."""

    def best(
        self, candidates: Sequence["Mixture"], moments: bool = False
    ) -> tuple[Sums, "Mixture"]:
        """Return the candidate with the highest log-likelihood, and the sums of a pass under it."""


class RowsInMemory(EMData, Protocol):
    """Rows in memory, with what models cache about them between passes."""

    @property
    def examples(self) -> Examples:
        """The distinct rows."""

    @property
    def device(self) -> Any:
        """Where passes run, if models support it; None for the CPU."""

    @property
    def memo(self) -> dict[str, Any]:
        """The cache of models between passes."""

    @property
    def together(self) -> Together | None:
        """Where runs meet that make their passes on a device together."""
