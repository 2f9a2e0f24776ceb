"""`family="count tree"`: what it fits, and what it refuses."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from enumeration import all_states
from exchangeable import Blocks, ExchangeableClassifier, ExchangeableMixture
from exchangeable.families import REGISTRY
from exchangeable.plotting import ContributionsDisplay
from exchangeable.report import report_html

N = 8
BLOCKS = [[0, 1, 2, 3], [4, 5, 6, 7]]
STATES = all_states(N)


def coupled(n_rows=1500, sign=1, seed=0):
    """Two blocks of exchangeable variables; the second's rate follows the first's count."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 2, (n_rows, 4))
    share = first.mean(axis=1, keepdims=True)
    rate = 0.1 + 0.8 * (share if sign > 0 else 1 - share)
    return np.hstack([first, rng.random((n_rows, 4)) < rate]).astype(np.uint8)


def mixture(X, k=1, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        settings = dict(family="count tree", blocks=BLOCKS, random_state=0, max_iter=60)
        return ExchangeableMixture(k, **(settings | options)).fit(X)


def test_coupled_counts_are_fitted_better_than_by_independent_blocks():
    X, other = coupled(), coupled(seed=1)
    tree = mixture(X)
    independent = ExchangeableMixture(1, blocks=BLOCKS, random_state=0).fit(X)
    assert tree.score(other) > independent.score(other) + 0.2
    assert tree.edges_[0].tolist() == [[1, 0]]
    assert [block.tolist() for block in tree.partitions_[0]] == BLOCKS
    assert tree.n_parameters_ == 2 * 4 + 16
    np.testing.assert_array_equal(tree.urn_weights_, np.ones((1, N)))
    for found, expected in zip(
        tree.count_probabilities_[0], independent.count_probabilities_[0], strict=True
    ):
        np.testing.assert_allclose(found, expected, atol=0.02)


@pytest.mark.parametrize("shrinkage", [1e-6, 25.0, 400.0])
def test_shrinkage_adds_rows_in_which_two_blocks_are_independent(shrinkage):
    """Blocks of one variable: a hundred rows, and this many more with independent blocks."""
    X = np.repeat(np.array([[1, 1], [1, 0], [0, 1], [0, 0]]), (40, 10, 20, 30), axis=0)
    model = mixture(X, blocks=Blocks([[0], [1]], shrinkage=shrinkage), pooling=1e-6)
    assert model.edges_[0].tolist() == [[1, 0]]
    expected = (40 + shrinkage * 0.5 * 0.6) / (100 + shrinkage)
    np.testing.assert_allclose(np.exp(model.score_samples([[1, 1]])), expected, rtol=1e-5)


@pytest.mark.parametrize(("n11", "edges"), [(27, []), (31, [[1, 0]])])
def test_an_edge_must_gain_more_than_its_penalty_of_one(n11, edges):
    """One hundred rows of two blocks of one variable each, on in half of them."""
    cells = np.array([n11, 50 - n11, 50 - n11, n11])
    X = np.repeat(np.array([[1, 1], [1, 0], [0, 1], [0, 0]]), cells, axis=0)
    gain = cells @ np.log(cells / 25)
    assert gain > 0.1
    assert (gain > 1) == bool(edges)
    assert mixture(X, blocks=[[0], [1]], pooling=1e-6).edges_[0].tolist() == edges


def test_counts_of_a_block_have_its_q_after_a_fit():
    """The edges are raked to the q of both blocks, which are smoothed as edges are not."""
    model = mixture(coupled(150), 1, pooling=20.0)
    p = np.exp(model.score_samples(STATES))
    assert len(model.edges_[0]) == 1
    for block, q in zip(BLOCKS, model.count_probabilities_[0], strict=True):
        found = np.bincount(STATES[:, block].sum(axis=1), weights=p)
        np.testing.assert_allclose(found, q, rtol=1e-8)


@pytest.mark.parametrize("blocks", ["welch", "evidence", "full", BLOCKS], ids=str)
def test_any_blocks_give_probabilities(blocks):
    model = mixture(coupled(400), 2, blocks=blocks)
    np.testing.assert_allclose(np.exp(model.score_samples(STATES)).sum(), 1, rtol=1e-10)
    assert np.isfinite(model.bic(STATES))


def test_single_variables_given_as_blocks_are_the_chow_liu_trees(monkeypatch):
    """Over blocks of one variable each it has the edges and scores of the family of trees."""
    monkeypatch.setattr("exchangeable.families.trees.family.PENALTY", 1.0)
    X = coupled(500)
    alike = dict(pooling=1e-6, tol=1e-9)
    counts = mixture(X, 1, blocks=Blocks([[j] for j in range(N)], shrinkage=3.0), **alike)
    plain = mixture(X, 1, family="tree", blocks=Blocks(shrinkage=3.0), **alike)
    edges = [{frozenset(edge) for edge in model.edges_[0].tolist()} for model in (counts, plain)]
    assert edges[0] == edges[1]
    assert len(edges[0]) == N - 1
    np.testing.assert_allclose(counts.score_samples(STATES), plain.score_samples(STATES), atol=1e-6)


def test_training_likelihood_rises_but_for_rounding_and_prior():
    X = np.concatenate([coupled(600), coupled(600, -1, 1), 1 - coupled(300, seed=2)])
    blocks = Blocks(BLOCKS, shrinkage=1e-3)
    model = mixture(X, 3, pooling=1e-3, blocks=blocks, tol=0.0, max_iter=30)
    assert len(model.history_[0]) > 3
    assert np.diff(model.history_[0]).min() > -2e-4
    assert model.log_likelihood_ == pytest.approx(max(model.history_[0]), abs=1e-9)
    assert model.log_likelihood_ > model.history_[0][0]


@pytest.mark.parametrize("holes", [False, True])
def test_threads_change_no_bit(holes):
    X = coupled(700).astype(float)
    if holes:
        X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    options = dict(n_init=2, blocks="welch", max_iter=10)
    one, two = (mixture(X, 3, n_jobs=jobs, **options) for jobs in (1, 2))
    np.testing.assert_array_equal(one.score_samples(STATES), two.score_samples(STATES))
    y = np.arange(700) % 2
    classifiers = [
        ExchangeableClassifier(family="count tree", blocks=BLOCKS, n_jobs=jobs).fit(X, y)
        for jobs in (1, 2)
    ]
    first, second = (model.predict_joint_log_proba(STATES) for model in classifiers)
    np.testing.assert_array_equal(first, second)


def test_sparse_rows_are_the_same_rows():
    X = coupled(500)
    dense, sparse = mixture(X, 2), mixture(sp.csr_matrix(X), 2)
    np.testing.assert_allclose(
        dense.score_samples(STATES), sparse.score_samples(sp.csr_matrix(STATES)), atol=1e-10
    )


def test_classes_that_differ_in_how_counts_go_together():
    """Each block alone looks the same in both classes, so independent blocks can only guess."""
    X = np.concatenate([coupled(600), coupled(600, -1, 1)])
    y = np.repeat(["same", "opposite"], 600)
    Z = np.concatenate([coupled(300, seed=2), coupled(300, -1, 3)])
    z = np.repeat(["same", "opposite"], 300)
    options = dict(blocks=BLOCKS)
    independent = ExchangeableClassifier(**options).fit(X, y).score(Z, z)
    tree = ExchangeableClassifier("count tree", **options).fit(X, y)
    assert independent < 0.6
    assert tree.score(Z, z) > 0.7
    holey = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    again = ExchangeableClassifier(family="count tree", max_iter=100, **options).fit(holey, y)
    assert again.n_iter_ > 1
    assert again.score(Z, z) > 0.65


def test_holes_are_summed_over_in_fits():
    """Known entries alone tell how the counts go together, with four in ten missing too."""
    X = coupled(4000)
    holey = np.where(np.random.default_rng(0).random(X.shape) < 0.4, np.nan, X)
    settings = dict(tol=1e-6, max_iter=300)
    complete, fitted = mixture(X, **settings), mixture(holey, **settings)
    assert fitted.edges_[0].tolist() == [[1, 0]]
    assert abs(complete.score(X) - fitted.score(X)) < 0.03
    independent = ExchangeableMixture(1, blocks=BLOCKS, random_state=0).fit(X)
    assert fitted.score(X) > independent.score(X) + 0.15
    assert fitted.history_[0][-1] > fitted.history_[0][0]


def test_weights_count_rows():
    X = coupled(300)
    times = np.random.default_rng(0).integers(0, 3, 300)
    weighted = ExchangeableClassifier(family="count tree", blocks=BLOCKS)
    weighted.fit(X, X[:, 0], sample_weight=times)
    repeated = ExchangeableClassifier(family="count tree", blocks=BLOCKS)
    repeated.fit(np.repeat(X, times, axis=0), np.repeat(X[:, 0], times))
    np.testing.assert_allclose(
        weighted.predict_joint_log_proba(STATES),
        repeated.predict_joint_log_proba(STATES),
        atol=1e-9,
    )


def test_pages_and_displays():
    model = mixture(coupled(300), 2)
    assert REGISTRY["count tree"].summary in report_html(model)
    assert "2 components" in model._repr_html_()
    with pytest.raises(ValueError, match="contributions need a score that is a sum"):
        ContributionsDisplay.from_estimator(model, STATES[3])


def test_too_many_blocks_are_refused():
    wide = sp.csr_matrix((np.ones(3), ([0, 1, 2], [0, 1, 2])), shape=(3, 9000))
    pairs = [[j, j + 1] for j in range(0, 9000, 2)]
    with pytest.raises(
        ValueError, match="the limit is 8,000, the 4,500 blocks have 9,000: give larger"
    ):
        ExchangeableMixture(1, family="count tree", blocks=pairs).fit(wide)
