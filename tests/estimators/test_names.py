"""Names where rows have none, answers in tables, and messages that name column and value."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from exchangeable import (
    EVM,
    Count,
    ExchangeableClassifier,
    ExchangeableDensity,
    ExchangeableImputer,
    ExchangeableMixture,
    load,
    save,
)

TEXTS = ["space rocket moon", "rocket space orbit", "bread butter", "butter milk bread"] * 10
KIND = ["sky", "sky", "food", "food"] * 10
RNG = np.random.default_rng(0)
ROWS = RNG.integers(0, 2, (60, 4))
FRAME = pd.DataFrame(ROWS, columns=list("abcd"), index=[f"r{i}" for i in range(60)])
HOLED = FRAME.astype("Int64").mask(RNG.random((60, 4)) < 0.2)


@pytest.fixture(scope="module")
def mixture():
    return ExchangeableMixture(2, random_state=0).fit(FRAME)


def test_words_after_a_vectorizer(tmp_path):
    pipe = make_pipeline(CountVectorizer(binary=True), ExchangeableClassifier())
    nameless = pipe.fit(TEXTS, KIND)[-1]
    with pytest.raises(ValueError, match=r"'space'.*fitted to rows without names.*feature_names"):
        nameless.marginals({"space": 1})
    with pytest.raises(ValueError, match="give them by feature_names"):
        nameless.conditional("space")
    expected = nameless.marginals({6: 1})
    assert pipe[0].get_feature_names_out()[6] == "space"
    asked = nameless.marginals({"space": 1}, names=pipe[:-1])
    assert asked.index.tolist() == pipe[0].get_feature_names_out().tolist()
    np.testing.assert_array_equal(asked, expected)
    model = pipe.fit(TEXTS, KIND, exchangeableclassifier__feature_names=pipe[0])[-1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(model.marginals({"space": 1}), expected)
        assert pipe.predict(["space and bread"])[0] in KIND
        assert model.kinds_["space"] == "binary"
        with pytest.raises(ValueError, match="X has 3 features, but ExchangeableClassifier is"):
            model.predict(np.zeros((1, 3)))
    save(pipe, tmp_path / "pipe")
    again = load(tmp_path / "pipe")[-1]
    assert again.most_probable({"space": 1}).y == "sky"
    assert again.score_samples({"space": 1}) == model.score_samples({"space": 1})
    assert not hasattr(pipe.fit(TEXTS, KIND)[-1], "feature_names_in_")


def test_names_for_every_estimator():
    names = ["tea", "milk", "rum", "gin"]
    for model in (
        ExchangeableMixture(2, random_state=0),
        ExchangeableDensity(["urns"], n_init=1, max_components=2, random_state=0),
        ExchangeableClassifier(blocks=[["tea", "rum"], ["milk", "gin"]]),
    ):
        y = None if not hasattr(model, "class_prior") else ROWS[:, 0]
        model.fit(sp.csr_array(ROWS), y, feature_names=names)
        assert model.feature_names_in_.tolist() == names
        np.testing.assert_array_equal(
            model.conditional("milk", {"tea": 1}), model.conditional(1, {0: 1})
        )
    for wrong, message in (
        (["tea"], "feature_names has 1 names for 4 variables"),
        (["tea", "tea", "rum", "gin"], "holds 'tea' twice"),
    ):
        with pytest.raises(ValueError, match=message):
            ExchangeableMixture(2).fit(ROWS, feature_names=wrong)
    for wrong in ("teas", 3, [1, 2, 3, 4]):
        with pytest.raises(TypeError, match="feature_names"):
            ExchangeableMixture(2).fit(ROWS, feature_names=wrong)
    with pytest.raises(ValueError, match="X calls column 0 'a', feature_names 'tea'"):
        ExchangeableMixture(2).fit(FRAME, feature_names=names)


def test_one_question_as_a_dict(mixture):
    frame = pd.DataFrame([[1, np.nan, 0, np.nan]], columns=list("abcd"))
    expected = mixture.score_samples(frame)[0]
    assert mixture.score_samples({"a": 1, "c": 0}) == pytest.approx(expected)
    assert mixture.score_samples({0: 1, 2: 0}) == pytest.approx(expected)
    assert mixture.anomaly_score({"a": 1, "c": 0}) == pytest.approx(-expected)
    named = mixture.score_samples({"w": 1, "y": 0}, names=list("wxyz"))
    assert named == pytest.approx(expected)
    assert mixture.score_samples({}) == pytest.approx(0.0)
    with pytest.raises(ValueError, match="unknown variables"):
        mixture.score_samples({"z": 1})
    evm = EVM(Count(4)).fit(ROWS)
    assert evm.score_samples({0: 1}) == pytest.approx(np.log(evm.marginals()[0]))
    typed = ExchangeableMixture(2, random_state=0).fit(FRAME.assign(city=["Rome", "Oslo"] * 30))
    share = typed.conditional("city")["Rome"]
    assert typed.score_samples({"city": "Rome"}) == pytest.approx(np.log(share))


@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
def test_tables_are_answered_by_tables(mixture):
    arrays = mixture.marginals(HOLED.to_numpy(dtype=float, na_value=np.nan))
    found = mixture.marginals(HOLED)
    assert found.index.tolist() == HOLED.index.tolist()
    assert found.columns.tolist() == list("abcd")
    np.testing.assert_array_equal(found, arrays)
    other = mixture.marginals(pl.DataFrame(HOLED.astype(float).to_dict("list")))
    assert isinstance(other, pl.DataFrame)
    np.testing.assert_array_equal(other.to_numpy(), arrays)
    gain = mixture.information_gain(HOLED)
    assert gain.columns.tolist() == list("abcd")
    filled = mixture.impute(HOLED)
    assert (filled.dtypes == "Int64").all()
    assert (filled == HOLED).to_numpy()[HOLED.notna()].all()
    several = mixture.impute(HOLED, "draw", n_draws=2, random_state=0)
    assert [table.shape for table in several] == [(60, 4)] * 2
    assert mixture.impute(HOLED, "marginal").to_numpy(dtype=float).max() <= 1
    best = mixture.most_probable(HOLED)
    assert best.X.columns.tolist() == list("abcd")
    assert best.y.shape == (60,)
    open_frame = HOLED.assign(a=np.nan, b=np.nan).astype("Float64")
    joint = mixture.conditional(["a", "b"], open_frame)
    assert joint.columns.names == ["a", "b"]
    expected = mixture.conditional([0, 1], open_frame.to_numpy(dtype=float, na_value=np.nan))
    np.testing.assert_array_equal(joint[1, 0], expected[:, 1, 0])
    polars_joint = mixture.conditional(
        ["a", "b"], pl.DataFrame(open_frame.astype(float).to_dict("list"))
    )
    assert polars_joint.columns == ["a=0,b=0", "a=0,b=1", "a=1,b=0", "a=1,b=1"]


def test_set_output(mixture, tmp_path):
    model = clone(mixture.set_output(transform="pandas")).fit(FRAME)
    mixture.set_output(transform="default")
    answer = model.marginals({"a": 1})
    assert answer.index.tolist() == list("abcd")
    assert model.conditional("b", {"a": 1}).sum() == pytest.approx(1)
    rows, components = model.sample(3, random_state=0)
    assert rows.columns.tolist() == list("abcd")
    assert components.shape == (3,)
    save(model, tmp_path / "m")
    assert isinstance(load(tmp_path / "m").marginals(), pd.Series)
    assert isinstance(model.set_output().marginals(), pd.Series)
    assert isinstance(model.set_output(transform="polars").marginals(), pl.DataFrame)
    assert isinstance(model.set_output(transform="default").marginals(FRAME), np.ndarray)
    with pytest.raises(ValueError, match="transform='arrow' is unknown"):
        model.set_output(transform="arrow")
    numbered = ExchangeableMixture(2, random_state=0).fit(ROWS)
    assert isinstance(numbered.marginals(), np.ndarray)
    with sklearn.config_context(transform_output="pandas"):
        assert numbered.marginals().index.tolist() == ["x0", "x1", "x2", "x3"]
    imputer = ExchangeableImputer(ExchangeableMixture(2, random_state=0)).fit(HOLED)
    assert isinstance(imputer.transform(HOLED), np.ndarray)
    tables = imputer.set_output(transform="pandas").transform(HOLED)
    assert tables.columns.tolist() == list("abcd")
    save(imputer, tmp_path / "i")
    assert isinstance(load(tmp_path / "i").transform(HOLED), pd.DataFrame)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (FRAME.set_axis(list("abca"), axis=1), "X has 2 columns named 'a', at 0, 3"),
        (
            FRAME.assign(when=pd.date_range("2024-01-31", periods=60)),
            "column 'when' of X holds points or lengths of time, such as '2024-01-31",
        ),
        (np.array([["x", "y"], ["z", "u"]]), "such as 'x' in row 0, column 0"),
        (FRAME.assign(word="tea"), r"column 'word' is nominal \(type \w+, such as 'tea'\)"),
    ],
)
def test_columns_and_values_are_named(X, message):
    with pytest.raises(ValueError, match=message):
        ExchangeableMixture(2, family="urns").fit(X)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_numbers_that_are_cut_are_counted(make):
    counts = make(np.array([[0, 3, 1], [2, 0, 0], [1, 1, 7]]))
    with pytest.warns(UserWarning, match=r"binarize=0.0 are on: X holds 5 distinct values") as told:
        model = ExchangeableMixture(1).fit(counts)
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.score_samples(counts)
        ExchangeableMixture(1, binarize=1.5).fit(counts)
        ExchangeableMixture(1).fit(make(np.eye(3)))
        ExchangeableMixture(1).fit(np.array([[np.nan, 1.0], [0.0, 1.0]]))
    table = pd.DataFrame({"a": [0, 1, 0, 1], "b": [0, 5, 0, 9]})
    with pytest.warns(UserWarning, match="4 distinct values: column 'b' is count"):
        ExchangeableMixture(1, family="urns").fit(table)
