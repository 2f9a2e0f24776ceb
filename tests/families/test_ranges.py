"""Over the whole range of their parameters models add up to one, or are refused."""

import warnings
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

from em_families import BY_EM
from enumeration import all_states
from exchangeable import ExchangeableClassifier, ExchangeableMixture
from exchangeable.data.observed import Observed, as_observed
from exchangeable.families import REGISTRY

N = 5
STATES = all_states(N)
rng = np.random.default_rng(1)
KIND = rng.integers(0, 2, size=60)
X = (rng.random((60, N)) < np.where(KIND[:, None] == np.arange(N) % 2, 0.9, 0.1)).astype(float)
X[:, 4] = X[:, 3]  # a pair that always goes together
HOLED = np.where(rng.random(X.shape) < 0.2, np.nan, X)
SIZES = (1e-300, 1e-15, 1e-6, 1e6, 1e15, 1e100)
SETTINGS: list[dict[str, float]] = [
    {name: size} for name in ("alpha", "pooling", "shrinkage") for size in SIZES
]
SETTINGS += [{"alpha": 1e-15, "pooling": 1e-15}, {"alpha": 1e-300, "pooling": 1e-12}]


def check_adds_up(model: Any) -> None:
    with np.errstate(all="raise", under="ignore", divide="ignore"):
        total = logsumexp(model.score(as_observed(STATES, None)), axis=0)
        nothing = Observed.from_symbols(np.full((1, N), -1, dtype=np.int8))
        unknown = model.score(nothing)[0]
    np.testing.assert_allclose(total, 0.0, atol=1e-9)
    np.testing.assert_allclose(unknown, 0.0, atol=1e-9)


CASES = [
    (family, settings)
    for family in BY_EM
    for settings in SETTINGS
    if REGISTRY[family].shrinkage is not None or "shrinkage" not in settings
]


@pytest.mark.parametrize(("family", "settings"), CASES, ids=str)
def test_models_add_up_to_one_for_every_prior(family: str, settings: dict[str, float]) -> None:
    for data in (X, HOLED):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mixture = ExchangeableMixture(
                2, family=family, max_iter=4, tol=0.0, random_state=0, **settings
            )
            check_adds_up(mixture.fit(data)._model)
            if "classes" not in REGISTRY[family].cannot:
                classifier = ExchangeableClassifier(family, max_iter=4, **settings)
                check_adds_up(classifier.fit(data, KIND)._model)
