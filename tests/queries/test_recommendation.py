"""Recommendations: marginals of open variables, in the order of probability or lift."""

import numpy as np
import pytest

from exchangeable import ExchangeableMixture

NAMES = ["tea", "milk", "beer", "crisps", "bread"]


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, (400, 1))
    chance = np.where(kind == 0, [0.8, 0.7, 0.1, 0.1, 0.9], [0.1, 0.2, 0.7, 0.6, 0.8])
    return ExchangeableMixture(2, random_state=0).fit(rng.random((400, 5)) < chance)


def test_they_are_the_marginals_of_what_is_open(model):
    found = model.recommend({0: 1, 2: 0}, n=10)
    chance, usual = model.marginals({0: 1, 2: 0}), model.marginals()
    assert [each.item for each in found] == [j for j in np.argsort(-chance) if j not in (0, 2)]
    for each in found:
        assert each.probability == pytest.approx(chance[each.item])
        assert each.lift == pytest.approx(chance[each.item] / usual[each.item])


def test_entries_that_are_off_can_be_recommended(model):
    row = np.array([[1, 0, 0, 0, np.nan], [0, 0, 1, 0, 0]])
    first, second = model.recommend(row, n=2)
    assert first == model.recommend({0: 1}, n=2)
    assert second == model.recommend({2: 1}, n=2)


def test_lift_puts_what_is_special_before_what_everybody_has(model):
    assert model.recommend({2: 1}, n=1)[0].item == 4
    best = model.recommend({2: 1}, n=1, by="lift")[0]
    assert best.item == 3
    assert best.lift > 1


def test_a_class_can_be_given(model):
    for y in range(2):
        alone = model.marginals({0: 1}, given_class=y)
        mixture = model._mixture().only(np.array([y]))
        np.testing.assert_allclose(
            alone, ExchangeableMixture.marginals(_holding(model, mixture), {0: 1})
        )
    shares = model.predict_proba(np.array([[1, np.nan, np.nan, np.nan, np.nan]]))[0]
    both = np.stack([model.marginals({0: 1}, given_class=y) for y in range(2)])
    np.testing.assert_allclose(shares @ both, model.marginals({0: 1}))
    with pytest.raises(ValueError, match="label=7 is unknown"):
        model.marginals(given_class=7)


def _holding(model, mixture):
    held = ExchangeableMixture(1)
    held.__dict__.update(model.__dict__)
    held._model, held.weights_ = mixture.model, np.exp(mixture.log_prior)
    return held


def test_names_and_tables(model):
    pandas = pytest.importorskip("pandas")
    frame = model.recommend({"beer": 1}, n=2, names=NAMES)
    assert list(frame.columns) == ["item", "probability", "lift"]
    assert frame["item"][0] == "bread"
    rows = pandas.DataFrame([[1, 0, 0, 0, 0], [0, 0, 1, 0, 0]], columns=NAMES, index=["a", "b"])
    named = ExchangeableMixture(2, random_state=0).fit(rows)
    assert named.recommend(rows, n=1)["row"].tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("options", "message"),
    [({"n": 0}, "n must be at least 1"), ({"by": "price"}, "by='price' is unknown")],
)
def test_what_makes_no_sense(model, options, message):
    with pytest.raises(ValueError, match=message):
        model.recommend({0: 1}, **options)


def test_columns_of_other_kinds(model):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"age": np.linspace(20.0, 60.0, 40), "buys": [True, False] * 20})
    mixed = ExchangeableMixture(1, random_state=0).fit(table)
    with pytest.raises(ValueError, match="'age' is continuous"):
        mixed.recommend({"buys": True})
