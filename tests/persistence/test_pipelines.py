"""Pipelines of scikit-learn in files: what comes back, and what is refused."""

import json
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)

from exchangeable import (
    ExchangeableClassifier,
    ExchangeableImputer,
    ExchangeableMixture,
    load,
    save,
)
from exchangeable.persistence import ModelFileError

TEXTS = ["tea with milk", "space and the moon", "milk and bread", "the moon in space"] * 5
KIND = np.array(["food", "sky", "food", "sky"] * 5)
RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(size=(20, 3))
WORDS = np.array([["a", 1], ["b", 2], ["c", 1], ["a", 2]] * 5, dtype=object)
HOLES = np.where(RNG.random((20, 3)) < 0.2, np.nan, RNG.integers(0, 2, (20, 3)))


pytestmark = pytest.mark.filterwarnings("ignore:numbers greater than binarize:UserWarning")


@pytest.mark.parametrize(
    ("steps", "X"),
    [
        ([CountVectorizer(binary=True, ngram_range=(1, 2), stop_words=["the"])], TEXTS),
        ([CountVectorizer(dtype=np.uint8), TfidfTransformer()], TEXTS),
        ([TfidfVectorizer(min_df=2)], TEXTS),
        ([SimpleImputer(strategy="most_frequent"), Binarizer()], HOLES),
        ([OneHotEncoder(handle_unknown="ignore", sparse_output=False)], WORDS),
        ([OrdinalEncoder(), StandardScaler()], WORDS),
        (["passthrough", VarianceThreshold(0.01), Binarizer()], NUMBERS),
        ([ExchangeableImputer(ExchangeableMixture(2, random_state=0))], HOLES),
    ],
)
def test_pipelines_come_back(steps, X, tmp_path):
    pipe = make_pipeline(*steps, ExchangeableClassifier()).fit(X, KIND)
    save(pipe, tmp_path / "p.exch")
    again = load(tmp_path / "p.exch")
    assert [name for name, _ in again.steps] == [name for name, _ in pipe.steps]
    np.testing.assert_array_equal(again.predict_proba(X), pipe.predict_proba(X))
    names, known = again[:-1], pipe[:-1]
    assert repr(again) == repr(pipe)
    if hasattr(known, "get_feature_names_out") and not isinstance(steps[0], str):
        assert names.get_feature_names_out().tolist() == known.get_feature_names_out().tolist()


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (FunctionTransformer(), "step 'first' (FunctionTransformer) of the pipeline cannot"),
        (ColumnTransformer([("a", "passthrough", [0])]), "step 'first' (ColumnTransformer)"),
        (CountVectorizer(tokenizer=str.split, token_pattern=None), "tokenizer is <method 'split'"),
        (CountVectorizer(token_pattern=r"(\w+\s?)+"), "token_pattern='(\\\\w+\\\\s?)+'"),
        (SimpleImputer(add_indicator=True), "indicator_ is MissingIndicator"),
    ],
)
def test_what_cannot_be_saved_is_named(step, message, tmp_path):
    X = HOLES if not isinstance(step, CountVectorizer) else TEXTS
    pipe = Pipeline([("first", step), ("model", ExchangeableClassifier())]).fit(X, KIND)
    with pytest.raises(TypeError, match=re.escape(message)):
        save(pipe, tmp_path / "p.exch")
    assert not list(tmp_path.iterdir())


def test_a_cache_is_not_saved(tmp_path):
    pipe = Pipeline([("model", ExchangeableClassifier())], memory=str(tmp_path)).fit(HOLES, KIND)
    with pytest.raises(TypeError, match="memory"):
        save(pipe, tmp_path / "p.exch")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda steps: steps[0][1].update({"class": "FunctionTransformer"}), "not a step"),
        (lambda steps: steps[0][1]["attributes"].update({"transform": 1}), "'transform'"),
        (lambda steps: steps[0][1]["parameters"].update({"func": "os.system"}), "'func'"),
        (lambda steps: steps[0][1]["parameters"].update({"token_pattern": "(a+)+"}), "for ever"),
        (
            lambda steps: steps[0][1]["parameters"].update({"dtype": {"dtype": "type str"}}),
            "not a type of numbers",
        ),
        (
            lambda steps: steps[0][1]["attributes"].update(
                {"vocabulary_": {"mapping": [["a", 5]]}}
            ),
            "numbered",
        ),
        (
            lambda steps: steps[0][1]["attributes"].update(
                {"vocabulary_": {"mapping": [["a", 0], ["b", "1"]]}}
            ),
            "numbered",
        ),
        (
            lambda steps: steps[1][1].update({"class": {"array": "x"}}),
            "not a step|not an estimator",
        ),
        (lambda steps: steps.append(steps[0]), "same name"),
        (lambda steps: steps[1].__setitem__(1, {"class": "Pipeline", "steps": []}), "within"),
    ],
)
def test_changed_files_are_refused(change, message, tmp_path):
    pipe = make_pipeline(CountVectorizer(binary=True), ExchangeableClassifier()).fit(TEXTS, KIND)
    save(pipe, tmp_path / "p.exch")
    with zipfile.ZipFile(tmp_path / "p.exch") as file:
        members = {name: file.read(name) for name in file.namelist()}
    header = json.loads(members["header.json"])
    change(header["estimator"]["steps"])
    members["header.json"] = json.dumps(header).encode()
    with zipfile.ZipFile(Path(tmp_path, "q.exch"), "w") as file:
        for name, data in members.items():
            file.writestr(name, data)
    with pytest.raises(ModelFileError, match=message):
        load(tmp_path / "q.exch")
