"""RaschModel: what users see of it, alone and as a mixture."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from exchangeable import ExchangeableMixture, RaschModel, load, save
from exchangeable.rasch import Population, item_parameters
from rasch_data import draw_answers, with_holes

rng = np.random.default_rng(1)
EASY = np.linspace(-1.5, 1.5, 8)
OTHER = EASY[[5, 2, 7, 0, 3, 6, 1, 4]]
KIND = rng.integers(0, 2, size=1500)
BINARY = np.where(
    KIND[:, None] == 0,
    draw_answers(list(EASY), rng.normal(size=1500), rng),
    draw_answers(list(OTHER), rng.normal(size=1500), rng),
)
HOLED = with_holes(BINARY, 0.1, rng)
GRADED = draw_answers([[-1.0, 0.5], [-0.5, 0.0], [0.3, 1.0], [0.6]], rng.normal(size=400), rng)


@pytest.fixture(scope="module", params=[BINARY, HOLED], ids=["complete", "holes"])
def mixed(request):
    return RaschModel(2, n_init=2, random_state=0).fit(request.param), request.param


def by_truth(model):
    """Return the classes in the order in which they were drawn."""
    first = np.abs(model.item_parameters_.locations[:, 0] - EASY).sum()
    second = np.abs(model.item_parameters_.locations[:, 1] - EASY).sum()
    return [0, 1] if first < second else [1, 0]


def test_a_mixture_recovers_two_populations(mixed):
    """Errors in units of their standard errors: 14 free ones, whose squares are chi-squared."""
    model, X = mixed
    order, items = by_truth(model), model.item_parameters_
    z = (items.locations[:, order] - np.stack([EASY, OTHER], axis=1)) / items.standard_errors[
        :, order
    ]
    assert np.abs(z).max() < 3.5
    assert 14 * 0.3 < (z**2).sum() * 14 / 16 < 29.1  # the upper 1 %
    agree = (model.predict(X) == np.array(order)[KIND]).mean()
    assert agree > 0.75
    assert model.weights_[order[0]] == pytest.approx(0.5, abs=0.1)


def test_differences_between_classes(mixed):
    model, _ = mixed
    first, second = by_truth(model)
    found = model.differences(first, second)
    z = (found.difference - (EASY - OTHER)) / found.standard_error
    assert np.abs(z).max() < 3.5
    same = EASY == OTHER
    assert not same.any()
    assert (found.p_value[np.abs(EASY - OTHER) > 1] < 1e-6).all()
    assert (found.adjusted_p_value >= found.p_value).all()
    own = model.item_parameters_.standard_errors[:, [first, second]]
    assert (found.standard_error < own.sum(axis=1)).all()
    np.testing.assert_allclose(model.differences(second, first).z, -found.z)
    assert list(found.to_frame().columns)[:2] == ["item", "difference"]
    assert "p (Holm)" in str(found)
    with pytest.raises(ValueError, match="there is no class 2"):
        model.differences(0, 2)


def test_abilities_of_a_mixture(mixed):
    model, X = mixed
    found = model.abilities(X[:50])
    best = model.predict(X[:50])
    for y in range(2):
        own = model.abilities(X[:50], component=y)
        np.testing.assert_array_equal(found.estimate[best == y], own.estimate[best == y])
    assert (found.scores == np.nansum(X[:50], axis=1)).all()
    assert all(0.5 < each.deviation < 1.5 for each in model.populations_)
    np.testing.assert_allclose(model.score_distribution_.sum(axis=0), 1.0)


def test_files_keep_the_mixture(mixed, tmp_path):
    model, X = mixed
    save(model.mixture_, tmp_path / "mixed.exch")
    np.testing.assert_allclose(
        load(tmp_path / "mixed.exch").predict_proba(X[:9]), model.predict_proba(X[:9])
    )


def test_errors_of_a_mixture_are_the_curvature_of_its_likelihood():
    """The outer products of derivatives, taken numerically by log ε of one item in one class."""
    from exchangeable.rasch.errors import _Derivatives

    model = ExchangeableMixture(2, family="urns", random_state=0, tol=1e-3).fit(HOLED)
    scale = model._model.item_scale()
    values = HOLED[:20]
    observed = model._observed(values)
    posterior = model.predict_proba(values)
    for y in range(2):
        found = _Derivatives(scale, y).of(values, posterior[:, y])
        for step in (0, 5):
            moved = []
            for size in (-1e-5, 1e-5):
                weights = np.array(model._model.log_weights)
                weights[step, y] += size
                other = type(model._model).make(
                    model._model.partitions, weights, model._model.log_q
                )
                joint = other.score(observed) + model._log_prior
                moved.append(np.logaddexp.reduce(joint, axis=1))
            np.testing.assert_allclose(found[:, step], (moved[1] - moved[0]) / 2e-5, atol=1e-6)


def test_names_tables_and_text():
    frame = pd.DataFrame(GRADED, columns=["a", "b", "c", "d"])
    model = RaschModel().fit(frame)
    table = model.item_parameters_.to_frame()
    assert table["step"].tolist() == ["a: 1", "a: 2", "b: 1", "b: 2", "c: 1", "c: 2", "d"]
    assert "threshold" in str(model.item_parameters_)
    assert "s.e." in str(model.abilities())
    assert model.abilities().to_frame().shape == (8, 3)
    assert "LR = " in str(model.andersen(frame))
    with pytest.raises(ValueError, match="feature names should match"):
        model.abilities(frame.rename(columns={"a": "z"}))


def test_tables_with_missing_values_of_their_own():
    frame = pd.DataFrame(HOLED).astype("Int64")
    own = RaschModel().fit(frame.set_axis([f"i{j}" for j in range(8)], axis=1)).item_parameters_
    np.testing.assert_array_equal(
        own.thresholds, RaschModel().fit(HOLED).item_parameters_.thresholds
    )
    assert own.names[0] == "i0"


def test_by_score_and_by_person():
    model = RaschModel().fit(HOLED)
    by_score = model.abilities()
    assert (np.diff(by_score.estimate) > 0).all()
    whole = ~np.isnan(HOLED).any(axis=1)
    found = model.abilities(HOLED[whole])
    np.testing.assert_allclose(found.estimate, by_score.estimate[found.scores], atol=1e-9)
    shrunk = model.abilities(method="eap", population=Population(0.0, 0.1))
    assert np.abs(shrunk.estimate).max() < 0.2
    ability = model.populations_[0]
    own = model.abilities(method="eap", population=ability)
    np.testing.assert_allclose(own.estimate, model.abilities(method="eap").estimate)
    nothing = model.abilities(np.full((1, 8), np.nan), method="eap")
    assert nothing.estimate[0] == pytest.approx(ability.mean, abs=1e-6)


def test_score_distribution_of_complete_rows():
    model = RaschModel().fit(GRADED)
    expected = np.bincount(GRADED.sum(axis=1).astype(int), minlength=8) / len(GRADED)
    np.testing.assert_allclose(model.score_distribution_[:, 0], expected)
    assert model.predict_proba(GRADED[:3]).tolist() == [[1.0]] * 3


def test_information_and_curves_leave_out_items_without_estimates():
    X = np.column_stack([BINARY, np.ones(len(BINARY))])
    with pytest.warns(UserWarning, match="no finite estimate for item 'x8'"):
        model = RaschModel().fit(X)
    grid = np.linspace(-3, 3, 5)
    for curves in (model.characteristic_curves(grid), model.information(grid)):
        assert curves.shape == (5, 9)
        assert np.isnan(curves[:, 8]).all()
        assert not np.isnan(curves[:, :8]).any()
    plain = RaschModel().fit(BINARY)
    np.testing.assert_allclose(
        model.abilities(X[:20]).estimate, plain.abilities(BINARY[:20]).estimate, atol=1e-8
    )
    with pytest.warns(UserWarning, match="no finite estimate for item 'x8'"):
        two = RaschModel(2, n_init=1, tol=1e-4, random_state=0).fit(X)
    assert np.isnan(two.item_parameters_.locations[8]).all()
    assert two.predict(X).shape == (1500,)
    assert two.abilities(X[:5]).estimate.shape == (5,)


def test_classes_that_are_nearly_empty():
    X = BINARY[:40]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = RaschModel(6, n_init=1, max_iter=50, random_state=0).fit(X)
    messages = [str(each.message) for each in told]
    assert any("is (nearly) empty" in message for message in messages)
    assert not np.isinf(model.item_parameters_.thresholds).any()
    empty = np.flatnonzero(np.isnan(model.item_parameters_.locations).all(axis=0))
    assert empty.size
    with pytest.raises(ValueError, match=f"class {empty[0]} has no item parameters"):
        model.abilities(X, component=int(empty[0]))


def test_too_few_persons_for_standard_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rough = RaschModel(2, n_init=1, max_iter=3, random_state=0).fit(BINARY[:24])
    assert np.isnan(rough.item_parameters_.standard_errors).all()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = item_parameters(rough.mixture_, BINARY[:24])
    messages = [str(each.message) for each in told]
    assert any("24 persons are too few for standard errors of" in text for text in messages)
    assert np.isnan(found.standard_errors).all()


def test_more_classes_than_can_be_told_apart():
    """Three items alike: any two classes fit, so that nothing is known about each."""
    X = np.array([[0, 1, 1], [1, 0, 1], [1, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]] * 20)
    with pytest.warns(UserWarning, match="more classes than can be told apart"):
        model = RaschModel(2, n_init=1, tol=1e-3, random_state=0).fit(X)
    assert np.isnan(model.item_parameters_.standard_errors).all()


def test_items_that_all_of_a_class_solve():
    """One class solves the last item always: its difficulty there is no number."""
    X = np.array(BINARY)
    X[KIND == 0, 7] = 1.0
    with pytest.warns(UserWarning, match=r"no finite estimate in class . for 'x7'"):
        model = RaschModel(2, n_init=1, tol=1e-7, random_state=0).fit(X)
    items = model.item_parameters_
    y = int(np.flatnonzero(np.isnan(items.locations[7]))[0])
    assert not np.isnan(items.locations[:7]).any()
    assert items.locations[:7, y].sum() == pytest.approx(0.0, abs=1e-9)
    assert not np.isnan(items.standard_errors[:7]).any()
    assert np.isnan(items.standard_errors[7, y])
    assert np.isnan(model.differences().difference[7])
    assert not np.isnan(model.abilities(X[:30]).estimate).any()


def test_item_parameters_of_other_mixtures():
    model = ExchangeableMixture(2, family="urns", random_state=0).fit(HOLED)
    plain = model.item_parameters_
    assert np.isnan(plain.standard_errors).all()
    np.testing.assert_allclose(plain.locations.sum(axis=0), 0.0, atol=1e-9)
    found = item_parameters(model, HOLED)
    np.testing.assert_array_equal(found.thresholds, plain.thresholds)
    assert (found.standard_errors > 0.03).all()
    graded = ExchangeableMixture(1, kinds="ordinal", blocks="full", alpha=0.0, tol=1e-12).fit(
        GRADED
    )
    own, cml = item_parameters(graded, GRADED), RaschModel().fit(GRADED).item_parameters_
    np.testing.assert_allclose(own.thresholds, cml.thresholds, atol=1e-3)
    np.testing.assert_allclose(own.standard_errors, cml.standard_errors, atol=1e-3)


def test_parameters_are_checked():
    with pytest.raises(ValueError, match="n_components"):
        RaschModel(0).fit(BINARY)
    model = RaschModel().fit(BINARY)
    with pytest.raises(ValueError, match="there is no class 1"):
        model.abilities(component=1)
    with pytest.raises(ValueError, match="split='sex' is unknown"):
        model.andersen(BINARY, "sex")
    with pytest.raises(ValueError, match="one group for each of 1500 persons"):
        model.andersen(BINARY, [0, 1])
    with pytest.raises(ValueError, match="at least two groups"):
        model.andersen(BINARY, np.zeros(1500))
    with pytest.raises(ValueError, match="split holds NaN"):
        model.andersen(BINARY, np.full(1500, np.nan))
    with pytest.raises(ValueError, match="from 0 to 1"):
        model.abilities(BINARY * 2)
    with pytest.raises(ValueError, match="group 7 is unknown"):
        model.andersen(BINARY, KIND).differences(7)
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        model.item_parameters_.intervals(2.0)
    assert clone(RaschModel(3, tol=0.1)).get_params()["n_components"] == 3


def test_andersens_test_finds_the_classes():
    model = RaschModel().fit(BINARY)
    found = model.andersen(BINARY, np.where(KIND == 0, "one", "other"))
    assert found.p_value < 1e-10
    assert found.groups == ("one", "other")
    assert found.degrees == 7
    random = model.andersen(BINARY, rng.integers(0, 3, size=1500))
    assert random.degrees == 14
    assert random.p_value > 0.001


def test_andersens_test_where_everybody_answered_other_items():
    X = with_holes(BINARY[:100], 0.4, np.random.default_rng(5))
    X = X[np.unique(np.isnan(X), axis=0, return_index=True)[1]]
    model = RaschModel().fit(HOLED)
    with pytest.raises(ValueError, match="split='ability' makes two"):
        model.andersen(X)
    found = model.andersen(HOLED, "ability")
    assert found.groups == ("high", "low")
    assert found.degrees == 7
