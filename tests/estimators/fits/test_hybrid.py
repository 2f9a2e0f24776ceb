"""Training for predictions: exact like every other model, and as scikit-learn has it."""

import io
import signal
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import log_softmax, logsumexp
from sklearn.linear_model import LogisticRegression

from enumeration import agreeing, all_states
from exchangeable import ExchangeableClassifier, Hybrid, load, save
from exchangeable.fitting import progress
from exchangeable.fitting.hybrid import components
from exchangeable.fitting.hybrid.candidates import Candidates
from exchangeable.fitting.hybrid.design import Design
from exchangeable.plotting import ContributionsDisplay
from exchangeable.report import write_report
from exchangeable.runtime.interrupts import InterruptedFitWarning

N = 8


def made_rows(n_rows=150, n_classes=3, seed=0):
    """Rows whose classes differ in some variables, and in how many are on."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_rows) % n_classes
    chances = np.clip(
        rng.uniform(0.1, 0.6, (n_classes, N)) + 0.15 * np.arange(n_classes)[:, None], 0, 0.9
    )
    return (rng.random((n_rows, N)) < chances[y]).astype(np.int64), y


def trained(X, y, sample_weight=None, **options):
    """A classifier that is trained for its predictions, to the last digit."""
    settings = {"training": "hybrid", "tol": 1e-9, "n_jobs": 1} | options
    return ExchangeableClassifier(**settings).fit(X, y, sample_weight)


@pytest.mark.parametrize(
    ("family", "n_components"),
    [("blocks", 1), ("urns", 1), ("tree", 1), ("weighted tree", 1), ("blocks", 3)],
)
def test_probabilities_are_exact(family, n_components):
    X, y = made_rows()
    training = Hybrid(n_components=n_components)
    if n_components == 1:  # the family's own score is there, however little it helps
        training = Hybrid(scores=["family"], scales=[0.7], penalty=2.0)
    model = trained(X, y, family=family, training=training)
    states = all_states(N)
    joint = model.predict_joint_log_proba(states)
    assert logsumexp(joint) == pytest.approx(0.0, abs=1e-8)
    np.testing.assert_allclose(model.score_samples(states), logsumexp(joint, axis=1), atol=1e-9)
    rng = np.random.default_rng(0)
    holed = np.where(rng.random((30, N)) < 0.5, np.nan, rng.integers(0, 2, (30, N)))
    holed[0] = np.nan
    found, ones = model.predict_joint_log_proba(holed), model.marginals(holed)
    for row, log_p, chances in zip(holed, found, ones, strict=True):
        agree = agreeing(states, row)
        np.testing.assert_allclose(log_p, logsumexp(joint[agree], axis=0), atol=1e-8)
        share = np.exp(logsumexp(joint[agree], axis=1) - logsumexp(joint[agree]))
        np.testing.assert_allclose(chances, share @ states[agree], atol=1e-8)
    np.testing.assert_allclose(model.predict_log_proba(holed)[0], model.class_log_prior_)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_twelve_variables_against_enumeration(n_classes):
    """P(y | x) is the softmax of the scores; with holes it is the normalised sum over states."""
    rng = np.random.default_rng(0)
    y = np.arange(200) % n_classes
    X = (rng.random((200, 12)) < rng.uniform(0.1, 0.9, (n_classes, 12))[y]).astype(int)
    model = trained(X, y)
    states, scores = all_states(12), model._model.log_linear()
    expected = log_softmax(model.class_log_prior_ + scores.base + states @ scores.slope, axis=1)
    np.testing.assert_allclose(model.predict_log_proba(states), expected, atol=1e-9)
    joint = model.predict_joint_log_proba(states)
    assert logsumexp(joint) == pytest.approx(0.0, abs=1e-9)
    holed = np.where(rng.random((40, 12)) < rng.random((40, 1)), np.nan, states[:40])
    for row, found in zip(holed, model.predict_log_proba(holed), strict=True):
        known = logsumexp(joint[agreeing(states, row)], axis=0)
        np.testing.assert_allclose(found, log_softmax(known), atol=1e-9)


@pytest.mark.parametrize("family", ["blocks", "urns", "tree", "weighted tree"])
def test_the_family_takes_part_in_the_scores(family):
    X, y = made_rows()
    settings = Hybrid(scores=["family"], scales=[0.5], penalty=4.0)
    model = trained(X, y, family=family, training=settings)
    assert model.scales_ == {"family": 0.5}
    kinds = {"blocks": "urns", "urns": "urns", "tree": "trees", "weighted tree": "trees"}
    assert model._model.kind == kinds[family]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0}])
def test_discriminative_training_is_logistic_regression(n_classes, class_weight):
    X, y = made_rows(n_classes=n_classes)
    y = np.where(np.arange(y.size) < 40, 0, y)
    settings = Hybrid(scores=(), penalty=0.7)
    model = trained(X, y, training=settings, class_weight=class_weight)
    # Of two classes LogisticRegression penalises the difference of the weights.
    C = 1 / 0.7 * (2 if n_classes == 2 else 1)
    peer = LogisticRegression(C=C, tol=1e-10, max_iter=10_000, class_weight=class_weight).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_from_logistic_regression(n_classes):
    X, y = made_rows(n_classes=n_classes)
    labels = np.array(["a", "b", "c"])[y]
    peer = LogisticRegression(C=100.0, max_iter=1000).fit(X, labels)
    model = ExchangeableClassifier.from_logistic_regression(peer)
    states = all_states(N)
    np.testing.assert_allclose(model.predict_proba(states), peer.predict_proba(states), atol=1e-12)
    assert (model.predict(X) == peer.predict(X)).all()
    assert logsumexp(model.predict_joint_log_proba(states)) == pytest.approx(0.0, abs=1e-9)
    with pytest.raises(TypeError, match="no coef_"):
        ExchangeableClassifier.from_logistic_regression(LogisticRegression())


def test_weights_are_repeated_rows():
    X, y = made_rows(60)
    times = np.random.default_rng(1).integers(0, 4, len(y))
    once = trained(X, y, sample_weight=times)
    repeated = trained(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(
        once.predict_joint_log_proba(X), repeated.predict_joint_log_proba(X), atol=1e-7
    )
    np.testing.assert_array_equal(once.class_count_, repeated.class_count_)


@pytest.mark.parametrize("training", ["hybrid", Hybrid(n_components=2)])
def test_threads_do_not_change_a_bit(training):
    X, y = made_rows(300)
    one, many = (
        ExchangeableClassifier(training=training, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 3)
    )
    assert one.predict_joint_log_proba(X).tobytes() == many.predict_joint_log_proba(X).tobytes()


def test_counting_needs_the_family_and_gets_it():
    X = np.random.default_rng(0).integers(0, 2, size=(600, 10))
    y = X.sum(axis=1) % 2
    model = ExchangeableClassifier(training="hybrid").fit(X[:400], y[:400])
    assert model.scales_["family"] > 0
    assert model.score(X[400:], y[400:]) == 1.0
    linear = ExchangeableClassifier(training="discriminative").fit(X[:400], y[:400])
    assert linear.score(X[400:], y[400:]) < 0.7


def test_components_learn_what_is_not_linear():
    rng = np.random.default_rng(0)
    corner = rng.integers(0, 2, (800, 2))
    X = (rng.random((800, 2, 6)) < np.where(corner, 0.9, 0.1)[:, :, None]).reshape(800, 12)
    y = corner[:, 0] ^ corner[:, 1]
    model = ExchangeableClassifier(training=Hybrid(n_components=2)).fit(X[:500], y[:500])
    assert model.score(X[500:], y[500:]) > 0.9
    holed = np.where(rng.random((300, 12)) < 0.5, np.nan, X[500:])
    assert model.score(holed, y[500:]) > 0.75
    rows, labels = model.sample(2000, random_state=0)
    assert (model.predict(rows) == labels).mean() > 0.8
    filled = model.impute(holed)
    assert not np.isnan(filled).any()
    assert (filled == X[500:])[np.isnan(holed)].mean() > 0.7


def test_separable_classes_have_finite_weights():
    X = np.repeat([[1, 0, 0], [0, 1, 0]], 30, axis=0)
    y = np.repeat([0, 1], 30)
    for training in ("hybrid", "discriminative"):
        model = ExchangeableClassifier(training=training).fit(X, y)
        assert model.score(X, y) == 1.0
        assert np.isfinite(model._model.log_linear().slope).all()


def test_constant_columns_and_a_class_of_one_row():
    X, y = made_rows(60)
    X = np.column_stack([X, np.ones(60, dtype=int), np.zeros(60, dtype=int)])
    y = y.copy()
    y[0] = 9
    model = ExchangeableClassifier(training="hybrid").fit(X, y)
    assert model.classes_.tolist() == [0, 1, 2, 9]
    assert np.isfinite(model.predict_log_proba(X)).all()
    chances = model.marginals()
    assert chances[-2] > 0.95
    assert chances[-1] < 0.05


def test_one_class_is_a_density():
    X, _ = made_rows(200)
    model = ExchangeableClassifier(training="hybrid").fit(X, np.full(200, "only"))
    assert (model.predict(X) == "only").all()
    np.testing.assert_allclose(model.marginals(), (X.sum(axis=0) + 0.5) / 201, atol=1e-3)


def test_shared_terms_fit_the_rows():
    X, y = made_rows(600)
    model = ExchangeableClassifier(training="hybrid").fit(X, y)
    np.testing.assert_allclose(model.marginals(), X.mean(axis=0), atol=0.05)
    alone = ExchangeableClassifier.from_logistic_regression(LogisticRegression().fit(X, y))
    assert model.score_samples(X).mean() > alone.score_samples(X).mean()


def test_warm_start_goes_on_from_the_last_fit():
    X, y = made_rows(300)
    settings = Hybrid(scores=(), penalty=1.0, warm_start=True)
    model = ExchangeableClassifier(training=settings, tol=1e-6).fit(X, y)
    first, predicted = model.n_iter_, model.predict_proba(X)
    model.fit(X, y)
    assert model.n_iter_ < first
    np.testing.assert_allclose(model.predict_proba(X), predicted, atol=1e-4)


def test_an_interrupt_keeps_the_best_so_far(monkeypatch):
    X, y = made_rows(300)
    plain, calls = Design.settle, []

    def settle(self, scores, n_jobs=None):
        calls.append(1)
        if len(calls) == 5:
            signal.raise_signal(signal.SIGINT)
        return plain(self, scores, n_jobs)

    monkeypatch.setattr(Design, "settle", settle)
    monkeypatch.setattr(signal, "getsignal", lambda number: signal.default_int_handler)
    with pytest.warns(InterruptedFitWarning):
        model = ExchangeableClassifier(training="discriminative", n_jobs=1).fit(X, y)
    assert not model.converged_
    assert model.score(X, y) > 0.4


def test_an_interrupt_begins_nothing_that_can_be_left_out(monkeypatch):
    X, y = made_rows(300)
    plain, calls, begun = Design.settle, [], []

    def settle(self, scores, n_jobs=None):
        calls.append(1)
        if len(calls) == 5:
            signal.raise_signal(signal.SIGINT)
        return plain(self, scores, n_jobs)

    monkeypatch.setattr(Design, "settle", settle)
    monkeypatch.setattr(signal, "getsignal", lambda number: signal.default_int_handler)
    for name in ("without_fold", "held_scores"):
        monkeypatch.setattr(Candidates, name, lambda *arguments, name=name: begun.append(name))
    with pytest.warns(InterruptedFitWarning):
        model = ExchangeableClassifier(training="hybrid", n_jobs=1).fit(X, y)
    assert (len(calls), begun) == (5, [])
    assert np.isfinite(model.predict_log_proba(X)).all()
    np.testing.assert_allclose(np.exp(model.score_samples(all_states(X.shape[1]))).sum(), 1.0)


def test_an_interrupt_of_training_by_gradient_keeps_the_best_epoch(monkeypatch):
    X, y = made_rows(300)
    plain, epochs = components._Training.epoch, []

    def epoch(self):
        epochs.append(1)
        if len(epochs) == 2:
            signal.raise_signal(signal.SIGINT)
        plain(self)

    monkeypatch.setattr(components._Training, "epoch", epoch)
    monkeypatch.setattr(signal, "getsignal", lambda number: signal.default_int_handler)
    with pytest.warns(InterruptedFitWarning):
        model = ExchangeableClassifier(training=Hybrid(n_components=2), n_jobs=1).fit(X, y)
    assert (model.n_iter_, model.converged_) == (2, False)
    assert np.isfinite(model.predict_log_proba(X)).all()


def test_a_terminal_is_told_how_many_fits_are_done(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    shown = Terminal()
    monkeypatch.setattr("sys.stderr", shown)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    X, y = made_rows()
    ExchangeableClassifier(training="hybrid", n_jobs=1).fit(X, y)
    assert "conditional fits to all rows" in shown.getvalue()
    assert "fits of the cross-validation" in shown.getvalue()


def test_a_hundred_thousand_words():
    rng = np.random.default_rng(0)
    n_words, y = 100_000, np.arange(60) % 3
    X = sp.random_array((60, n_words), density=2e-3, rng=rng, format="csr")
    X.data[:] = 1.0
    X = sp.csr_array(X + sp.csr_array(np.eye(3)[y] @ np.eye(3, n_words)) > 0).astype(float)
    model = ExchangeableClassifier(training="hybrid").fit(X, y)
    assert model.score(X, y) == 1.0
    holed = X[:9].toarray()
    holed[:, 1000:] = np.nan
    found = model.predict_proba(holed)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert (found.argmax(axis=1) == y[:9]).all()
    assert np.isfinite(model.score_samples(X)).all()


def test_files_pages_and_queries_work(tmp_path: Path):
    X, y = made_rows()
    for training in ("hybrid", Hybrid(n_components=2), Hybrid(penalty=2.0, warm_start=True)):
        model = ExchangeableClassifier(training=training).fit(X, y)
        save(model, tmp_path / "model.exch")
        again = load(tmp_path / "model.exch")
        np.testing.assert_array_equal(
            again.predict_joint_log_proba(X), model.predict_joint_log_proba(X)
        )
        assert again.scales_ == model.scales_
        assert repr(again.training) == repr(model.training)
        assert model.information_gain({0: 1}).shape == (N,)
        assert model.conditional([1, 2], {0: 1}).sum() == pytest.approx(1.0)
        best = model.most_probable({0: 1})
        assert best.X[0] == 1
        write_report(model, tmp_path / "page.html")
        assert (tmp_path / "page.html").stat().st_size > 1000


def test_profiles_and_contributions_are_those_of_the_classes():
    X, y = made_rows()
    model = ExchangeableClassifier(training="hybrid").fit(X, y)
    found = model.profiles()
    np.testing.assert_allclose(found.sizes, np.exp(model.class_log_prior_))
    np.testing.assert_allclose(found.values @ found.sizes, model.marginals(), atol=1e-9)
    display = ContributionsDisplay.from_estimator(model, X[0], target=0, against=1)
    log_p = model.predict_log_proba(X[:1])[0]
    assert display.log_odds == pytest.approx(log_p[0] - log_p[1])


def test_settings_can_be_searched():
    model = ExchangeableClassifier(training="hybrid").set_params(training__penalty=3.0)
    assert model.training.penalty == 3.0
    X, y = made_rows()
    assert model.fit(X, y).penalties_.tolist() == [3.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"training": "fast"}, "training='fast' is unknown"),
        ({"training": Hybrid(penalty=0.0)}, "penalty must be positive"),
        ({"training": Hybrid(penalty=[1.0, -2.0])}, "penalty must be positive"),
        ({"training": Hybrid(scores=["bayes"])}, "holds 'bayes'"),
        ({"training": Hybrid(scores=["family"] * 2)}, "twice"),
        ({"training": Hybrid(scales=[1.0])}, "for each of the 3 scores"),
        ({"training": Hybrid(n_folds=1)}, "n_folds"),
        ({"training": Hybrid(n_components=0)}, "n_components"),
        ({"training": Hybrid(n_components=2, penalty=1.0)}, "penalty does not go"),
        ({"training": Hybrid(n_components=2, warm_start=True)}, "warm_start does not go"),
        ({"training": Hybrid(n_components=1000)}, "more than the"),
        ({"class_weight": "heavy"}, "class_weight='heavy'"),
        ({"training": "hybrid", "class_weight": {7: 1.0}}, "names 7"),
        ({"training": "hybrid", "class_weight": {0: -1.0}}, "positive"),
        ({"training": "hybrid", "semi_supervised": True}, "every row needs a label"),
        ({"training": "hybrid", "class_prior": "uniform"}, "class_weight"),
        ({"training": "hybrid", "class_prior": [0.2, 0.3, 0.5]}, "class_weight"),
        ({"training": "hybrid", "alpha": 0.0}, "alpha must be > 0"),
        ({"training": "hybrid", "family": "count tree"}, "has only blocks of equal ones"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    X, y = made_rows()
    with pytest.raises(ValueError, match=message):
        ExchangeableClassifier(**options).fit(X, y)


def test_scores_must_be_a_list():
    X, y = made_rows()
    with pytest.raises(TypeError, match="list of names"):
        ExchangeableClassifier(training=Hybrid(scores="family")).fit(X, y)


def test_rows_in_chunks_are_refused():
    X, y = made_rows()
    model = ExchangeableClassifier(training="hybrid")
    with pytest.raises(ValueError, match="needs X in memory"):
        model.fit([X, X], np.concatenate([y, y]))
    assert not hasattr(model, "partial_fit")
    assert hasattr(ExchangeableClassifier(), "partial_fit")


def test_training_rows_may_have_holes_and_be_all_missing():
    X, y = made_rows(600)
    holed = np.where(np.random.default_rng(2).random(X.shape) < 0.1, np.nan, X)
    holed[:3] = np.nan
    model = ExchangeableClassifier(training="hybrid").fit(holed, y)
    whole = ExchangeableClassifier(training="hybrid").fit(X, y)
    assert abs(model.score(X, y) - whole.score(X, y)) < 0.05
    np.testing.assert_allclose(model.marginals(), np.nanmean(holed, axis=0), atol=0.05)


def test_components_that_em_leaves_empty_are_trained_all_the_same():
    """Rows of many variables make posteriors so sharp that EM empties most components."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 60)
    kinds = rng.random((2, 2, 600)) < 0.5
    X = kinds[y, rng.integers(0, 2, y.size)] ^ (rng.random((y.size, 600)) < 0.02)
    model = ExchangeableClassifier(training=Hybrid(n_components=10)).fit(X, y)
    assert np.isfinite(model._model.log_shares).all()
    assert np.isfinite(model.loss_)
    assert model.score(X, y) == 1.0
