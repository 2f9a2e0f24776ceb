"""Trees over variables: the best there is for one component."""

import itertools

import numpy as np

from made_rows import fit_mixture


def test_one_component_of_single_variables_is_the_chow_liu_tree():
    """No tree over four variables has a higher likelihood (all 16 are tried)."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (600, 4))
    X[:, 2] = np.where(rng.random(600) < 0.8, X[:, 0], X[:, 2])
    X[:, 1] = np.where(rng.random(600) < 0.6, X[:, 2], X[:, 1])
    X[:, 3] = np.where(rng.random(600) < 0.5, X[:, 2], X[:, 3])
    weak = dict(pooling=1e-6, shrinkage=1e-6)
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
