"""Rows in memory, as EM sees them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.examples import Examples
from exchangeable.data.observed import Observed, flags
from exchangeable.data.rows import take_rows
from exchangeable.devices.passes.together import Together
from exchangeable.families.mixture import Mixture
from exchangeable.families.sums import ROUNDING, SINGLE_ROUNDING, Sums

OTHERS = "other rows"


@dataclass
class InMemory:
    """Rows in memory.

    Attributes
    ----------
    examples : Examples
        The distinct rows.
    member, row_weight : arrays of shape (n_rows,)
        The number of the distinct row of each row, and the weight of each row; by default every
        distinct row is one row.
    n_jobs : int, optional
        Number of threads.
    device : jax device, optional
        Where passes run, if models support it; by default on the CPU.
    together : Together, optional
        Where runs meet that make their passes on a device together.
    memo : dict
        The cache of models between passes. Each run of EM has its own rows, with its own cache.
    """

    examples: Examples
    member: IntArray | None = None
    row_weight: FloatArray | None = None
    n_jobs: int | None = None
    device: Any = None
    together: Together | None = None
    memo: dict[str, Any] = field(default_factory=dict, repr=False)

    def for_run(self, n_jobs: int | None) -> "InMemory":
        """Return the rows for one run of EM, with an empty cache."""
        return replace(self, n_jobs=n_jobs, memo={})

    @property
    def total(self) -> float:
        """The total weight of the rows."""
        return self.examples.total

    @property
    def rounding(self) -> float:
        """The relative error of the log-likelihood of a pass."""
        return ROUNDING if self.device is None else SINGLE_ROUNDING

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return self.examples.rows.n_variables

    @property
    def has_holes(self) -> bool:
        """Whether any entry is missing."""
        return self.examples.holes is not None

    @property
    def kept(self) -> dict[Any, Any]:
        """A cache for what depends on the rows alone, which lives as long as they do."""
        return self.examples.derived

    @property
    def fingerprint(self) -> int:
        """A checksum of rows and weights."""
        return self.examples.fingerprint

    @property
    def weights(self) -> FloatArray:
        """The weight of each distinct row."""
        return self.examples.weights

    def distinct_at(self, chosen: IntArray) -> npt.NDArray[np.bool_]:
        """Return some of the distinct rows as a matrix."""
        return flags(take_rows(self.examples.rows, chosen))

    def at(
        self, chosen: IntArray, shares: FloatArray | None = None
    ) -> tuple[Observed, FloatArray | None]:
        """Return some of the distinct rows, and their posteriors if all are given."""
        posterior = None if shares is None else shares[chosen]
        return self.examples.observed.take(chosen), posterior

    def summed(self, function: Callable[..., Any], shares: Any = None) -> Any:
        """Return the value of a function of the rows, and of posteriors if given."""
        return function(self.examples) if shares is None else function(self.examples, shares)

    def expect(self, mixture: Mixture, moments: bool = False) -> Sums:
        """Return the sums of a pass under some parameters."""
        model, log_prior = mixture.model, mixture.log_prior
        if self.device is not None:
            sums = model.expect_on(self.device, self, log_prior, moments)
            if sums is not None:
                return sums
        return model.expect(self, log_prior, moments)

    def log_likelihood_held_out(self, rows: Examples, mixture: Mixture) -> float:
        """Return the log-likelihood of other rows, computed where passes run."""
        if self.device is not None:
            if OTHERS not in self.memo:
                self.memo[OTHERS] = InMemory(rows, n_jobs=self.n_jobs, device=self.device)
            others: InMemory = self.memo[OTHERS]
            sums = mixture.model.expect_on(self.device, others, mixture.log_prior)
            if sums is not None:
                return sums.log_likelihood
        return mixture.log_likelihood(rows, self.n_jobs)

    def best(self, candidates: Sequence[Mixture], moments: bool = False) -> tuple[Sums, Mixture]:
        """Return the candidate with the highest log-likelihood, and the sums of a pass under it."""
        if self.device is not None:
            made = [
                (each.model.expect_on(self.device, self, each.log_prior, moments), each)
                for each in candidates
            ]
            passes = [(sums, each) for sums, each in made if sums is not None]
            if len(passes) == len(made):
                return max(passes, key=lambda one: one[0].log_likelihood)
        return type(candidates[0].model).best(self, candidates, moments)
