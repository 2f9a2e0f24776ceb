"""Over the whole range of their parameters models add up to one, or are refused."""

import warnings
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

from em_families import BY_EM
from enumeration import all_states
from exchangeable import Blocks, ExchangeableClassifier, ExchangeableMixture
from exchangeable.data.observed import Observed, as_observed
from exchangeable.families import REGISTRY
from exchangeable.families.urns.family import UrnFamily

N = 5
STATES = all_states(N)
rng = np.random.default_rng(1)
KIND = rng.integers(0, 2, size=60)
X = (rng.random((60, N)) < np.where(KIND[:, None] == np.arange(N) % 2, 0.9, 0.1)).astype(float)
X[:, 4] = X[:, 3]  # a pair that always goes together
HOLED = np.where(rng.random(X.shape) < 0.2, np.nan, X)
SIZES = (1e-300, 1e-15, 1e-6, 1e6, 1e15, 1e100)
SETTINGS: list[dict[str, Any]] = [{name: size} for name in ("alpha", "pooling") for size in SIZES]
SETTINGS += [{"blocks": Blocks(shrinkage=size)} for size in SIZES]
SETTINGS += [{"alpha": 1e-15, "pooling": 1e-15}, {"alpha": 1e-300, "pooling": 1e-12}]


def check_adds_up(model: Any) -> None:
    with np.errstate(all="raise", under="ignore", divide="ignore"):
        total = logsumexp(model.score(as_observed(STATES, None)), axis=0)
        nothing = Observed.from_symbols(np.full((1, N), -1, dtype=np.int8))
        unknown = model.score(nothing)[0]
    np.testing.assert_allclose(total, 0.0, atol=1e-9)
    np.testing.assert_allclose(unknown, 0.0, atol=1e-9)


STATISTICS = [([0, 1, 2], "runs"), [3, 4]]
FAMILIES = [(family, {}) for family in BY_EM] + [
    ("blocks", {"blocks": STATISTICS}),
    ("hidden tree", {"blocks": STATISTICS}),
    ("urns", {"blocks": [[0, 1, 2], [3, 4]]}),
    ("polya", {"blocks": "full"}),
]
CASES = [
    (family, settings)
    for family in BY_EM
    for settings in SETTINGS
    if REGISTRY[family].shrinkage is not None or "blocks" not in settings
]


@pytest.mark.parametrize(("family", "settings"), CASES, ids=str)
def test_models_add_up_to_one_for_every_prior(family: str, settings: dict[str, Any]) -> None:
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


@pytest.mark.parametrize("family", FAMILIES, ids=str)
@pytest.mark.parametrize("size", [1e-300, 1e-13])
def test_priors_that_vanish_beside_uneven_weights_and_constant_columns(
    family: tuple[str, dict[str, Any]], size: float
) -> None:
    """Sums of parts may be more than the whole by rounding, and shares 0 or 1 to the last digit."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, size=700)
    rows = (rng.random((700, N)) < np.where(kind[:, None] == np.arange(N) % 2, 0.9, 0.1)) * 1.0
    rows[:, 0], rows[:, 1], rows[:, 4] = 0, 1, rows[:, 3]
    holed = np.where(rng.random(rows.shape) < 0.1, np.nan, rows)
    weights = rng.random(700) * 10.0 ** rng.integers(-3, 4, 700)
    name, options = family
    for data in (rows, holed):
        for strengths in ({"alpha": size}, {"pooling": size}, {"alpha": size, "pooling": size}):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                settings: dict[str, Any] = {"max_iter": 3, **options, **strengths}
                mixture = ExchangeableMixture(2, family=name, tol=0.0, random_state=0, **settings)
                check_adds_up(mixture.fit(data, sample_weight=weights)._model)
                classifier = ExchangeableClassifier(name, **settings)
                check_adds_up(classifier.fit(data, kind, sample_weight=weights)._model)


@pytest.mark.parametrize("size", [5e-324, 1e-300, 1e99, 1e300])
def test_weights_that_are_too_small_or_large_are_refused(size: float) -> None:
    for family, options in FAMILIES:
        mixture = ExchangeableMixture(2, family=family, max_iter=2, random_state=0, **options)
        with pytest.raises(ValueError, match=r"sample_weight(\[7\] is| goes up to)"):
            mixture.fit(X, sample_weight=np.where(np.arange(60) == 7, size, 1.0))
        with pytest.raises(ValueError, match=r"sample_weight(\[0\] is| goes up to)"):
            ExchangeableClassifier(family, **options).fit(X, KIND, sample_weight=np.full(60, size))


@pytest.mark.parametrize("size", [1e-100, 1e98 / 60])
@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_the_smallest_and_largest_weights(family: tuple[str, dict[str, Any]], size: float) -> None:
    name, options = family
    for data in (X, HOLED):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mixture = ExchangeableMixture(2, family=name, max_iter=2, random_state=0, **options)
            check_adds_up(mixture.fit(data, sample_weight=np.full(60, size))._model)
            classifier = ExchangeableClassifier(name, max_iter=2, **options)
            check_adds_up(classifier.fit(data, KIND, sample_weight=np.full(60, size))._model)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_cannot_be_computed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(UrnFamily, "log_shares", lambda self, totals: np.full(totals.size, np.nan))
    with pytest.raises(ValueError, match="the fit cannot be computed"):
        ExchangeableMixture(2, family="urns", max_iter=2, random_state=0).fit(X)
