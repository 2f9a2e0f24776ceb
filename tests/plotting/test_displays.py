"""The pictures show the model's own numbers."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")
import matplotlib.pyplot as plt  # noqa: E402

from exchangeable import (  # noqa: E402
    EVM,
    Count,
    ExchangeableClassifier,
    ExchangeableMixture,
    RaschModel,
)
from exchangeable.plotting import (  # noqa: E402
    BlockMapDisplay,
    ContributionsDisplay,
    CountDistributionDisplay,
    EMHistoryDisplay,
    ExchangeabilityDisplay,
    ItemCurvesDisplay,
)

RNG = np.random.default_rng(0)
KIND = RNG.integers(0, 3, size=300)
X = (RNG.random((300, 10)) < np.where(KIND[:, None] == np.arange(10) % 3, 0.7, 0.2)).astype(int)


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def classifier():
    return ExchangeableClassifier().fit(X, KIND)


@pytest.fixture(scope="module")
def mixture():
    return ExchangeableMixture(3, n_init=3, random_state=0, tol=1e-2).fit(X)


def test_block_map(classifier):
    display = BlockMapDisplay.from_estimator(classifier)
    assert len(display.ax_) == 3
    for y, (means, labels) in enumerate(zip(display.means, display.labels, strict=True)):
        for block, q in zip(
            classifier.partitions_[y], classifier.count_probabilities_[y], strict=True
        ):
            mean = q @ np.arange(q.size) / block.size
            np.testing.assert_allclose(means[block], mean, rtol=1e-9)
            assert len(set(labels[block])) == 1
    axes = plt.subplots(1)[1]
    assert BlockMapDisplay.from_estimator(classifier, targets=[2], ax=axes).ax_[0] is axes
    with pytest.raises(ValueError, match="target=9 is unknown"):
        BlockMapDisplay.from_estimator(classifier, targets=[9])
    with pytest.raises(ValueError, match="ax has 1 axes for 3 classes"):
        display.plot(axes)


def test_count_distribution(classifier):
    rows = X[KIND == 1]
    display = CountDistributionDisplay.from_estimator(classifier, target=1, X=rows)
    block = display.variables
    seen = np.bincount(rows[:, block].sum(axis=1), minlength=block.size + 1) / len(rows)
    np.testing.assert_allclose(display.seen, seen)
    counts = np.arange(block.size + 1)
    assert display.probabilities @ counts == pytest.approx(display.binomial @ counts)
    with pytest.raises(ValueError, match="block=99"):
        CountDistributionDisplay.from_estimator(classifier, block=99)


def test_em_history(mixture, classifier):
    display = EMHistoryDisplay.from_estimator(mixture)
    drawn = [line.get_ydata().tolist() for line in display.ax_.lines]
    assert drawn == mixture.history_
    with pytest.raises(ValueError, match="not fitted by EM"):
        EMHistoryDisplay.from_estimator(classifier)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"family": "urns"},
        {"blocks": "independent"},
        {"family": "urns", "blocks": [range(5), range(5, 10)]},
    ],
)
def test_contributions_add_up(options):
    model = ExchangeableClassifier(**options).fit(X, KIND)
    joint = model.predict_joint_log_proba(X)
    for i in range(20):
        display = ContributionsDisplay.from_estimator(model, X[i], target=2, against=0)
        assert display.log_odds == pytest.approx(joint[i, 2] - joint[i, 0], rel=1e-10, abs=1e-10)
        assert (display.variables == np.flatnonzero(X[i])).all()
        plt.close("all")
    display = ContributionsDisplay.from_estimator(model, X[0], top=1)
    ranked = np.sort(joint[0])
    assert display.log_odds == pytest.approx(ranked[-1] - ranked[-2])
    assert len(display.ax_.patches) == 5


def test_contributions_of_naive_bayes_are_its_log_odds():
    model = ExchangeableClassifier(blocks="independent").fit(X, KIND)
    p = np.array([[q[1] for q in blocks] for blocks in model.count_probabilities_])
    logit = np.log(p) - np.log1p(-p)
    display = ContributionsDisplay.from_estimator(model, X[0], target=1, against=0)
    np.testing.assert_allclose(display.shares, (logit[1] - logit[0])[X[0] == 1], rtol=1e-9)


def test_contributions_take_any_row_and_refuse_others(classifier):
    frame = pd.DataFrame(X, columns=[f"${j}$" for j in range(10)])
    model = ExchangeableClassifier().fit(frame, KIND)
    named = ContributionsDisplay.from_estimator(model, frame.iloc[[0]])
    named.figure_.canvas.draw()
    sparse = ContributionsDisplay.from_estimator(classifier, sp.csr_array(X[:1]))
    assert named.log_odds == sparse.log_odds
    with pytest.raises(ValueError, match="single row without holes"):
        ContributionsDisplay.from_estimator(classifier, X[:2])
    with pytest.raises(ValueError, match="single row without holes"):
        ContributionsDisplay.from_estimator(classifier, np.full(10, np.nan))
    with pytest.raises(ValueError, match="expected two classes"):
        ContributionsDisplay.from_estimator(classifier, X[0], target=1, against=1)
    with pytest.raises(ValueError, match="a sum over the variables that are on"):
        ContributionsDisplay.from_estimator(ExchangeableClassifier("tree").fit(X, KIND), X[0])
    excluding = ExchangeableClassifier(blocks="full", alpha=0.0).fit([[0, 0], [1, 1]], [0, 1])
    with pytest.raises(ValueError, match="probability 0; fit with alpha > 0"):
        ContributionsDisplay.from_estimator(excluding, [0, 1])
    with pytest.raises(TypeError, match="got EVM"):
        ContributionsDisplay.from_estimator(EVM(Count(10)).fit(X), X[0])


def test_exchangeability():
    display = ExchangeabilityDisplay.from_data(X, blocks=[range(5), range(5, 10)])
    drawn = [line.get_ydata() for line in display.ax_.lines[:3]]
    for name, found in zip(("means", "variances", "covariances"), drawn, strict=True):
        expected = [max(getattr(test, f"p_{name}"), 1e-12) for test in display.report.tests]
        assert found.tolist() == expected


def test_notebooks_show_the_essentials(classifier, mixture):
    assert "10 variables, 3 classes" in classifier._repr_html_()
    assert "log-likelihood" in mixture._repr_html_()
    named = pd.DataFrame(X, columns=[f"<i>{j}" for j in range(10)])
    text = ExchangeableClassifier().fit(named, KIND)._repr_mimebundle_()["text/html"]
    assert "<i>" not in text
    assert "&lt;i&gt;" in text
    assert ExchangeableClassifier()._repr_html_() == "<pre>ExchangeableClassifier()</pre>"


@pytest.mark.parametrize("k", [1, 2])
def test_item_curves(k):
    chance = 1 / (1 + np.exp(np.where(RNG.random((900, 1)) < 0.5, [0, 1, 2, 3], [3, 2, 1, 0])))
    items = RNG.random((900, 4)) < chance ** RNG.random((900, 1))
    frame = pd.DataFrame(1.0 * items, columns=["a", "b", "$c", "d"])
    model = RaschModel(k, n_init=1, tol=1e-3, random_state=0).fit(frame)
    display = ItemCurvesDisplay.from_estimator(model, component=k - 1, abilities=[-1.0, 0.0, 2.0])
    left, right = display.ax_
    curves = model.characteristic_curves([-1.0, 0.0, 2.0], k - 1)
    drawn = {
        line.get_label(): line.get_ydata()
        for line in left.get_lines()
        if line.get_label()[0] != "_"
    }
    assert set(drawn) == {"a", "b", r"\$c", "d"}
    np.testing.assert_allclose(drawn["b"], curves[:, 1])
    whole = next(line for line in right.get_lines() if line.get_label() == "test")
    np.testing.assert_allclose(whole.get_ydata(), display.information.sum(axis=1))
    assert left.get_title().startswith("class 1") == (k == 2)
    with pytest.raises(TypeError, match="expected a fitted RaschModel"):
        ItemCurvesDisplay.from_estimator("model")
