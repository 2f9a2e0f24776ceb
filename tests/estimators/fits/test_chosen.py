"""Several components per class, and settings chosen by cross-validation."""

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

from exchangeable import (
    Chosen,
    ExchangeableClassifier,
    ExchangeableMixture,
    Generative,
    Hybrid,
    load,
    save,
)

GROUP = np.random.default_rng(0).integers(0, 4, 600)
LABEL = np.array(["even", "odd"])[GROUP % 2]


def table() -> pd.DataFrame:
    """Two groups of rows per class: no single component of a class is like its rows."""
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "city": pd.Categorical(rng.choice(["Oslo", "Rome"], 600), categories=["Oslo", "Rome"]),
            "answer": pd.Categorical.from_codes(
                rng.binomial(2, np.array([0.1, 0.5, 0.9, 0.5])[GROUP]), [1, 2, 3], ordered=True
            ),
            "smokes": rng.random(600) < np.array([0.1, 0.3, 0.9, 0.4])[GROUP],
            "age": rng.normal(np.array([20.0, 40.0, 60.0, 40.0])[GROUP], 6.0),
            "visits": rng.poisson(np.array([0.5, 3.0, 6.0, 3.0])[GROUP]),
        }
    )


def holed() -> pd.DataFrame:
    return table().mask(np.random.default_rng(2).random((600, 5)) < 0.2)


STATES = list(itertools.product(["Oslo", "Rome"], [1, 2, 3], [False, True]))
NAMES = ["city", "answer", "smokes"]


def states(rows: pd.DataFrame) -> pd.DataFrame:
    """Return all rows of the columns with levels, in the types of a table."""
    made = pd.DataFrame(STATES, columns=NAMES)
    return made.astype({name: rows[name].dtype for name in ("city", "answer")})


def test_components_of_classes_answer_as_enumeration_does() -> None:
    rows = table()[NAMES]
    model = ExchangeableClassifier(training=Generative(2)).fit(rows, LABEL)
    every = states(rows)
    joint = np.exp(model.predict_joint_log_proba(every))
    assert joint.sum() == pytest.approx(1.0, abs=1e-12)
    known = (every["answer"] == 3).to_numpy()
    unknown = every[:1].assign(city=None, answer=3, smokes=None)
    unknown = unknown.astype({"answer": rows["answer"].dtype})
    assert np.exp(model.predict_joint_log_proba(unknown))[0] == pytest.approx(joint[known].sum(0))
    oslo = (every["city"] == "Oslo").to_numpy()
    answer = model.conditional("city", given={"answer": 3})
    assert answer["Oslo"] == pytest.approx(joint[known & oslo].sum() / joint[known].sum())
    drawn = model.sample(4000, random_state=0)[0]
    found = list(drawn.itertuples(index=False, name=None))
    seen = [found.count(each) for each in STATES]
    assert sum(seen) == 4000
    assert stats.chisquare(seen, 4000 * joint.sum(axis=1)).pvalue > 1e-3


def test_components_of_classes_are_those_of_mixtures_of_their_rows() -> None:
    rows = table()[NAMES]
    model = ExchangeableClassifier(training=Generative(2, n_init=2)).fit(rows, LABEL)
    for y, label in enumerate(model.classes_):
        own = ExchangeableMixture(2, n_init=2, tol=1e-3, max_iter=500, init="rows", random_state=0)
        scores = own.fit(rows[label == LABEL]).score_samples(rows)
        found = model.predict_joint_log_proba(rows)[:, y] - model.class_log_prior_[y]
        np.testing.assert_allclose(found, scores, atol=1e-10)


def test_measurements_of_several_components_are_mixtures_of_normals() -> None:
    model = ExchangeableClassifier(training=Generative(2)).fit(holed(), LABEL)
    age = model.conditional("age", given={"smokes": True, "visits": 2})
    total, mean = (
        integrate.quad(lambda x, power=power: x**power * age.density(x), -50, 150, limit=200)[0]
        for power in (0, 1)
    )
    assert total == pytest.approx(1.0, abs=1e-6)
    assert age.mean == pytest.approx(mean, rel=1e-6)
    grid = np.linspace(-50, 150, 4001)
    rows = pd.DataFrame({"city": None, "answer": None, "smokes": True, "age": grid, "visits": 2.0})
    dense = np.exp(model.score_samples(rows.astype({"answer": table()["answer"].dtype})))
    whole = np.exp(model.score_samples(rows[:1].assign(age=np.nan)))
    np.testing.assert_allclose(dense / whole, [age.density(x) for x in grid], atol=1e-9)
    filled = model.impute(holed())
    assert filled.dtypes.equals(holed().dtypes)
    assert not filled.isna().any().any()
    found = model.most_probable(holed())
    sure = model.predict_joint_log_proba(found.X).max(axis=1)
    assert (found.log_prob <= sure + 1e-9).all()


def test_several_components_per_class_predict_what_one_cannot(tmp_path: Path) -> None:
    rows = holed()
    one = ExchangeableClassifier().fit(rows[:300], LABEL[:300]).score(rows[300:], LABEL[300:])
    model = ExchangeableClassifier(training=Generative(2)).fit(rows[:300], LABEL[:300])
    assert model.score(rows[300:], LABEL[300:]) > one + 0.05
    save(model, tmp_path / "model.exch")
    again = load(tmp_path / "model.exch")
    np.testing.assert_array_equal(again.predict_proba(rows), model.predict_proba(rows))
    assert again.training.n_components == 2


def test_bits_may_have_several_components_per_class() -> None:
    X = (np.random.default_rng(3).random((400, 6)) < np.where(GROUP[:400, None] < 2, 0.2, 0.8)) * 1
    X[:, :3] ^= (GROUP[:400, None] % 2).astype(X.dtype)
    model = ExchangeableClassifier(blocks="independent", training=Generative(2))
    model.fit(X[:200], GROUP[:200] % 2)
    assert model.score(X[200:], GROUP[200:400] % 2) > 0.75
    unknown = np.random.default_rng(4).random((200, 6)) < 0.3
    answers = model.marginals(np.where(unknown, np.nan, X[200:]))
    assert answers.min() >= 0
    assert answers.max() <= 1


def test_the_choice_is_what_predicts_held_out_rows_best(tmp_path: Path) -> None:
    rows = holed()
    model = ExchangeableClassifier(training="chosen").fit(rows, LABEL)
    assert model.chosen_["training"].n_components > 1
    assert np.isfinite(model.choice_losses_).all()
    plain = ExchangeableClassifier(**model.chosen_).fit(rows, LABEL)
    np.testing.assert_array_equal(model.predict_proba(rows), plain.predict_proba(rows))
    save(model, tmp_path / "model.exch")
    again = load(tmp_path / "model.exch")
    np.testing.assert_array_equal(again.predict_proba(rows), model.predict_proba(rows))
    assert repr(again.chosen_) == repr(model.chosen_)


def test_a_refit_leaves_no_choice_behind() -> None:
    tried = [{"blocks": "independent"}, {"training": "hybrid"}]
    model = ExchangeableClassifier(training=Chosen(tried, n_folds=3)).fit(table(), LABEL)
    assert model.choice_losses_.size == 2
    model.set_params(training="generative").fit(table(), LABEL)
    assert not hasattr(model, "chosen_")


def test_few_rows_take_the_first_candidate() -> None:
    model = ExchangeableClassifier(training="chosen").fit(table()[:6], LABEL[:6])
    assert model.chosen_ == {"training": "generative", "blocks": "independent", "alpha": 1.0}
    assert np.isnan(model.choice_losses_).all()


def test_a_class_of_one_row_does_not_matter_to_the_choice() -> None:
    labels = LABEL.copy()
    labels[0] = "rare"
    model = ExchangeableClassifier(training=Chosen([{}, {"alpha": 1.0}])).fit(table(), labels)
    assert model.classes_.tolist() == ["even", "odd", "rare"]
    assert np.isfinite(model.choice_losses_).all()


def test_a_class_whose_rows_do_not_count_is_never_predicted() -> None:
    weight = np.where(LABEL == "odd", 0.0, 1.0)
    model = ExchangeableClassifier(training=Generative(2)).fit(table(), LABEL, sample_weight=weight)
    assert model.classes_.tolist() == ["even", "odd"]
    np.testing.assert_array_equal(model.predict_proba(table())[:, 1], 0.0)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"training": "best"}, "training='best' is unknown"),
        ({"training": "chosen", "semi_supervised": True}, "every row needs a label"),
        ({"training": "chosen", "class_prior": "uniform"}, "use class_weight"),
        ({"training": Chosen([])}, "nothing to try"),
        ({"training": Chosen([{"depth": 3}])}, "'depth', which is not a parameter"),
        ({"training": Chosen([{"training": "chosen"}])}, "itself"),
        ({"training": Chosen(n_folds=1)}, "n_folds"),
        ({"training": Generative(0)}, "n_components"),
        ({"training": Generative(2), "blocks": "evidence"}, "blocks of its own"),
    ],
)
def test_what_does_not_go_together_is_refused(options: dict[str, object], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        ExchangeableClassifier(**options).fit(table(), LABEL)


def test_settings_are_set_by_name() -> None:
    model = ExchangeableClassifier().set_params(training__n_components=3)
    assert isinstance(model.training, Generative)
    assert model.set_params(training="chosen", training__n_folds=3).training.n_folds == 3
    assert isinstance(model.set_params(training="hybrid", training__n_folds=2).training, Hybrid)
