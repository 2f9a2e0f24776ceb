"""Conditional maximum likelihood: items from answers given the scores, by Newton's method.

Persons are grouped by the items they answered. The likelihood conditions on the score on these, so
that no assumption is made about abilities or about missing answers. There is no prior and no
smoothing.
"""

import warnings
from dataclasses import dataclass

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families import REGISTRY
from exchangeable.families.items import Answered, Conditional, answers_of, items_of
from exchangeable.rasch.answers import Answers, sort_answers
from exchangeable.rasch.existence import check_existence, usable_items
from exchangeable.rasch.parameters import ItemParameters, among, to_thresholds
from exchangeable.runtime.blas import blas_threads

MOST_STEPS = 50
FEW_PATTERNS = 2_000
"""With more patterns than this, Newton's method starts from a fit to this many of them."""
LARGEST = 16.0
"""Thresholds beyond this are considered to diverge."""
LEAST_INFORMATION = 1e-4
"""With less information, standard errors would exceed 100: the likelihood is flat."""


@dataclass(frozen=True)
class ConditionalFit:
    """Items fitted by conditional maximum likelihood.

    Attributes
    ----------
    parameters : ItemParameters
        Thresholds with their covariances, NaN if there is no finite estimate.
    log_likelihood : float
        Log-likelihood of the answers given the scores.
    n_parameters : int
        Number of free parameters.
    n_persons : float
        Total weight of the persons whose score is not extreme.
    n_iter : int
        Number of Newton steps.
    """

    parameters: ItemParameters
    log_likelihood: float
    n_parameters: int
    n_persons: float
    n_iter: int


def conditional_of(highest: IntArray) -> Conditional:
    """Return the sums of the most specific family that covers such items."""
    kind = "binary" if (highest == 1).all() else "ordinal"
    able = [spec for spec in REGISTRY.values() if spec.conditional and kind in spec.kinds]
    chosen = min(able, key=lambda spec: len(spec.kinds)).conditional
    assert chosen is not None
    return chosen


def fit_conditional(answers: Answers, n_jobs: int | None = None) -> ConditionalFit:
    """Fit the items of a test by conditional maximum likelihood.

    Parameters
    ----------
    answers : Answers
        The answers.
    n_jobs : int, optional
        Number of threads; all cores by default.
    """
    with blas_threads(1):
        return _fit(answers, n_jobs)


def _fit(answers: Answers, n_jobs: int | None) -> ConditionalFit:
    used = usable_items(answers)
    inside = answers.only(items=used)
    inside = inside.only(persons=inside.informative)
    check_existence(inside)
    problem = _Problem(
        inside, sort_answers(inside), *inside.counts(), conditional_of(inside.highest), n_jobs
    )
    log_credits, information, log_likelihood, n_iter = problem.solve()
    thresholds = to_thresholds(inside.highest) @ log_credits
    covariance = inverse_information(inside.highest, information)
    found = ItemParameters(inside.names, inside.highest, thresholds[:, None], covariance)
    return ConditionalFit(
        among(found, answers.names, answers.highest, used),
        log_likelihood,
        log_credits.size - 1,
        float(inside.weights.sum()),
        n_iter,
    )


def regular(highest: IntArray, information: FloatArray) -> FloatArray:
    """Return the information, made regular in the direction that is not identified."""
    answers = answers_of(highest).astype(np.float64)
    scale = np.trace(information) / answers.size
    return np.asarray(information + scale * np.outer(answers, answers) / (answers @ answers))


def inverse_information(highest: IntArray, information: FloatArray) -> FloatArray:
    """Return the covariances of centred thresholds, from the information about log ε."""
    centred = to_thresholds(highest)
    return np.asarray(centred @ np.linalg.inv(regular(highest, information)) @ centred.T)


@dataclass(frozen=True)
class _Problem:
    """The objective: counts·log ε − Σ log F."""

    answers: Answers
    answered: Answered
    counts: FloatArray
    below: FloatArray
    sums: Conditional
    n_jobs: int | None

    def solve(self) -> tuple[FloatArray, FloatArray, float, int]:
        """Return log ε, the information, the log-likelihood, and the number of steps."""
        start = self._start()
        n_patterns = len(self.answered.patterns)
        if n_patterns > 2 * FEW_PATTERNS:
            chosen = np.linspace(0, n_patterns - 1, FEW_PATTERNS).astype(np.int64)
            start = self._of_few(start, chosen)
        return self._newton(start, self.answered, self.counts)

    def _start(self) -> FloatArray:
        """Return log-odds of the counts."""
        return np.log((self.counts + 0.5) / (self.below + 0.5))

    def _of_few(self, start: FloatArray, chosen: IntArray) -> FloatArray:
        """Return two steps on some of the patterns, which represent all of them."""
        some = self.answered.some(chosen)
        log_credits, share = start, some.weights.sum() / self.answered.weights.sum()
        for _ in range(2):
            sums = self.sums(self.answers.highest, log_credits, some, self.n_jobs)
            gradient = self.counts - sums.expected / share
            step = np.linalg.solve(
                regular(self.answers.highest, sums.information / share), gradient
            )
            log_credits = log_credits + np.clip(step, -2.0, 2.0)
        return log_credits

    def _newton(
        self, start: FloatArray, answered: Answered, counts: FloatArray
    ) -> tuple[FloatArray, FloatArray, float, int]:
        log_credits = start
        sums = self.sums(self.answers.highest, log_credits, answered, self.n_jobs)
        worth = float(counts @ log_credits) - sums.log_norm
        enough = 1e-10 * answered.weights.sum()
        for n_iter in range(1, MOST_STEPS + 1):
            gradient = counts - sums.expected
            step = self._step(log_credits, sums.information, gradient)
            gain = float(gradient @ step)
            if gain < enough and np.abs(step).max() < 1e-6:
                return log_credits + step, sums.information, worth + 0.5 * gain, n_iter
            size = 1.0
            while True:
                tried = log_credits + size * step
                new = self.sums(self.answers.highest, tried, answered, self.n_jobs)
                reached = float(counts @ tried) - new.log_norm
                if reached >= worth - 1e-9 * abs(worth) or size < 1e-4:
                    break
                size *= 0.5
            log_credits, sums, worth = tried, new, reached
        warnings.warn(
            f"Newton's method has not converged after {MOST_STEPS} steps; the items may be "
            "nearly separated",
            stacklevel=6,
        )
        return log_credits, sums.information, worth, MOST_STEPS

    def _step(
        self, log_credits: FloatArray, information: FloatArray, gradient: FloatArray
    ) -> FloatArray:
        """Return the Newton step; an error if thresholds diverge or the likelihood is flat."""
        highest = self.answers.highest
        values, vectors = np.linalg.eigh(regular(highest, information))
        far = np.abs(to_thresholds(highest) @ log_credits)
        flat = values[0] < LEAST_INFORMATION * self.answers.weights.mean()
        if not flat and far.max() < LARGEST:
            return np.asarray(vectors @ ((vectors.T @ gradient) / values))
        if flat:
            far = np.abs(to_thresholds(highest) @ vectors[:, 0])
        name = self.answers.names[items_of(highest)[np.argmax(far)]]
        raise ValueError(
            f"the likelihood has no maximum: a threshold of item {name!r} runs off to infinity; "
            "merge answers that hardly anybody gave, or leave the item out"
        )
