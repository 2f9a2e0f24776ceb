"""A mixture: distributions with their probabilities.

A classifier is a mixture whose components have labels; an average of fits, and several families
joined, are mixtures too.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from exchangeable.arrays import FloatArray, IntArray, log_totals, normalize_log
from exchangeable.data.examples import Examples
from exchangeable.data.observed import Observed
from exchangeable.families.contract import Model
from exchangeable.families.joined import JoinedModel
from exchangeable.runtime.blas import blas_threads
from exchangeable.runtime.threads import row_ranges, run

MOST_CELLS = 1 << 21
"""Scores of rows by classes that a thread holds at once."""


@dataclass(frozen=True)
class Mixture:
    """A model and the log-probabilities of its classes.

    Attributes
    ----------
    model : Model
        The distributions, one per class.
    log_prior : array of shape (n_classes,)
        Log-probability of each class.
    """

    model: Model
    log_prior: FloatArray

    def joint(self, observed: Observed, n_jobs: int | None = None) -> FloatArray:
        """Return log P(e, y), shape (n_rows, n_classes)."""
        self.check_width(observed)
        return self.model.score(observed, n_jobs) + self.log_prior

    def check_width(self, observed: Observed) -> None:
        """Reject rows with other variables than the model's: compiled loops trust their width."""
        if observed.n_variables != self.model.n_variables:
            raise ValueError(
                f"X has {observed.n_variables} features, but the model has {self.model.n_variables}"
            )

    def log_posterior(
        self, observed: Observed, n_jobs: int | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return log P(y | e) of every row, and log P(e)."""
        return normalize_log(self.joint(observed, n_jobs), self.log_prior)

    def log_evidence(self, observed: Observed, n_jobs: int | None = None) -> FloatArray:
        """Return log P(e) of every row: joined parts in turn, some rows at a time of many classes.

        The more rows at a time, the less often the parameters of all classes are read.
        """
        if isinstance(self.model, JoinedModel):
            begins = np.cumsum([part.n_classes for part in self.model.parts])[:-1]
            shares = np.split(self.log_prior, begins)
            parts = map(Mixture, self.model.parts, shares)
            found = [part.log_evidence(observed, n_jobs) for part in parts]
            return np.asarray(np.logaddexp.reduce(found))
        ranges = row_ranges(observed.n_rows, max(1, MOST_CELLS // self.log_prior.size))
        if len(ranges) < 2:
            return log_totals(self.joint(observed, n_jobs))
        each = np.empty(observed.n_rows)

        def one(rows: tuple[int, int]) -> None:
            part = observed.take(np.arange(*rows))
            each[slice(*rows)] = log_totals(self.joint(part, 1))

        with blas_threads():
            run(one, ranges, n_jobs)
        return each

    def log_likelihood(self, examples: Examples, n_jobs: int | None = None) -> float:
        """Return the weighted log-likelihood of all examples."""
        each = self.model.log_likelihoods(self.log_prior, examples, n_jobs)
        return float(examples.weights @ each)

    def only(self, classes: IntArray) -> "Mixture":
        """Return the mixture of some of the classes, with probabilities that sum to one."""
        log_prior = self.log_prior[classes]
        shares = np.exp(log_prior - log_prior.max())
        model = self.model if classes.size == self.log_prior.size else self.model.only(classes)
        with np.errstate(divide="ignore"):
            return Mixture(model, np.log(shares / shares.sum()))

    @property
    def n_parameters(self) -> int:
        """Number of free parameters, including the probabilities of the classes."""
        return self.model.n_parameters + self.log_prior.size - 1

    @staticmethod
    def average(mixtures: Sequence["Mixture"]) -> "Mixture":
        """Return the uniform average of several mixtures: one mixture of all their components."""
        models = [mixture.model for mixture in mixtures]
        log_prior = np.concatenate([mixture.log_prior for mixture in mixtures])
        return Mixture(type(models[0]).stack(models), log_prior - np.log(len(mixtures)))

    @staticmethod
    def join(mixtures: Sequence["Mixture"], shares: FloatArray) -> "Mixture":
        """Join several mixtures, of any families, with given shares.

        Mixtures of different families err in different ways, so that a joint mixture is better than
        any of them. Those without a share are left out.
        """
        kept = [(each, share) for each, share in zip(mixtures, shares, strict=True) if share > 0]
        log_prior = np.concatenate([each.log_prior + np.log(share) for each, share in kept])
        models = [each.model for each, _ in kept]
        return Mixture(models[0] if len(models) == 1 else JoinedModel(models), log_prior)


def weighed(model: Model, log_totals: FloatArray) -> tuple[Mixture, float]:
    """Return the mixture with given log-weights of classes, and the log of their sum.

    >>> import numpy as np
    >>> mixture, total = weighed(None, np.log([1.0, 3.0]))  # the model is passed on as it is
    >>> np.exp(mixture.log_prior).round(2).tolist(), round(float(np.exp(total)), 2)
    ([0.25, 0.75], 4.0)
    """
    total = float(np.logaddexp.reduce(log_totals))
    return Mixture(model, log_totals - total), total
