"""Models that score complete rows by a linear term, pairs along a forest, and look-ups."""

from abc import abstractmethod
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray, SymbolArray, normalize_log
from exchangeable.data.examples import Examples
from exchangeable.data.observed import Observed
from exchangeable.families.common.log_linear import on_device
from exchangeable.families.common.log_linear import scores as log_linear
from exchangeable.families.common.log_linear.scores import LinearSums, LogLinear
from exchangeable.families.common.posteriors import NOTHING
from exchangeable.families.contract import Model
from exchangeable.families.sums import RowsInMemory
from exchangeable.runtime.threads import run


class LogLinearModel(Model):
    """A model with log-linear scores, for which a single pass of EM is implemented."""

    @property
    @abstractmethod
    def scores(self) -> LogLinear:
        """The data for scoring complete rows."""

    def log_linear(self) -> LogLinear:
        """Return the log-linear scores of complete rows."""
        return self.scores

    @abstractmethod
    def score_class(self, states: SymbolArray, y: int, out: FloatArray) -> None:
        """Write log P(e | y) of rows with missing entries; e are a row's known entries."""

    @abstractmethod
    def hole_sums(
        self, observed: Observed, mass: FloatArray, y: int
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the mass of class y by variables on, by pairs on, and by counts."""

    def expect_holes(
        self,
        examples: Examples,
        log_prior: FloatArray,
        n_jobs: int | None,
        given: FloatArray | None,
    ) -> LinearSums | None:
        """Do the same as `expect_rows` for incomplete rows, if there is a faster way."""
        return None

    def score(self, observed: Observed, n_jobs: int | None = None) -> FloatArray:
        """Return log P(e | y), shape (n_rows, n_classes); e are a row's known entries."""
        if observed.holes is None:
            return log_linear.score(observed.ones, self.scores, n_jobs)
        out = np.zeros((self.n_classes, observed.n_rows))
        for part, rows in observed.chunks():
            states = rows.symbols()

            def one(y: int, part: slice = part, states: SymbolArray = states) -> None:
                self.score_class(states, y, out[y, part])

            run(one, range(self.n_classes), n_jobs)
        return np.ascontiguousarray(out.T)

    def expect(
        self, data: RowsInMemory, log_prior: FloatArray, moments: bool = False
    ) -> LinearSums:
        """Compute the posteriors of all rows, and the sums for the next parameters."""
        return expect_rows(self, data.examples, log_prior, data.n_jobs)

    def expect_on(
        self, device: Any, data: RowsInMemory, log_prior: FloatArray, moments: bool = False
    ) -> LinearSums | None:
        """Do the same on a device, for complete rows without classes."""
        if not on_device.can(data.examples):
            return None
        return on_device.expect(device, data, self.scores, log_prior)


def expect_rows(
    model: LogLinearModel,
    examples: Examples,
    log_prior: FloatArray,
    n_jobs: int | None = None,
    given: FloatArray | None = None,
) -> LinearSums:
    """Compute posteriors and sums; if posteriors are `given`, the log-likelihood is 0."""
    if examples.holes is None:
        return log_linear.expect(examples, model.scores, log_prior, n_jobs, given)
    sums = model.expect_holes(examples, log_prior, n_jobs, given)
    if sums is not None:
        return sums
    log_likelihood, posterior = posteriors_with_holes(model, examples, log_prior, n_jobs, given)
    mass = examples.weights[:, None] * posterior

    def one(y: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        members = np.flatnonzero(mass[:, y] > 0)
        return model.hole_sums(examples.observed.take(members), mass[members, y], y)

    ones, pairs, counts = zip(*run(one, range(mass.shape[1]), n_jobs), strict=True)
    by_count = bool(model.scores.by_count.size)
    return LinearSums(
        log_likelihood,
        posterior,
        mass.sum(axis=0),
        np.stack(ones, axis=1),
        np.stack(pairs, axis=1) if model.scores.parent.size else log_linear.NO_NUMBERS,
        np.stack(counts, axis=1) if by_count else log_linear.NO_NUMBERS,
        [] if by_count or not model.scores.tables.starts.size else list(counts),
    )


def posteriors_with_holes(
    model: Model,
    examples: Examples,
    log_prior: FloatArray,
    n_jobs: int | None = None,
    given: FloatArray | None = None,
) -> tuple[float, FloatArray]:
    """Return the log-likelihood of the known entries of the rows, and their posteriors.

    `given` posteriors are returned unchanged.
    """
    if given is not None:
        return 0.0, given
    return settle(model.score(examples.observed, n_jobs) + log_prior, examples, log_prior)


def settle(
    joint: FloatArray, examples: Examples, log_prior: FloatArray
) -> tuple[float, FloatArray]:
    """Return the log-likelihood and the posteriors of rows, given log P(e, y).

    The posterior of a row with a known class is one for that class.
    """
    log_posterior, each = normalize_log(joint, log_prior)
    posterior = np.exp(log_posterior)
    posterior[posterior < NOTHING] = 0.0
    if examples.clamp.size:
        known = np.flatnonzero(examples.clamp >= 0)
        each[known] = joint[known, examples.clamp[known]]
        posterior[known] = 0.0
        posterior[known, examples.clamp[known]] = 1.0
    return float(examples.weights @ each), posterior
