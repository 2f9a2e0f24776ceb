"""The bootstrap likelihood-ratio test of a mixture against one with fewer components."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, RandomState, as_generator, check_count
from exchangeable.classes.rows import weighted_rows
from exchangeable.classes.uncertainty.drawing import drawn_examples
from exchangeable.classes.uncertainty.draws import run_draws
from exchangeable.queries.answers import class_posterior

ROUNDING = 0.5
"""A larger mixture may fit worse by this much, because of priors and of when EM stops."""
MOST_ROWS = 10_000_000
"""Maximum number of drawn rows."""
RESTARTS = 8
"""Random starts of the larger model in each draw."""


@dataclass(frozen=True)
class LikelihoodRatioTest:
    """A bootstrap likelihood-ratio test of two mixtures.

    Attributes
    ----------
    statistic : float
        Twice the difference of the log-likelihoods.
    p_value : float
        Share of the statistics at least as large as this one, including the observed one: (1 +
        number of these) / (1 + n_draws).
    draws : array of shape (n_draws,)
        Statistics for rows drawn from the smaller model.
    n_components : tuple of int
        Numbers of components of both models.
    """

    statistic: float
    p_value: float
    draws: FloatArray
    n_components: tuple[int, int]

    def __str__(self) -> str:
        small, large = self.n_components
        return (
            f"bootstrap likelihood-ratio test of {large} against {small} classes: "
            f"2ΔLL = {self.statistic:.2f}, p = {self.p_value:.3f} ({self.draws.size} draws)"
        )


def likelihood_ratio_test(
    small: Any,
    large: Any,
    X: Any,
    *,
    n_draws: int = 100,
    restarts: int = RESTARTS,
    sample_weight: npt.ArrayLike | None = None,
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> LikelihoodRatioTest:
    """Test a mixture against one with fewer components, by the parametric bootstrap.

    The statistic has no known distribution, since the smaller model lies on the boundary of the
    larger. So rows are drawn from the smaller model, both models are fitted to them, and the
    observed statistic is compared with theirs (McLachlan 1987). Before that, both models are
    iterated until they have converged as closely as those of the draws.

    Parameters
    ----------
    small, large : ExchangeableMixture
        Fitted mixtures.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The rows that they were fitted to; drawn rows have the same missing values.
    n_draws : int, default=100
        Number of draws.
    restarts : int, default=8
        Random starts of the larger model in each draw. Too few make p-values too small.
    sample_weight : array-like of shape (n_samples,), optional
        Weights, which are treated as frequencies here.
    random_state : int, RandomState, Generator or None
        Seed of the draws.
    n_jobs : int, optional
        Number of threads; it does not change the result.

    Examples
    --------
    >>> import numpy as np
    >>> from exchangeable import ExchangeableMixture
    >>> from exchangeable.classes import likelihood_ratio_test
    >>> rng = np.random.default_rng(0)
    >>> kind = rng.integers(0, 2, size=(300, 1))
    >>> X = rng.random((300, 6)) < np.where(kind == 0, 0.2, 0.8)
    >>> one, two = (
    ...     ExchangeableMixture(k, blocks="independent", random_state=0).fit(X) for k in (1, 2)
    ... )
    >>> likelihood_ratio_test(one, two, X, n_draws=19, random_state=0).p_value
    0.05
    """
    restarts = check_count(restarts, "restarts")
    refits = [model._refits() for model in (small, large)]
    sizes = tuple(model.weights_.size for model in (small, large))
    if sizes[0] >= sizes[1]:
        raise ValueError(
            f"the smaller mixture has {sizes[0]} components, the larger {sizes[1]}; give the one "
            "with fewer components first"
        )
    examples, observed, weight = weighted_rows(small, X, sample_weight)
    if weight.sum() > MOST_ROWS:
        raise ValueError(
            f"the weights add up to {weight.sum():,.0f}, and that many rows would be drawn; the "
            f"limit is {MOST_ROWS:,}; scale sampling weights so that they add up to the number of "
            f"rows, {weight.size:,}"
        )
    rng = as_generator(random_state)
    fits = [
        refit.fit(examples, rng, class_posterior(model._mixture(), examples.observed))
        for refit, model in zip(refits, (small, large), strict=True)
    ]
    statistic = 2 * (fits[1].log_likelihood - fits[0].log_likelihood)
    if statistic < -ROUNDING:
        warnings.warn(
            f"{sizes[1]} components fit worse than {sizes[0]}: the larger mixture is stuck in a "
            "local maximum; fit it with a larger n_init",
            stacklevel=2,
        )
    truth = fits[0].mixture

    def one(source: np.random.Generator) -> float:
        rows = drawn_examples(truth, observed, weight, source)
        start = class_posterior(truth, rows.observed, 1)
        lower = refits[0].fit(rows, source, start).log_likelihood
        higher = refits[1].fit(rows, source, None, restarts).log_likelihood
        return float(max(2 * (higher - lower), 0.0))

    text = f"{sizes[1]} against {sizes[0]} classes"
    draws = np.array(run_draws(one, rng, n_draws, n_jobs, text))
    p_value = (1 + int((draws >= statistic).sum())) / (1 + draws.size)
    return LikelihoodRatioTest(float(statistic), p_value, draws, (sizes[0], sizes[1]))
