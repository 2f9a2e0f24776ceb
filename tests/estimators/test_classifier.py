"""ExchangeableClassifier: exact probabilities, and what a user of BernoulliNB expects of it."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import BernoulliNB

from enumeration import all_states
from exchangeable import EVM, Blocks, Count, ExchangeableClassifier

BLOCKS = ("evidence", "welch", "independent", "full", [[0, 3, 6], [1, 2], [4], [5]])


def toy(n_rows=200, n_variables=7, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n_rows)
    rates = rng.random((n_classes, n_variables))
    return (rng.random((n_rows, n_variables)) < rates[y]).astype(np.uint8), y


@pytest.mark.parametrize("blocks", BLOCKS, ids=str)
@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_definition_4_1_probabilities_sum_to_one(blocks, alpha):
    X, y = toy()
    model = ExchangeableClassifier(blocks=blocks, alpha=alpha).fit(X, y)
    joint = np.exp(model.predict_joint_log_proba(all_states(7)))
    np.testing.assert_allclose(joint.sum(axis=0), np.bincount(y) / len(y), rtol=1e-10)
    np.testing.assert_allclose(joint.sum(), 1, rtol=1e-10)


@pytest.mark.parametrize("blocks", BLOCKS, ids=str)
def test_theorem_4_2_each_block_is_a_component_fitted_to_its_class(blocks):
    X, y = toy()
    model = ExchangeableClassifier(blocks=blocks).fit(X, y)
    states = all_states(7)
    joint = model.predict_joint_log_proba(states)
    for c in range(3):
        expected = np.full(len(states), np.log(np.mean(y == c)))
        for block, q in zip(model.partitions_[c], model.count_probabilities_[c], strict=True):
            component = EVM(Count(len(block))).fit(X[y == c][:, block], alpha=0.1)
            np.testing.assert_allclose(q, component.weights_, rtol=1e-10)
            expected += component.log_prob(states[:, block])
        np.testing.assert_allclose(joint[:, c], expected, rtol=1e-10)


@pytest.mark.parametrize("alpha", [1e-3, 0.1, 1.0])
def test_independent_is_bernoulli_naive_bayes(alpha):
    X, y = toy(n_variables=60)
    weight = np.random.default_rng(1).random(len(y))
    ours = ExchangeableClassifier(blocks="independent", alpha=alpha).fit(X, y, weight)
    theirs = BernoulliNB(alpha=alpha).fit(X, y, weight)
    for method in ("predict_joint_log_proba", "predict_log_proba", "predict_proba", "predict"):
        np.testing.assert_allclose(getattr(ours, method)(X), getattr(theirs, method)(X), atol=1e-9)


def test_symmetric_functions_are_learned_exactly():
    """Theorem 4.4 for parity: one block a class, all the rest is noise to naive Bayes."""
    X = np.random.default_rng(0).integers(0, 2, (4000, 12))
    y = X.sum(axis=1) % 2
    model = ExchangeableClassifier().fit(X[:2000], y[:2000])
    assert model.score(X[2000:], y[2000:]) == 1
    assert BernoulliNB().fit(X[:2000], y[:2000]).score(X[2000:], y[2000:]) < 0.6


FORMS = {
    "float": lambda X: X.astype(float),
    "bool": lambda X: X.astype(bool),
    "int": lambda X: X.astype(np.int64),
    "list": lambda X: X.tolist(),
    "csr": sp.csr_matrix,
    "csc": sp.csc_array,
    "counts": lambda X: 3 * X.astype(int),
}


@pytest.mark.filterwarnings("ignore:numbers greater than binarize:UserWarning")
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_form_of_input_gives_the_same(form):
    X, y = toy()
    expected = ExchangeableClassifier().fit(X, y).predict_log_proba(X)
    model = ExchangeableClassifier().fit(form(X), y)
    np.testing.assert_array_equal(model.predict_log_proba(form(X)), expected)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_carry_names(frame):
    X, y = toy()
    names = [f"word{j}" for j in range(7)]
    model = ExchangeableClassifier().fit(frame(dict(zip(names, X.T, strict=True))), y)
    assert list(model.feature_names_in_) == names
    plain = ExchangeableClassifier().fit(X, y)
    np.testing.assert_array_equal(
        model.predict_log_proba(frame(dict(zip(names, X.T, strict=True)))),
        plain.predict_log_proba(X),
    )
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame(dict(zip(names[::-1], X.T, strict=True))))
    blocks = [["word0", "word3"], ["word1", "word2", "word4", "word5", "word6"]]
    named = ExchangeableClassifier(blocks=blocks).fit(frame(dict(zip(names, X.T, strict=True))), y)
    assert [block.tolist() for block in named.partitions_[0]] == [[0, 3], [1, 2, 4, 5, 6]]


@pytest.mark.parametrize(
    "labels",
    [["spam", "ham", "eggs"], [True, False, True], [10, -1, 3], [0.5, 1.5, 2.5]],
    ids=str,
)
def test_labels_of_any_type(labels):
    X, y = toy()
    named = np.array(labels)[y]
    if named.dtype.kind == "f":
        with pytest.raises(ValueError, match="Unknown label type"):
            ExchangeableClassifier().fit(X, named)
        return
    model = ExchangeableClassifier().fit(X, named)
    assert set(model.classes_) == set(labels)
    assert set(model.predict(X)) <= set(labels)


def test_priors_are_those_of_bernoulli_nb():
    X, y = toy()
    for prior in ("uniform", [0.2, 0.3, 0.5], None):
        ours = ExchangeableClassifier(blocks="independent", class_prior=prior).fit(X, y)
        alike = dict(fit_prior=False) if prior == "uniform" else dict(class_prior=prior)
        theirs = BernoulliNB(alpha=0.1, **alike).fit(X, y)
        np.testing.assert_allclose(ours.class_log_prior_, theirs.class_log_prior_)
    with pytest.raises(ValueError, match=r"class_prior has shape \(2,\), expected \(3,\)"):
        ExchangeableClassifier(class_prior=[0.5, 0.5]).fit(X, y)
    with pytest.raises(ValueError, match="add up to 1"):
        ExchangeableClassifier(class_prior=[0.5, 0.5, 0.5]).fit(X, y)


@pytest.mark.parametrize("blocks", BLOCKS, ids=str)
def test_whole_weights_are_repetitions(blocks):
    X, y = toy()
    weight = np.random.default_rng(2).integers(0, 4, len(y))
    weighted = ExchangeableClassifier(blocks=blocks).fit(X, y, sample_weight=weight)
    repeated = ExchangeableClassifier(blocks=blocks).fit(
        np.repeat(X, weight, axis=0), np.repeat(y, weight)
    )
    np.testing.assert_allclose(
        weighted.predict_log_proba(X), repeated.predict_log_proba(X), rtol=1e-9, atol=1e-9
    )


def test_partial_fit_adds_up_to_fit_when_blocks_are_given():
    X, y = toy()
    blocks = BLOCKS[-1]
    whole = ExchangeableClassifier(blocks=blocks).fit(X, y)
    parts = ExchangeableClassifier(blocks=blocks)
    for start in range(0, 200, 50):
        parts.partial_fit(X[start : start + 50], y[start : start + 50], classes=[0, 1, 2])
    np.testing.assert_allclose(parts.predict_log_proba(X), whole.predict_log_proba(X), rtol=1e-12)
    np.testing.assert_array_equal(parts.class_count_, whole.class_count_)


@pytest.mark.parametrize("blocks", BLOCKS, ids=str)
def test_partial_fit_in_one_batch_is_fit(blocks):
    X, y = toy()
    once = ExchangeableClassifier(blocks=blocks).partial_fit(X, y, classes=[0, 1, 2])
    np.testing.assert_allclose(
        once.predict_log_proba(X),
        ExchangeableClassifier(blocks=blocks).fit(X, y).predict_log_proba(X),
    )


def test_partial_fit_learns_a_class_when_it_comes():
    X, y = toy()
    model = ExchangeableClassifier(blocks="welch")
    model.partial_fit(X[y < 2], y[y < 2], classes=[0, 1, 2])
    assert np.isneginf(model.class_log_prior_[2])
    assert not (model.predict(X) == 2).any()
    assert np.isfinite(model.predict_proba(X)).all()
    model.partial_fit(X[y == 2], y[y == 2])
    np.testing.assert_allclose(
        model.predict_log_proba(X),
        ExchangeableClassifier(blocks="welch").fit(X, y).predict_log_proba(X),
        rtol=1e-12,
    )


def test_a_class_not_seen_yet_is_that_of_bernoulli_nb():
    X, y = toy()
    ours = ExchangeableClassifier(blocks="independent", alpha=1.0, class_prior="uniform")
    theirs = BernoulliNB(alpha=1.0, fit_prior=False)
    for model in (ours, theirs):
        model.partial_fit(X[y < 2], y[y < 2], classes=[0, 1, 2])
    np.testing.assert_allclose(ours.predict_log_proba(X), theirs.predict_log_proba(X), atol=1e-9)


def test_partial_fit_refuses_what_does_not_fit():
    X, y = toy()
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        ExchangeableClassifier().partial_fit(X, y)
    model = ExchangeableClassifier()
    for classes, message in (
        ([0, 1], r"y contains \[2\]"),
        ([0, np.nan], "classes holds nan"),
        ([[0, 1, 2]], "classes must be a list of one or more labels"),
        ([], "classes must be a list of one or more labels"),
    ):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(X, y, classes=classes)
    model.partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match=r"y contains \[7\]"):
        model.partial_fit(X[:1], [7])
    with pytest.raises(ValueError, match="not the same as on the first call"):
        model.partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="X has 2 features"):
        model.partial_fit(X[:, :2], y)


@pytest.mark.parametrize("blocks", ["evidence", "welch", "independent"])
def test_unlabelled_rows_help(blocks):
    """Two classes that differ in which half of the variables is on; forty labels, 560 without."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    half = np.arange(20) < 10
    X = (rng.random((600, 20)) < np.where(y[:, None] == half, 0.65, 0.35)).astype(int)
    partly = np.full(600, -1)
    partly[:40] = y[:40]
    few = ExchangeableClassifier(blocks=blocks).fit(X[:40], y[:40])
    model = ExchangeableClassifier(blocks=blocks, semi_supervised=True).fit(X, partly)
    assert model.score(X, y) > max(0.85, few.score(X, y))
    assert (np.diff(model.history_) >= -1e-12).all()
    assert model.classes_.tolist() == [0, 1]
    assert model.n_iter_ == len(model.history_) - 1
    assert model.converged_


@pytest.mark.parametrize("blocks", BLOCKS, ids=str)
def test_semi_supervised_without_unlabelled_rows_is_fit(blocks):
    X, y = toy()
    both = [
        ExchangeableClassifier(blocks=blocks, semi_supervised=semi).fit(X, y).predict_log_proba(X)
        for semi in (False, True)
    ]
    np.testing.assert_allclose(both[0], both[1], rtol=1e-9, atol=1e-12)


def test_what_em_told_does_not_outlive_it():
    X, y = toy()
    model = ExchangeableClassifier(semi_supervised=True).fit(X, np.where(y == y[0], y, -1))
    assert model.log_likelihood_ == model.history_[-1]
    for semi_supervised in (False, True):  # every row has a label, so that EM is not needed
        model.set_params(semi_supervised=semi_supervised).fit(X, y)
        for name in ("log_likelihood_", "history_", "converged_"):
            assert not hasattr(model, name)
        assert model.n_iter_ == 1


def test_one_job_starts_no_threads(monkeypatch):
    X, y = toy(n_rows=20_000)
    expected = ExchangeableClassifier().fit(X, y).predict_proba(X)
    monkeypatch.setattr("exchangeable.runtime.threads.ask", None)
    model = ExchangeableClassifier(n_jobs=1).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), expected)


def test_semi_supervised_needs_one_label():
    with pytest.raises(ValueError, match="all rows are unlabelled"):
        ExchangeableClassifier(semi_supervised=True).fit([[0, 1], [1, 1]], [-1, -1])


def test_semi_supervised_with_rows_that_do_not_count():
    X, y = toy(n_classes=2)
    partly = np.where(np.arange(len(y)) < 100, -1, y)
    with pytest.raises(ValueError, match="sample_weight is zero for every labelled row"):
        ExchangeableClassifier(semi_supervised=True).fit(X, partly, np.where(partly < 0, 1, 0))
    for alpha in (0.0, 0.1):
        model = ExchangeableClassifier(semi_supervised=True, alpha=alpha)
        model.fit(X, partly, sample_weight=np.where(partly == 1, 0, 1))
        assert not np.isnan(model.history_).any()
        assert set(model.predict(X)) == {0}


def test_without_the_option_minus_one_is_a_class_like_any_other():
    model = ExchangeableClassifier().fit([[0, 1], [1, 1]], [-1, 1])
    assert model.classes_.tolist() == [-1, 1]


@pytest.mark.parametrize("blocks", ["evidence", "welch", "independent", "full"])
class TestEdges:
    def fit(self, blocks, X, y, **options):
        return ExchangeableClassifier(blocks=blocks, **options).fit(X, y)

    def test_a_single_class(self, blocks):
        X, _ = toy()
        model = self.fit(blocks, X, np.full(len(X), "only"))
        assert set(model.predict(X)) == {"only"}
        np.testing.assert_allclose(model.predict_proba(X), 1)

    def test_one_row(self, blocks):
        model = self.fit(blocks, [[0, 1, 1]], [3])
        assert model.predict([[1, 0, 0]]).tolist() == [3]

    def test_one_row_a_class(self, blocks):
        model = self.fit(blocks, [[0, 1, 1], [0, 0, 0]], ["a", "b"])
        assert model.predict([[0, 1, 1], [0, 0, 0]]).tolist() == ["a", "b"]

    def test_a_feature_never_on_and_a_constant_one(self, blocks):
        X, y = toy()
        X[:, 0], X[:, 1] = 0, 1
        model = self.fit(blocks, X, y)
        odd = X.copy()
        odd[:, 0], odd[:, 1] = 1, 0
        assert np.isfinite(model.predict_log_proba(odd)).all()

    def test_an_empty_document(self, blocks):
        X, y = toy()
        X[:5] = 0
        model = self.fit(blocks, sp.csr_matrix(X), y)
        assert np.isfinite(model.predict_log_proba(sp.csr_matrix((2, 7)))).all()

    def test_no_smoothing_excludes_without_nan(self, blocks):
        X = np.array([[1, 1], [1, 1], [0, 0], [0, 0]])
        y = [0, 0, 1, 1]
        model = self.fit(blocks, X, y, alpha=0.0)
        assert model.predict(X).tolist() == y
        impossible = model.predict_log_proba([[0, 1]])
        assert np.isneginf(model.predict_joint_log_proba([[0, 1]])).all()
        np.testing.assert_allclose(np.exp(impossible), [[0.5, 0.5]])

    def test_one_variable(self, blocks):
        model = self.fit(blocks, [[0], [0], [1]], [0, 0, 1])
        assert model.predict([[0], [1]]).tolist() == [0, 1]

    def test_seeds_of_threads_do_not_matter(self, blocks):
        X, y = toy(n_rows=500, n_variables=40)
        one = self.fit(blocks, X, y, n_jobs=1).predict_log_proba(X)
        np.testing.assert_array_equal(one, self.fit(blocks, X, y, n_jobs=3).predict_log_proba(X))


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        (np.empty((0, 3)), {}, "0 sample"),
        ([[0, np.inf]], {}, "infinity"),
        ([[0, 2]], dict(binarize=None), r"X\[0, 1\] is 2"),
        ([[0.5, 1]], dict(binarize=None), r"X\[0, 0\] is 0.5"),
        ([["a", "b"]], {}, "dtype='numeric'|could not convert"),
        ([[0, 1]], dict(alpha=-1), "alpha must be finite and at least 0, got -1"),
        ([[0, 1]], dict(blocks="magic"), "blocks='magic' is unknown"),
        ([[0, 1]], dict(blocks=[[0]]), "variable 1 is in 0 blocks"),
        ([[0, 1]], dict(blocks={1: [[0, 1]]}), r"no partition for the classes \[0\]"),
        ([[0, 1]], dict(n_jobs=0), "n_jobs must not be 0"),
        ([[0, 1]], dict(n_jobs="2"), "n_jobs must be an integer, got '2'"),
        ([[0, 1]], dict(n_jobs=-1.0), "n_jobs must be an integer, got -1.0"),
        ([[0, 1]], dict(binarize="a"), "binarize must be a number, got 'a'"),
        ([[0, 1]], dict(binarize=np.nan), "binarize must be a finite number or None, got nan"),
        ([[0, 1]], dict(alpha=1e300), "alpha must be at most"),
        ([[0, 1]], dict(class_prior=["a"]), "class_prior must hold numbers"),
        ([[0, 1]], dict(class_prior="equal"), "class_prior='equal' is unknown; expected None"),
        ([[0, 1]], dict(class_prior=False), "class_prior=False is unknown; expected None"),
        ([[0, 1]], dict(semi_supervised=1), "semi_supervised must be True or False, got 1"),
        ([[0, 1]], dict(max_iter=0), "max_iter must be at least 1, got 0"),
        ([[0, 1]], dict(tol=np.nan), "tol must be finite and at least 0, got nan"),
        ([[0, 1]], dict(tol="a"), "tol must be a number, got 'a'"),
        ([[0, 1]], dict(blocks=iter([[0, 1]])), "blocks is an iterator"),
        ([[0, 1]], dict(blocks=5), "a partition must be a list of blocks of variables, got 5"),
        (
            [[0, 1]],
            dict(blocks=Blocks(significance=2)),
            "significance must lie between 0 and 1, got 2",
        ),
    ],
)
def test_fit_refuses_bad_input(X, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ExchangeableClassifier(**options).fit(X, [0] * len(X))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.array(["a", 1], dtype=object), "int such as 1, str such as .a."),
        ([0.0, np.nan], "y contains NaN"),
        ([0, 1, 1], "inconsistent numbers of samples"),
    ],
)
def test_fit_refuses_bad_labels(labels, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ExchangeableClassifier().fit([[0, 1], [1, 1]], labels)


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    X, y = toy()
    model = ExchangeableClassifier(blocks="magic")
    with pytest.raises(ValueError, match="blocks='magic'"):
        model.fit(X, y)
    for failed in (model.predict, lambda X: model.partitions_):
        with pytest.raises(NotFittedError):
            failed(X)
    model.set_params(blocks="welch").fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="alpha"):
        model.set_params(alpha=-1).fit(X, y + 5)
    np.testing.assert_array_equal(model.predict(X), before)


def test_predict_refuses_bad_input():
    X, y = toy()
    with pytest.raises(NotFittedError):
        ExchangeableClassifier().predict(X)
    model = ExchangeableClassifier(binarize=None).fit(X, y)
    with pytest.raises(ValueError, match="X has 3 features"):
        model.predict(X[:, :3])
    with pytest.raises(ValueError, match=r"X\[0, 0\] is 6"):
        model.predict(X + 5)
    with pytest.raises(ValueError, match=r"sample_weight\[0\] is -1"):
        model.fit(X, y, sample_weight=np.full(len(y), -1.0))
    with pytest.raises(ValueError, match="sample_weight goes up to 1e"):
        model.fit(X, y, sample_weight=np.full(len(y), 1e308))
