"""Trees over variables: the best there is for one component."""

import itertools

import numpy as np
import pytest

from enumeration import all_states
from exchangeable import Blocks
from exchangeable.families.trees.model import TreeModel
from made_rows import clusters, fit_mixture


def test_one_component_of_single_variables_is_the_chow_liu_tree():
    """No tree over four variables has a higher likelihood (all 16 are tried)."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (600, 4))
    X[:, 2] = np.where(rng.random(600) < 0.8, X[:, 0], X[:, 2])
    X[:, 1] = np.where(rng.random(600) < 0.6, X[:, 2], X[:, 1])
    X[:, 3] = np.where(rng.random(600) < 0.5, X[:, 2], X[:, 3])
    weak = dict(pooling=1e-6, blocks=Blocks(shrinkage=1e-6))
    model = fit_mixture(X, 1, family="tree", **weak)
    edges = list(itertools.combinations(range(4), 2))
    best = max(
        tree_likelihood(X, chosen) for chosen in itertools.combinations(edges, 3) if is_tree(chosen)
    )
    np.testing.assert_allclose(model.score(X), best, atol=1e-5)
    assert is_tree([tuple(edge) for edge in model.edges_[0]])


def is_tree(edges):
    reached = {edges[0][0]} if len(edges) else set()
    for _ in edges:
        for a, b in edges:
            if a in reached or b in reached:
                reached |= {a, b}
    return len(reached) == 4


def tree_likelihood(X, edges):
    """Σ_j log p(x_j) + Σ_edges log p(x_i, x_j) / p(x_i)p(x_j), frequencies as probabilities."""

    def log_frequency(columns):
        _, inverse, counts = np.unique(columns, axis=0, return_inverse=True, return_counts=True)
        return np.log(counts / len(X))[inverse.ravel()]

    total = sum(log_frequency(X[:, [j]]) for j in range(4))
    for i, j in edges:
        total = total + log_frequency(X[:, [i, j]])
        total -= log_frequency(X[:, [i]]) + log_frequency(X[:, [j]])
    return total.mean()


def pair_rows(n11, n10, n01, n00):
    """Return rows of two variables, this many of each kind."""
    return np.repeat(np.array([[1, 1], [1, 0], [0, 1], [0, 0]]), (n11, n10, n01, n00), axis=0)


@pytest.mark.parametrize("shrinkage", [1e-6, 25.0, 400.0])
def test_shrinkage_adds_rows_in_which_the_two_ends_of_an_edge_are_independent(shrinkage):
    X = pair_rows(40, 10, 20, 30)
    model = fit_mixture(X, 1, family="tree", pooling=1e-9, blocks=Blocks(shrinkage=shrinkage))
    expected = (40 + shrinkage * 0.5 * 0.6) / (100 + shrinkage)
    assert model.edges_[0].shape == (1, 2)
    np.testing.assert_allclose(np.exp(model.score_samples([[1, 1]])), expected, rtol=1e-6)
    np.testing.assert_allclose(model.marginals(), [0.5, 0.6], rtol=1e-6)


@pytest.mark.parametrize(("n11", "n_edges"), [(27, 0), (31, 1)])
def test_an_edge_must_gain_more_than_its_penalty_of_two(n11, n_edges):
    """One hundred rows, both variables on in half of them."""
    X = pair_rows(n11, 50 - n11, 50 - n11, n11)
    cells = np.array([n11, 50 - n11, 50 - n11, n11])
    gain = cells @ np.log(cells / 25)
    assert 0.1 < gain < 10
    assert (gain > 2) == bool(n_edges)
    model = fit_mixture(X, 1, family="tree", pooling=1e-9, blocks=Blocks(shrinkage=1e-9))
    assert len(model.edges_[0]) == n_edges


def test_a_weighted_tree_expects_what_is_observed():
    """Given the counts, every variable and every edge is on as often as in the rows."""
    X = clusters(500)
    priors = dict(pooling=1e-6, blocks=Blocks(shrinkage=1e-6))
    model = fit_mixture(X, 1, family="weighted tree", tol=1e-10, max_iter=500, **priors)
    states = all_states(6)
    log_p, counts = model.score_samples(states), states.sum(axis=1)
    p = np.exp(log_p)
    given_count = p / np.bincount(counts, weights=p)[counts]
    weight = given_count * np.bincount(X.sum(axis=1), minlength=7)[counts]
    np.testing.assert_allclose(weight @ states, X.sum(axis=0), atol=0.01)
    assert len(model.edges_[0]) > 0
    for a, b in model.edges_[0]:
        expected = weight @ (states[:, a] * states[:, b])
        assert expected == pytest.approx((X[:, a] & X[:, b]).sum(), abs=0.01)


def test_parameters_are_variables_edges_and_probabilities_of_counts():
    parent = np.array([[5], [0], [0], [5], [3]], dtype=np.int32)
    plain = TreeModel.make(np.zeros(1), np.zeros((5, 1)), parent, np.ones((5, 1)))
    assert plain.n_parameters == 5 + 3
    log_q = np.full((6, 1), -np.log(6))
    weighted = TreeModel.make(np.zeros(1), np.zeros((5, 1)), parent, np.ones((5, 1)), log_q)
    assert weighted.n_parameters == 5 + 3 + 4
