"""Distal outcomes: truths recovered, categories, weights, missing values."""

import numpy as np
import pandas as pd
import pytest

from exchangeable import ExchangeableMixture
from exchangeable.classes import outcomes
from made_classes import PRECISE, answers


@pytest.fixture(scope="module")
def survey():
    X, kind = answers(2000, seed=3)
    rng = np.random.default_rng(0)
    model = ExchangeableMixture(2, n_init=5, random_state=0, **PRECISE).fit(X)
    if model.profiles().values[0, 0] < 0.5:
        kind = 1 - kind  # class 0 of the model answers the first item with yes
    hours = np.where(kind == 0, 3.0, 5.0) + rng.normal(size=2000)
    city = np.where(rng.random(2000) < np.where(kind == 0, 0.7, 0.3), "Rome", "Oslo")
    return model, X, kind, pd.DataFrame({"hours": hours, "city": city})


@pytest.mark.parametrize("method", ["bch", "ml"])
def test_outcomes_are_those_of_the_true_classes(survey, method):
    model, X, _, table = survey
    found = outcomes(model, X, table, method=method)
    hours, oslo, rome = found.outcomes
    assert (hours.name, oslo.category, rome.category) == ("hours", "Oslo", "Rome")
    assert (np.abs(hours.estimates - [3, 5]) < 3 * hours.errors).all()
    assert (np.abs(rome.estimates - [0.7, 0.3]) < 3 * rome.errors).all()
    np.testing.assert_allclose(rome.estimates + oslo.estimates, 1.0)
    assert found.tests["hours"][1] == found.tests["city"][1] == 1
    assert found.tests["hours"][2] < 1e-10
    naive = pd.Series(table["hours"]).groupby(model.predict(X)).mean()
    assert np.ptp(hours.estimates) > np.ptp(naive)
    name, _, y, z, difference, error, p = found.differences[0]
    assert (name, y, z) == ("hours", 0, 1)
    assert difference == pytest.approx(hours.estimates[0] - hours.estimates[1])
    assert error > 0
    assert p < 1e-10


def test_certain_classes_are_plain_means_with_their_standard_errors():
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 300)
    X = np.repeat(kind[:, None], 30, axis=1) * 1.0
    X[rng.random(X.shape) < 0.05] = 0.5
    X = (X > 0.4).astype(float)
    model = ExchangeableMixture(2, blocks="independent", n_init=3, random_state=0).fit(X)
    y = rng.normal(kind, 1 + kind)
    for method in ("bch", "ml"):
        one = outcomes(model, X, y, method=method).outcomes[0]
        for k in range(2):
            own = y[model.predict(X) == k]
            assert one.estimates[k] == pytest.approx(own.mean(), abs=1e-3)
            assert one.errors[k] == pytest.approx(own.std() / np.sqrt(own.size), rel=0.15)


def test_no_difference_is_not_significant(survey):
    model, X, _, _ = survey
    noise = np.random.default_rng(5).normal(size=len(X))
    assert outcomes(model, X, noise).tests["y0"][2] > 0.01


def test_missing_outcomes_are_left_out_and_weights_repeat_rows(survey):
    model, X, _, table = survey
    hours = table["hours"].mask(np.random.default_rng(0).random(len(X)) < 0.3)
    whole = outcomes(model, X, table["hours"]).outcomes[0]
    some = outcomes(model, X, hours).outcomes[0]
    assert some.name == "hours"
    assert (some.errors > whole.errors).all()
    assert (np.abs(some.estimates - whole.estimates) < 4 * some.errors).all()
    weight = np.random.default_rng(1).integers(1, 4, len(X))
    repeated = np.repeat(np.arange(len(X)), weight)
    first = outcomes(model, X, table["hours"], sample_weight=weight).outcomes[0]
    second = outcomes(model, X[repeated], table["hours"].iloc[repeated]).outcomes[0]
    np.testing.assert_allclose(first.estimates, second.estimates, rtol=1e-9)


def test_what_cannot_be_compared_is_refused(survey):
    model, X, _, table = survey
    with pytest.raises(ValueError, match="Y has 5 rows, but X has 2000"):
        outcomes(model, X, table["hours"][:5])
    with pytest.raises(ValueError, match="is missing in all rows"):
        outcomes(model, X, np.full(len(X), np.nan))
    with pytest.raises(ValueError, match="the limit is 50"):
        outcomes(model, X, np.array([f"n{i}" for i in range(len(X))]))
    with pytest.raises(ValueError, match="method='naive' is unknown"):
        outcomes(model, X, table, method="naive")


def test_intervals_of_shares_are_between_0_and_1():
    X, kind = answers(300, seed=4)
    model = ExchangeableMixture(2, blocks="independent", n_init=3, random_state=0).fit(X)
    found = outcomes(model, X, pd.DataFrame({"place": np.where(kind, "town", "city")}))
    for one in found.outcomes:
        assert ((one.interval >= 0) & (one.interval <= 1)).all()
        assert (one.interval[1] > one.interval[0]).all()
    assert any((one.estimates + 2 * one.errors > 1).any() for one in found.outcomes)
