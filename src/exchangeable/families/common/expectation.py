"""The E-step of any model: posteriors and sums, exact also where entries are not known."""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from exchangeable.arrays import FloatArray, normalize_log
from exchangeable.data.examples import Examples, listed
from exchangeable.data.observed import Observed
from exchangeable.data.rows import as_rows
from exchangeable.families.common import log_linear
from exchangeable.families.common.log_linear import LogLinear, Sums
from exchangeable.families.contract import ClassModel
from exchangeable.families.count_trees.forest import CountSums
from exchangeable.families.count_trees.model import CountTreeModel
from exchangeable.families.hidden_trees.messages import Symbols, TreeSums, expect_messages
from exchangeable.families.hidden_trees.model import HiddenModel
from exchangeable.runtime.threads import row_ranges, run

ACTIVE = 1e-6
"""Rows of less posterior than this do not count when pairs are summed to choose a tree."""
NOTHING = 1e-14
MOST_CELLS = 1 << 24
"""Scores of rows by classes that are held at once."""


@dataclass(frozen=True)
class HiddenSums(Sums):
    """What a pass over the examples found for a hidden tree; `posterior` is empty."""

    tree: TreeSums


class Summable(ClassModel, Protocol):
    """A model whose sums over rows with holes are exact as well."""

    @property
    def scores(self) -> LogLinear:
        """What scoring complete rows reads."""

    def hole_sums(
        self, observed: Observed, mass: FloatArray, y: int
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the mass of class y by variables on, by pairs on, and by counts."""


def expect(
    model: Summable | CountTreeModel | HiddenModel,
    examples: Examples,
    log_prior: FloatArray,
    n_jobs: int | None = None,
    given: FloatArray | None = None,
) -> Sums:
    """Find posteriors and sums; with posteriors that are `given` the log-likelihood is 0.

    Hidden trees cannot be given posteriors.
    """
    if isinstance(model, HiddenModel):
        return expect_hidden(model, examples, log_prior, n_jobs)
    if examples.holes is None and not isinstance(model, CountTreeModel):
        return log_linear.expect(examples, model.scores, log_prior, n_jobs, given)
    log_likelihood, posterior = 0.0, given
    if posterior is None:
        joint = model.score(examples.observed, n_jobs) + log_prior
        log_posterior, found = normalize_log(joint, log_prior)
        log_likelihood, posterior = float(examples.weights @ found), np.exp(log_posterior)
        posterior[posterior < NOTHING] = 0.0
    mass = examples.weights[:, None] * posterior
    if isinstance(model, CountTreeModel):
        return _count_sums(model, examples, mass, log_likelihood, posterior, n_jobs)

    def one(y: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        members = np.flatnonzero(mass[:, y] > 0)
        return model.hole_sums(examples.observed.take(members), mass[members, y], y)

    parts = run(one, range(mass.shape[1]), n_jobs)
    ones, pairs, counts = zip(*parts, strict=True)
    by_count = bool(model.scores.by_count.size)
    return Sums(
        log_likelihood,
        posterior,
        mass.sum(axis=0),
        np.stack(ones, axis=1),
        np.stack(pairs, axis=1) if model.scores.parent.size else log_linear.NO_NUMBERS,
        np.stack(counts, axis=1) if by_count else log_linear.NO_NUMBERS,
        [] if by_count or not model.scores.tables.starts.size else list(counts),
    )


def _count_sums(
    model: CountTreeModel,
    examples: Examples,
    mass: FloatArray,
    log_likelihood: float,
    posterior: FloatArray,
    n_jobs: int | None,
) -> CountSums:
    """Return the mass of each class by counts and by pairs of bins along its tree."""

    def one(y: int) -> tuple[FloatArray, FloatArray]:
        return model.trees[y].sums(examples.observed, np.ascontiguousarray(mass[:, y]))

    blocks, edges = zip(*run(one, range(model.n_classes), n_jobs), strict=True)
    nothing = (log_linear.NO_NUMBERS,) * 3
    totals = mass.sum(axis=0)
    return CountSums(log_likelihood, posterior, totals, *nothing, list(blocks), list(edges))


def expect_hidden(
    model: HiddenModel, examples: Examples, log_prior: FloatArray, n_jobs: int | None = None
) -> HiddenSums:
    """Find the posteriors of all hidden states of one tree, and sum them."""
    messages = model.trees[0].messages
    symbols = Symbols.of(examples.observed, messages.partition)
    found = expect_messages(messages, examples, symbols, log_prior, n_jobs)
    nothing = log_linear.NO_NUMBERS
    return HiddenSums(
        found.log_likelihood, nothing, found.totals, nothing, nothing, nothing, [], found
    )


def log_likelihood(
    model: ClassModel, examples: Examples, log_prior: FloatArray, n_jobs: int | None = None
) -> float:
    """Return the log-likelihood of all examples, each by its weight."""
    return float(examples.weights @ row_log_likelihoods(model, log_prior, examples, n_jobs))


def row_log_likelihoods(
    model: ClassModel, log_prior: FloatArray, examples: Examples, n_jobs: int | None = None
) -> FloatArray:
    """Return the log-probability of each row, some rows at a time where there are many classes."""
    found = np.empty(examples.rows.n_rows)
    for begin, end in row_ranges(found.size, max(1, MOST_CELLS // log_prior.size)):
        rows = examples.observed
        part = rows if end - begin == found.size else rows.take(np.arange(begin, end))
        found[begin:end] = normalize_log(model.score(part, n_jobs) + log_prior, log_prior)[1]
    return found


def class_pairs(
    examples: Examples, posterior: FloatArray, y: int, model: ClassModel | None = None
) -> FloatArray:
    """Return the weight of the rows of class y with both of two variables on, for all pairs.

    The diagonal is that of the rows with a variable on. Entries that are not known are drawn once
    from the model.
    """
    members = np.flatnonzero(posterior[:, y] > ACTIVE)
    mass = examples.weights[members] * posterior[members, y]
    if examples.holes is None or model is None:
        return log_linear.pair_sums(examples.rows, members, mass)
    drawn = model.draw(examples.observed.take(members), y, np.random.default_rng(y))
    rows = as_rows(drawn.astype(np.uint8), None)
    return log_linear.pair_sums(rows, np.arange(members.size), mass)


def fill_by_frequency(examples: Examples) -> Examples:
    """Return the examples with unknown entries drawn by how often each variable is on."""
    if examples.holes is None:
        return examples
    states = examples.observed.symbols()
    known, on = states >= 0, states == 1
    weight = examples.weights @ known
    share = (examples.weights @ on + 0.5) / (weight + 1.0)
    drawn = np.random.default_rng(0).random(states.shape) < share
    return replace(
        examples,
        rows=listed(as_rows(np.where(known, on, drawn).astype(np.uint8), None)),
        holes=None,
        words=None,
        codes=None,
    )
