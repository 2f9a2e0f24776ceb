"""Data with holes: how they are read, fitted, imputed, and refused where they make no sense."""

from math import comb

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import logsumexp
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import BernoulliNB
from sklearn.pipeline import make_pipeline

from enumeration import all_states
from exchangeable import (
    EVM,
    Count,
    ExchangeableClassifier,
    ExchangeableImputer,
    ExchangeableMixture,
    with_missing,
)

BLOCKS = ("evidence", "welch", "independent", "full", [[0, 1, 2], [3, 4, 5]])


def survey(n_rows=400, n_variables=6, seed=0):
    """Two groups of correlated answers, and which group each row is of."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 2, n_rows)
    rate = np.where(kind == 0, rng.beta(1, 4, n_rows), rng.beta(4, 1, n_rows))
    return (rng.random((n_rows, n_variables)) < rate[:, None]).astype(float), kind


def punched(X, share, seed=0):
    """The same rows with some entries unknown."""
    holes = np.random.default_rng(seed).random(X.shape) < share
    return np.where(holes, np.nan, X)


def forms_of(X):
    """The same rows with holes in every form they may come in."""
    holes = np.isnan(X)
    known = np.where(holes, 0, X)
    yield "masked array", np.ma.MaskedArray(known, holes)
    yield "objects", np.where(holes, None, X)
    frame = pd.DataFrame(known.astype(int)).astype("Int64").mask(holes)
    yield "nullable integers", frame
    yield "nullable truth values", (pd.DataFrame(known) > 0).astype("boolean").mask(holes)
    yield "pandas.NA among objects", frame.astype(object)
    yield "sparse with NaN", sp.csr_matrix(X)
    yield "sparse with a mask", with_missing(sp.csr_array(known), holes)
    yield "sparse with a sparse mask", with_missing(sp.coo_matrix(known), sp.csc_matrix(holes))
    yield "dense with a mask", with_missing(known, holes)
    yield "float32", X.astype(np.float32)


@pytest.mark.filterwarnings("ignore:X has feature names")
def test_all_forms_of_holes_are_read_alike():
    X, y = survey()
    holed = punched(X, 0.4)
    mixture = ExchangeableMixture(2, random_state=0).fit(holed)
    classifier = ExchangeableClassifier().fit(holed, y)
    for name, form in forms_of(holed):
        assert np.allclose(mixture.score_samples(form), mixture.score_samples(holed)), name
        assert np.allclose(classifier.predict_proba(form), classifier.predict_proba(holed)), name
        again = ExchangeableMixture(2, random_state=0).fit(form)
        assert again.log_likelihood_ == pytest.approx(mixture.log_likelihood_, abs=1e-9), name
        filled = mixture.impute(form)
        filled = filled.toarray() if sp.issparse(filled) else filled
        assert np.array_equal(filled, mixture.impute(holed)), name


@pytest.mark.parametrize("blocks", BLOCKS, ids=str)
def test_without_holes_the_fit_is_the_ordinary_one(blocks):
    X, y = survey()
    floats, bytes_ = X.astype(float), X.astype(np.uint8)
    for form in (floats, np.ma.MaskedArray(floats, False), with_missing(floats, np.zeros_like(X))):
        a = ExchangeableMixture(2, blocks=blocks, random_state=0).fit(form)
        b = ExchangeableMixture(2, blocks=blocks, random_state=0).fit(bytes_)
        assert a.history_ == b.history_
        c = ExchangeableClassifier(blocks=blocks).fit(form, y)
        d = ExchangeableClassifier(blocks=blocks).fit(bytes_, y)
        np.testing.assert_array_equal(c.predict_joint_log_proba(X), d.predict_joint_log_proba(X))


@pytest.mark.parametrize("blocks", BLOCKS, ids=str)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_the_likelihood_never_falls(blocks, share):
    X, y = survey()
    X = punched(X, share)
    X[0] = np.nan  # a row of which nothing is known
    X[1:40, 2] = 1.0
    mixture = ExchangeableMixture(3, blocks=blocks, random_state=0, tol=1e-4).fit(X)
    assert (np.diff(mixture.history_[0]) >= -1e-12).all()
    assert mixture.log_likelihood_ == pytest.approx(mixture.score(X), abs=1e-9)
    classifier = ExchangeableClassifier(blocks=blocks, max_iter=200, tol=1e-5).fit(X, y)
    assert (np.diff(classifier.history_) >= -1e-12).all()
    for model in (mixture, classifier):
        assert np.isfinite(model.predict_proba(X)).all()
        assert np.isfinite(model.score_samples(X)).all()


def plain_em_step(X, q, prior, alpha):
    """One EM step of a mixture of single blocks, by listing the states of every row."""
    n = X.shape[1]
    states = all_states(n)
    counts = states.sum(axis=1)
    log_ways = np.log([comb(n, t) for t in counts])
    log_state = np.log(q[:, counts]) - log_ways
    new, totals, likelihood = np.zeros_like(q), np.zeros(len(prior)), 0.0
    for row in X:
        agree = (np.isnan(row) | (states == row)).all(axis=1)
        joint = np.where(agree, log_state + np.log(prior)[:, None], -np.inf)
        likelihood += logsumexp(joint)
        share = np.exp(joint - logsumexp(joint))
        totals += share.sum(axis=1)
        for y in range(len(prior)):
            new[y] += np.bincount(counts, share[y], minlength=n + 1)
    smooth = (new + alpha) / (totals[:, None] + alpha * (n + 1))
    return smooth, totals / totals.sum(), likelihood / len(X)


def test_em_over_hidden_counts_equals_enumeration():
    """The parameters after each step are those that listing every completion gives."""
    X, _ = survey(150, 5)
    X = punched(X, 0.4)
    X = np.vstack([X, X[:30]])
    few = {"blocks": "full", "random_state": 3, "tol": 0.0, "alpha": 0.1}
    with pytest.warns(UserWarning, match="did not converge"):
        model = ExchangeableMixture(2, max_iter=1, **few).fit(X)
    q = np.array([blocks[0] for blocks in model.count_probabilities_])
    prior = model.weights_
    with pytest.warns(UserWarning, match="did not converge"):
        later = ExchangeableMixture(2, max_iter=4, **few).fit(X)
    history = []
    for _ in range(4):
        q, prior, likelihood = plain_em_step(X, q, prior, 0.1)
        history.append(likelihood)
    np.testing.assert_allclose(later.history_[0][1:], history, rtol=1e-9)


def test_a_classifier_of_one_class_is_em_over_hidden_counts():
    X, _ = survey(120, 5)
    X = punched(X, 0.5)
    model = ExchangeableClassifier(blocks="full", tol=0.0, max_iter=3).fit(X, np.zeros(len(X)))
    q = model.count_probabilities_[0][0][None]
    expected = plain_em_step(X, q, np.ones(1), 0.1)[2]
    assert model.log_likelihood_ == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_threads_do_not_change_the_fit(n_jobs):
    X = punched(survey(2000, 30)[0], 0.5)
    one = ExchangeableMixture(4, random_state=0, n_jobs=2).fit(X)
    other = ExchangeableMixture(4, random_state=0, n_jobs=n_jobs).fit(X)
    assert one.history_ == other.history_
    np.testing.assert_array_equal(one.score_samples(X), other.score_samples(X))


def test_holes_cost_little_where_entries_are_redundant():
    """Fitting on half of the entries finds the same groups as fitting on all of them."""
    X, kind = survey(3000, 20)
    half = punched(X, 0.5)
    model = ExchangeableMixture(2, random_state=0).fit(half)
    full = ExchangeableMixture(2, random_state=0).fit(X)
    assert model.score(X) > full.score(X) - 0.15
    predicted = ExchangeableClassifier().fit(half, kind).predict(X)
    assert np.mean(predicted == kind) > 0.9


def test_labels_and_entries_may_both_be_missing():
    X, kind = survey(1500, 12)
    labels = np.where(np.random.default_rng(1).random(1500) < 0.9, -1, kind)
    model = ExchangeableClassifier(semi_supervised=True).fit(punched(X, 0.3), labels)
    assert np.mean(model.predict(X) == kind) > 0.9
    assert (np.diff(model.history_) >= -1e-12).all()


def test_a_nearly_complete_fit_is_nearly_the_complete_one():
    X, _ = survey(1000, 10)
    almost = X.copy()
    almost[0, 0] = np.nan
    options = {"random_state": 0, "tol": 1e-7, "max_iter": 2000}
    for blocks in ("independent", "full"):
        a = ExchangeableMixture(2, blocks=blocks, **options).fit(X)
        b = ExchangeableMixture(2, blocks=blocks, **options).fit(almost)
        assert a.converged_
        assert b.converged_
        assert b.score(X) == pytest.approx(a.score(X), abs=1e-3)


def test_sample_weights_count_as_copies():
    X, _ = survey(200, 6)
    X = punched(X, 0.3)
    weight = np.random.default_rng(0).integers(1, 4, len(X))
    few = {"blocks": "independent", "init": "rows", "tol": 1e-9, "random_state": 0}
    weighted = ExchangeableMixture(1, **few).fit(X, sample_weight=weight)
    copied = ExchangeableMixture(1, **few).fit(np.repeat(X, weight, axis=0))
    assert weighted.log_likelihood_ == pytest.approx(copied.log_likelihood_, abs=1e-6)


class TestImpute:
    @pytest.mark.filterwarnings("ignore:numbers greater than binarize:UserWarning")
    def test_known_entries_stay_as_they_were(self):
        X, _ = survey()
        counts = X * np.random.default_rng(0).integers(1, 9, X.shape)  # e.g. word counts
        holed = punched(counts, 0.3)
        known = ~np.isnan(holed)
        model = ExchangeableMixture(2, random_state=0).fit(holed)
        for method in ("most_probable", "marginal", "draw"):
            filled = model.impute(holed, method, random_state=0)
            np.testing.assert_array_equal(filled[known], holed[known])
            assert np.isfinite(filled).all()

    def test_complete_rows_come_back_unchanged(self):
        X, _ = survey()
        model = ExchangeableMixture(2, random_state=0).fit(X)
        filled = model.impute(X)
        assert filled is not X
        np.testing.assert_array_equal(filled, X)
        sparse = model.impute(sp.csr_matrix(X))
        assert sp.issparse(sparse)

    def test_several_draws(self):
        X, _ = survey()
        holed = punched(X, 0.5)
        model = ExchangeableMixture(2, random_state=0).fit(holed)
        draws = model.impute(holed, "draw", n_draws=3, random_state=0)
        assert draws.shape == (3, *X.shape)
        assert not np.array_equal(draws[0], draws[1])
        again = model.impute(holed, "draw", n_draws=3, random_state=0)
        np.testing.assert_array_equal(draws, again)

    def test_as_a_step_of_a_pipeline(self):
        X, y = load_digits(return_X_y=True)
        X = punched((X[:, 8:40] > 7).astype(float), 0.3)
        imputer = ExchangeableImputer(ExchangeableMixture(10, random_state=0))
        pipeline = make_pipeline(imputer, BernoulliNB())
        assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.6

    def test_names_go_through(self):
        X, _ = survey()
        frame = pd.DataFrame(punched(X, 0.2), columns=list("abcdef"))
        imputer = ExchangeableImputer(ExchangeableMixture(2, random_state=0))
        filled = imputer.set_output(transform="pandas").fit_transform(frame)
        assert list(filled.columns) == list("abcdef")
        assert not filled.isna().any().any()

    def test_unknown_method(self):
        model = ExchangeableMixture(2, random_state=0).fit(survey()[0])
        with pytest.raises(ValueError, match="method='mean' is unknown; expected one of"):
            model.impute([[0, 0, 0, 0, 0, np.nan]], "mean")
        with pytest.raises(ValueError, match="n_draws=2 goes with method='draw'"):
            model.impute([[0, 0, 0, 0, 0, np.nan]], n_draws=2)
        with pytest.raises(ValueError, match="method='mean' is unknown; expected one of"):
            ExchangeableImputer(method="mean").fit(survey()[0])


@pytest.fixture(scope="module")
def named():
    X, y = survey()
    return ExchangeableClassifier().fit(pd.DataFrame(X, columns=list("abcdef")), y)


class TestEvidence:
    def test_names_and_numbers_say_the_same(self, named):
        by_name = named.marginals({"a": 1, "c": 0})
        np.testing.assert_array_equal(by_name, named.marginals({0: 1, 2: 0}))
        row = np.array([1, np.nan, 0, np.nan, np.nan, np.nan])
        np.testing.assert_array_equal(by_name, named.marginals(row))
        joint = named.conditional(["b", "d"], {"a": 1})
        np.testing.assert_array_equal(joint, named.conditional([1, 3], {0: 1}))
        np.testing.assert_allclose(joint.sum(), 1.0)
        gain = named.information_gain({"a": 1}, target="b")
        np.testing.assert_array_equal(gain, named.information_gain({0: 1}, target=1))

    @pytest.mark.parametrize(
        ("evidence", "message"),
        [
            ({"z": 1}, "evidence names unknown variables \\['z'\\]"),
            ({9: 1}, "evidence names variable 9; variables are numbered 0..5"),
            ({0: 2}, "evidence\\[0\\] is 2; expected 0 or 1"),
            ({"a": 1, 0: 0}, "names a variable by its name and by its number"),
            ([0, 1], "evidence has shape \\(2,\\), expected \\(6,\\)"),
            ([0, 1, 0.5, 0, 0, 0], "evidence\\[2\\] is 0.5; expected 0 or 1, or NaN"),
            ([[0, 1]], "X has 2 features"),
            ([[0, 1, np.inf, 0, 0, 0]], "infinity"),
        ],
    )
    @pytest.mark.filterwarnings("ignore:X does not have valid feature names")
    def test_bad_evidence_is_named(self, named, evidence, message):
        for question in (named.marginals, named.most_probable, named.information_gain):
            with pytest.raises(ValueError, match=message):
                question(evidence)

    def test_bad_queries_are_named(self, named):
        with pytest.raises(ValueError, match="query names the variable 'a', which row 0"):
            named.conditional("a", {"a": 1})
        with pytest.raises(ValueError, match="names a variable twice"):
            named.conditional(["a", 0])
        with pytest.raises(ValueError, match="'z' is not a variable"):
            named.conditional("z")
        with pytest.raises(ValueError, match="a query is for 1 to 16 variables, got 0"):
            named.conditional([])
        with pytest.raises(ValueError, match="label=7 is unknown; expected one of \\[0, 1\\]"):
            named.most_probable(label=7)
        with pytest.raises(ValueError, match="-1 is not a variable"):
            named.information_gain(target=-1)
        with pytest.raises(ValueError, match="sample takes a single row of evidence"):
            named.sample(2, pd.DataFrame(np.zeros((2, 6)), columns=list("abcdef")))

    def test_impossible_evidence_is_minus_infinity_or_an_error(self):
        X = np.array([[1.0, 1, 0], [1, 1, 0], [1, 1, 1]] * 5)
        for model in (
            ExchangeableMixture(1, blocks="independent", alpha=0.0, random_state=0).fit(X),
            ExchangeableClassifier(blocks="full", alpha=0.0).fit(X, np.zeros(15)),
            EVM(Count(3)).fit(X),
        ):
            impossible = [[0.0, 0.0, np.nan]]
            assert model.score_samples(impossible).tolist() == [-np.inf]
            for question in (model.marginals, model.most_probable, model.information_gain):
                with pytest.raises(ValueError, match="row 0 of the evidence has probability zero"):
                    question(impossible)
            with pytest.raises(ValueError, match="probability zero"):
                model.impute(impossible)
            with pytest.raises(ValueError, match="probability zero"):
                model.sample(1, impossible[0])

    def test_questions_need_a_fit(self):
        for model in (ExchangeableClassifier(), ExchangeableMixture(), EVM(Count(2))):
            with pytest.raises(Exception, match="not fitted"):
                model.marginals()

    def test_binary_questions_only(self):
        from exchangeable import CategoricalCounts

        evm = EVM(CategoricalCounts(3, 4)).fit([[0, 1, 3]])
        assert evm.marginals().shape == (3, 4)
        for question in (evm.most_probable, evm.information_gain, lambda: evm.conditional([0])):
            with pytest.raises(ValueError, match="this question is for binary variables"):
                question()


def test_masks_must_fit():
    with pytest.raises(
        ValueError, match="missing has shape \\(1, 2\\), but X has shape \\(1, 3\\)"
    ):
        with_missing(np.zeros((1, 3)), [[True, False]])
    with pytest.raises(ValueError, match="missing must hold True where"):
        with_missing(np.zeros((1, 2)), [[3, 0]])
