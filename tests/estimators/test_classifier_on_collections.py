"""The paper's figures on the real collections, where they are present."""

import numpy as np
import pytest
from sklearn.naive_bayes import BernoulliNB

from exchangeable import ExchangeableClassifier
from exchangeable.datasets import fetch_classification, make_boolean
from missing_data import skip_without_data

WELCH = [
    ("reuters8", "as_published", 0.9114, 16.9, 9.1),
    ("webkb4", "as_published", 0.8596, 19.25, 3.6),
    ("20newsgroups", "standard", 0.6235, 19.1, 1.5),
    ("mnist", "standard", 0.8548, 72.3, 3.1),
]


def load(name, **options):
    try:
        return fetch_classification(name, download_if_missing=False, **options)
    except OSError:
        skip_without_data(name)


@pytest.mark.parametrize(("name", "variant", "accuracy", "blocks", "spread"), WELCH)
def test_the_papers_sweep(name, variant, accuracy, blocks, spread):
    data = load(name, variant=variant)
    model = ExchangeableClassifier(blocks="welch").fit(data.X_train, data.y_train)
    assert model.score(data.X_test, data.y_test) == pytest.approx(accuracy, abs=0.0006)
    assert model.n_blocks_.mean() == pytest.approx(blocks, abs=0.06)
    assert model.n_blocks_.std() == pytest.approx(spread, abs=0.06)


def test_the_papers_sweep_on_polarity():
    scores, blocks = [], []
    for fold in range(10):
        data = load("polarity2", fold=fold)
        model = ExchangeableClassifier(blocks="welch").fit(data.X_train, data.y_train)
        scores.append(model.score(data.X_test, data.y_test))
        blocks.extend(model.n_blocks_)
    assert np.mean(scores) == pytest.approx(0.826, abs=0.0006)
    assert np.mean(blocks) == pytest.approx(34.1, abs=0.06)


@pytest.mark.parametrize("name", ["reuters8", "mnist"])
def test_independent_is_bernoulli_nb_at_scale(name):
    data = load(name)
    ours = ExchangeableClassifier(blocks="independent").fit(data.X_train, data.y_train)
    X = data.X_train.astype(float)  # bytes would make the peer slow
    theirs = BernoulliNB(alpha=0.1).fit(X, data.y_train)
    np.testing.assert_allclose(
        ours.predict_log_proba(data.X_test), theirs.predict_log_proba(data.X_test), atol=1e-9
    )


@pytest.mark.parametrize(
    ("name", "at_least"), [("reuters8", 0.94), ("webkb4", 0.857), ("20newsgroups", 0.64)]
)
def test_evidence_merging_is_better_than_the_sweep(name, at_least):
    data = load(name)
    assert (
        ExchangeableClassifier().fit(data.X_train, data.y_train).score(data.X_test, data.y_test)
        > at_least
    )


@pytest.mark.parametrize("function", ["parity", "counting", "threshold", "exact"])
def test_symmetric_functions(function):
    X, y = make_boolean(function, 30_000, 1_000, random_state=1)
    model = ExchangeableClassifier().fit(X[:20_000], y[:20_000])
    assert model.score(X[20_000:], y[20_000:]) > 0.9995
    assert model.n_blocks_.tolist() == [1, 1]


@pytest.mark.parametrize("function", ["conjunction", "disjunction"])
@pytest.mark.parametrize(("ones", "at_least"), [("fair", 1.0), ("uniform", 0.99)])
def test_conjunctions_and_disjunctions(function, ones, at_least):
    """Theorem 4.4: exact for the distribution of its proof, fair bits, and nearly so for ours."""
    X, y = make_boolean(function, 30_000, 1_000, random_state=1, ones=ones)
    model = ExchangeableClassifier().fit(X[:20_000], y[:20_000])
    assert model.score(X[20_000:], y[20_000:]) >= at_least
