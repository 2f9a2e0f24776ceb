"""Common code of families with a pooled prior: the start of EM, and pseudo-rows in sums."""

from abc import ABC
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.examples import Examples
from exchangeable.data.stream.chunk import Chunk
from exchangeable.families.common.class_rows import ClassRows, class_rows
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.common.log_linear import scores as log_linear
from exchangeable.families.common.log_linear.scores import NO_NUMBERS, LinearSums, LogLinear
from exchangeable.families.common.pool import Pool, chances
from exchangeable.families.common.streaming.recipes import PosteriorRecipe
from exchangeable.families.common.streaming.streamed import Streamed
from exchangeable.families.contract import Family, Model

OWN_SHARE = 0.25
"""How close a component's initial means are to its row."""
NAIVE_STEPS = 5
"""Iterations of naive Bayes for starts from rows."""
ACTIVE = 1e-6
"""Rows with a smaller posterior are ignored when pairs are summed to choose a tree."""


class PooledFamily(Family, ABC):
    """A family whose components get pseudo-rows distributed as the training set."""

    naive_steps = NAIVE_STEPS

    @property
    def n_start_components(self) -> int:
        """Number of components of the naive Bayes mixture that EM starts from."""
        return self.problem.n_components

    @property
    def start_pool(self) -> Pool:
        """The prior of the naive Bayes mixture that EM starts from."""
        return self.problem.pool

    def start(self, data: Any, init: str, rng: np.random.Generator) -> LinearSums:
        """Return the sums of the initial posteriors.

        ``"rows"``: components start close to rows drawn by their weights, followed by a few
        iterations of naive Bayes. ``"random"``: posteriors are drawn at random.
        """
        rows, k = self.problem.source, self.n_start_components
        if init == "random":
            return self.held(data, rng.dirichlet(np.ones(k), size=rows.weights.size))
        share = rows.weights / rows.weights.sum()
        few = k <= np.count_nonzero(share)
        chosen = rng.choice(share.size, size=k, replace=not few, p=share)
        return naive_start(rows, self.start_pool, chosen, data.n_jobs, self.naive_steps)

    def held(self, data: Any, posterior: FloatArray) -> LinearSums:
        """Return sums of given posteriors, with missing entries drawn by frequency."""
        return given_sums(self.problem.source, posterior, data.n_jobs)

    def block_data(self, data: Any) -> InMemory | Streamed:
        """Return the rows for learning the first blocks, completed."""
        return self.problem.source


@dataclass(frozen=True)
class Naive(PosteriorRecipe):
    """Posteriors under naive Bayes."""

    scores: LogLinear
    log_prior: FloatArray

    def posterior(self, chunk: Chunk, n_jobs: int | None) -> FloatArray:
        """Return the posteriors of the rows with positive weight."""
        return self.expect(chunk.examples, n_jobs).posterior

    def expect(self, examples: Examples, n_jobs: int | None = None) -> LinearSums:
        """Return the posteriors of some rows, and sums of them."""
        return log_linear.expect(examples, self.scores, self.log_prior, n_jobs)


def naive_start(
    rows: InMemory | Streamed, pool: Pool, chosen: IntArray, n_jobs: int | None, steps: int
) -> LinearSums:
    """Return the sums after a few iterations of naive Bayes from components close to rows.

    `chosen` are numbers of distinct rows.
    """
    own = rows.distinct_at(chosen).T
    means = (1 - OWN_SHARE) * pool.means[:, None] + OWN_SHARE * own
    log_prior = np.full(chosen.size, -np.log(chosen.size))
    for _ in range(steps):
        naive = Naive(LogLinear(*independent(means)), log_prior)
        sums: LinearSums = rows.summed(partial(naive.expect, n_jobs=n_jobs))
        ones, totals = with_pool(pool, sums)
        means, log_prior = chances(ones, totals), Family.log_shares_of(sums.totals)
    if isinstance(rows, InMemory):
        return sums
    return replace(sums, recipe=rows.to_find(naive))


def independent(means: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (base, slope) of independent variables with given probabilities of being on."""
    return np.log1p(-means).sum(axis=0), np.log(means) - np.log1p(-means)


def given_sums(rows: InMemory | Streamed, posterior: Any, n_jobs: int | None = None) -> LinearSums:
    """Return the sums of given posteriors, or of those computed by a recipe."""
    sums: LinearSums = rows.summed(partial(sum_given, n_jobs=n_jobs), posterior)
    return sums


def sum_given(examples: Examples, posterior: FloatArray, n_jobs: int | None = None) -> LinearSums:
    """Return the sums of given posteriors of some rows."""
    n, k = examples.rows.n_variables, posterior.shape[1]
    nothing = LogLinear(np.zeros(k), np.zeros((n, k)))
    return log_linear.expect(examples, nothing, np.zeros(k), n_jobs, posterior=posterior)


def with_pool(pool: Pool, sums: LinearSums) -> tuple[FloatArray, FloatArray]:
    """Return the ones of each variable and class, and the classes' weights, under the prior."""
    ones = sums.ones + pool.strength * pool.means[:, None]
    return ones, sums.totals + pool.strength


def pooled_score(
    pool: Pool,
    scores: LogLinear,
    shares: Sequence[FloatArray] = (),
    pairs: FloatArray = NO_NUMBERS,
) -> float:
    """Return the sum over classes of the expected score of a row of the pool.

    `shares` are the pool's shares of each count, for every class, and `pairs` its shares of two
    variables on, if the scores depend on them.
    """
    total = float(scores.base.sum() + (pool.means @ scores.slope).sum())
    if scores.parent.size:
        total += float((parent_pairs(pairs, scores.parent) * scores.pair).sum())
    tables = scores.tables
    by_class = list(scores.by_count.T) if scores.by_count.size else tables.split(tables.values)
    for share, values in zip(shares, by_class, strict=True):
        seen = share > 0
        total += float(share[seen] @ values[seen])
    return total


def parent_pairs(pairs: FloatArray, parent: npt.NDArray[np.int32]) -> FloatArray:
    """Return the entry of each variable and its parent, for every class; 0 for roots."""
    n = parent.shape[0]
    found = pairs[np.arange(n)[:, None], np.minimum(parent, n - 1)]
    found[parent == n] = 0.0
    return np.asarray(found)


def class_pairs(
    examples: Examples, posterior: FloatArray, y: int, model: Model | None = None
) -> FloatArray:
    """Return the weight of the rows of class y with both of two variables on, for all pairs.

    The diagonal is that of the rows with a variable on. Missing entries are drawn once from the
    model.
    """
    return _pairs(class_rows(examples, posterior, y, model, ACTIVE))


def _pairs(found: ClassRows) -> FloatArray:
    return log_linear.pair_sums(found.rows, found.group.members, found.group.weights)


def pairs_by_class(
    data: InMemory | Streamed, sums: LinearSums, model: Model | None = None
) -> Callable[[int], FloatArray]:
    """Return a function that computes the pairs of a class, as `class_pairs` does.

    In memory one class is summed on request; over chunks one pass sums all.
    """
    if isinstance(data, InMemory):
        return partial(class_pairs, data.examples, sums.posterior, model=model)
    every: list[FloatArray] = data.by_class(_each_pairs, sums.shares, model, ACTIVE)
    return every.__getitem__


def _each_pairs(by_class: Sequence[ClassRows]) -> list[FloatArray]:
    return [_pairs(found) for found in by_class]
