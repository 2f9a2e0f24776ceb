"""Families of components: how each turns sums over posteriors into parameters.

All share one prior, pseudo-rows distributed as the training set (`Pool`), and offer `first`, the
parameters that fit posteriors found by naive Bayes, and `following`, one step of EM. `maximised`
says whether that step is the whole M-step, or one of several that lead to it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeAlias

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.data.examples import Examples
from exchangeable.families.common import count_smoothing
from exchangeable.families.common.expectation import expect
from exchangeable.families.common.log_linear import Sums
from exchangeable.families.common.pool import WIDTHS, Pool
from exchangeable.families.count_trees.model import CountTreeModel
from exchangeable.families.hidden_trees.model import HiddenModel
from exchangeable.families.trees.model import TreeModel
from exchangeable.families.urns.model import UrnModel
from exchangeable.families.urns.polynomials import expected_ones
from exchangeable.partitions import Partition

LOG_LEAST = -700.0
"""Weights that are less than this count as this where the mean is taken."""
DensityModel: TypeAlias = UrnModel | TreeModel | CountTreeModel | HiddenModel


class Stepping(Protocol):
    """What EM needs of a family once it has begun."""

    def following(
        self,
        examples: Examples,
        model: DensityModel,
        sums: Sums,
        step: int,
        n_jobs: int | None = None,
    ) -> DensityModel:
        """Return the parameters after one step, given the sums under `model`.

        Steps are numbered from 1.
        """


class Family(Stepping, Protocol):
    """A family that can begin with posteriors found by naive Bayes."""

    def first(self, examples: Examples, sums: Sums, n_jobs: int | None = None) -> DensityModel:
        """Return parameters that fit them."""


def pooled_means(pool: Pool, sums: Sums) -> tuple[FloatArray, FloatArray]:
    """Return the ones of each variable and class, and the classes' weights, the prior included."""
    ones = sums.ones + pool.strength * pool.means[:, None]
    return ones, sums.totals + pool.strength


@dataclass(frozen=True)
class IndependentFamily:
    """Naive Bayes: variables that are independent given the component."""

    pool: Pool

    def from_means(self, means: FloatArray) -> TreeModel:
        """Return the model with the given probabilities, one column a class."""
        slope = np.log(means) - np.log1p(-means)
        return TreeModel.make(np.log1p(-means).sum(axis=0), slope)

    def first(self, examples: Examples, sums: Sums, n_jobs: int | None = None) -> TreeModel:
        """Return parameters that fit the posteriors."""
        ones, totals = pooled_means(self.pool, sums)
        return self.from_means(ones / totals)

    def following(
        self,
        examples: Examples,
        model: DensityModel,
        sums: Sums,
        step: int,
        n_jobs: int | None = None,
    ) -> TreeModel:
        """Return the parameters that fit the posteriors; it is the whole M-step."""
        return self.first(examples, sums, n_jobs)


@dataclass(frozen=True)
class UrnFamily:
    """Urns, weighted or uniform, one a block of each component.

    Attributes
    ----------
    pool : Pool
        The prior.
    partitions : sequence of Partition
        The blocks of each component.
    shares : sequence of arrays
        The share of the training set with each count in each of them.
    smooth_shares : sequence of arrays
        The same, smoothed.
    weighted : bool
        Whether weights are learned; if not they are all equal.
    reach : int, optional
        The largest number of ones of a row that will be scored while fitting.
    """

    pool: Pool
    partitions: Sequence[Partition]
    shares: Sequence[FloatArray]
    smooth_shares: Sequence[FloatArray]
    weighted: bool = True
    reach: int | None = None

    @classmethod
    def of(
        cls,
        pool: Pool,
        partitions: Sequence[Partition],
        weighted: bool = True,
        reach: int | None = None,
    ) -> "UrnFamily":
        """Return the family of given blocks."""
        shares = pool.histograms(partitions)
        smooth: dict[int, FloatArray] = {}
        for partition, share in zip(partitions, shares, strict=True):
            if id(share) not in smooth:
                smooth[id(share)] = pool.smooth(partition, share)
        if any(partition.n_blocks > 1 for partition in partitions):
            reach = None
        return cls(pool, partitions, shares, [smooth[id(s)] for s in shares], weighted, reach)

    def first(self, examples: Examples, sums: Sums, n_jobs: int | None = None) -> UrnModel:
        """Return urns with the odds of naive Bayes as weights."""
        ones, totals = pooled_means(self.pool, sums)
        means = ones / totals
        odds = np.log(means) - np.log1p(-means) if self.weighted else np.zeros(means.shape)
        flat = [np.log(share) for share in self._floored()]
        model = UrnModel.make(self.partitions, odds, flat, n_jobs, self.reach)
        # The sums of naive Bayes lack the counts in blocks, which a pass under any parameters
        # adds up; posteriors are what matters, so they are held.
        held = expect(model, examples, sums.totals, n_jobs, given=sums.posterior)
        return self.following(examples, model, held, 0, n_jobs)

    def following(
        self,
        examples: Examples,
        model: DensityModel,
        sums: Sums,
        step: int,
        n_jobs: int | None = None,
    ) -> UrnModel:
        """Return new q, and weights scaled once by observed over expected ones."""
        if not isinstance(model, UrnModel):
            raise TypeError(f"expected weighted urns, got {type(model).__name__}")
        counted: Sequence[FloatArray] | FloatArray = sums.blocks
        if sums.counts.size:
            counted = np.ascontiguousarray(sums.counts.T)
        log_weights = model.log_weights
        if self.weighted:
            ones, _ = pooled_means(self.pool, sums)
            mass = [h + prior for h, prior in zip(counted, self._priors, strict=True)]
            found = expected_ones(self.partitions, model.polynomials, mass, n_jobs)
            log_weights = centred(log_weights + np.log(ones / np.maximum(found, 1e-300)))
        log_q = self.log_q(counted)
        near = [known.order for known in model.polynomials]
        return UrnModel.make(self.partitions, log_weights, log_q, n_jobs, self.reach, near)

    def _floored(self) -> list[FloatArray]:
        return [np.maximum(share, 1e-300) for share in self.smooth_shares]

    @cached_property
    def _priors(self) -> list[FloatArray]:
        """The mass of each count in each block of each class that is known before."""
        return [self.pool.strength * share for share in self.shares]

    @cached_property
    def _smooth_priors(self) -> list[FloatArray]:
        """The same, smoothed."""
        return [self.pool.strength * share for share in self.smooth_shares]

    def log_counts(self, sums: Sums) -> FloatArray:
        """Return log q of the number of ones, one column a class."""
        return np.stack(self.log_q(sums.counts.T), axis=1)

    def log_q(self, histograms: Sequence[FloatArray] | FloatArray) -> list[FloatArray]:
        """Return log q of the counts in the blocks of every class, given the mass of each."""
        if all(partition.n_blocks == 1 for partition in self.partitions):
            return list(_log_q(np.asarray(histograms), np.asarray(self._smooth_priors)))
        found = []
        for seen, prior, partition in zip(
            histograms, self._smooth_priors, self.partitions, strict=True
        ):
            blocks = (np.split(line[None], partition.starts[1:], axis=1) for line in (seen, prior))
            parts = [_log_q(*block)[0] for block in zip(*blocks, strict=True)]
            found.append(np.concatenate(parts))
        return found


def _log_q(seen: FloatArray, prior: FloatArray) -> FloatArray:
    """Return log q of the counts of some blocks, one a line, given the mass of each and a prior."""
    mass = count_smoothing.smoothed(seen, prior, WIDTHS) if seen.shape[1] > 3 else seen + prior
    mass[prior == 0] = 0.0
    mass /= mass.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(mass, out=mass))


def centred(log_weights: FloatArray) -> FloatArray:
    """Return weights divided by their geometric mean: their scale does not matter."""
    middle = np.maximum(log_weights, LOG_LEAST).mean(axis=0)
    return np.asarray(log_weights - middle)
