"""Orderings that theory demands: a richer family has no lower training likelihood."""

from exchangeable import Blocks
from made_rows import bound_clusters, fit_mixture


def test_a_richer_family_has_no_lower_training_likelihood():
    """One component, hardly any prior: naive Bayes ≤ urn ≤ weighted tree, naive Bayes ≤ tree."""
    X = bound_clusters(2000)
    options = dict(k=1, pooling=0.01, tol=1e-9, max_iter=500)
    edges = Blocks(shrinkage=0.1)
    naive = fit_mixture(X, blocks="independent", **options).score(X)
    urn = fit_mixture(X, family="urns", **options).score(X)
    tree = fit_mixture(X, family="tree", blocks=edges, **options).score(X)
    both = fit_mixture(X, family="weighted tree", blocks=edges, **options).score(X)
    assert naive < urn + 1e-6
    assert naive < tree - 0.1
    assert urn < both - 0.1
    assert tree < both + 5e-3


def test_a_tree_over_counts_is_no_worse_than_its_blocks():
    X = bound_clusters(2000)
    options = dict(k=1, blocks=[[0, 1], [2, 3], [4, 5]], tol=1e-9, max_iter=500)
    blocks = fit_mixture(X, alpha=1e-3, **options).score(X)
    options["blocks"] = Blocks(options["blocks"], shrinkage=1e-3)
    options.update(family="count tree", pooling=0.01)
    tree = fit_mixture(X, **options).score(X)
    assert blocks < tree + 1e-3
