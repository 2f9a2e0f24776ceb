"""Chow-Liu and latent trees: against enumeration, against known structure, in their own right."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from enumeration import all_states
from exchangeable.baselines import ChowLiuTree, LatentTree
from exchangeable.baselines.grouping import (
    METHODS,
    LatentForest,
    chow_liu_grouping,
    neighbour_joining,
    recursive_grouping,
)
from exchangeable.baselines.tree import BinaryTree, Table, parents_of


def random_tree(n_variables, n_hidden, seed, n_roots=1):
    """A random forest with random parameters; any of its nodes may be hidden."""
    rng = np.random.default_rng(seed)
    n = n_variables + n_hidden
    order = rng.permutation(n)
    parent = np.full(n, n)
    for place in range(n_roots, n):
        parent[order[place]] = order[rng.integers(place)]
    tree = BinaryTree.of_parents(parent, n_variables)
    p_on = rng.uniform(0.05, 0.95, size=(n, 2))
    p_on[tree.parent < 0, 1] = p_on[tree.parent < 0, 0]
    return tree.with_parameters(p_on)


def joint_by_definition(tree):
    """All states of all nodes, in the tree's order, with the probability of each."""
    states = all_states(tree.node.size)
    chance = np.ones(len(states))
    for v, p in enumerate(tree.parent):
        on = tree.p_on[v, states[:, p] if p >= 0 else np.zeros(len(states), dtype=int)]
        chance *= np.where(states[:, v] == 1, on, 1 - on)
    return states, chance


@pytest.mark.parametrize(("n_hidden", "n_roots"), [(0, 1), (3, 1), (4, 3)])
def test_probabilities_are_sums_over_the_hidden_nodes(n_hidden, n_roots):
    tree = random_tree(6, n_hidden, seed=n_hidden, n_roots=n_roots)
    states, chance = joint_by_definition(tree)
    rows = all_states(6)
    seen = states[:, [int(np.flatnonzero(tree.node == v)[0]) for v in range(6)]]
    expected = [chance[(seen == row).all(axis=1)].sum() for row in rows]
    found = np.exp(tree.log_probabilities(np.ascontiguousarray(rows.T.astype(np.uint8))))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert found.sum() == pytest.approx(1)


def test_expected_counts_are_posteriors_of_node_and_parent():
    tree = random_tree(5, 3, seed=1, n_roots=2)
    states, chance = joint_by_definition(tree)
    rng = np.random.default_rng(0)
    table = Table.of(rng.integers(0, 2, size=(40, 5)).astype(np.uint8), rng.random(40))
    seen = states[:, [int(np.flatnonzero(tree.node == v)[0]) for v in range(5)]]
    expected = np.zeros((tree.node.size, 2, 2))
    for row, weight in zip(table.columns.T, table.weight, strict=True):
        posterior = np.where((seen == row).all(axis=1), chance, 0)
        posterior = weight * posterior / posterior.sum()
        for v, p in enumerate(tree.parent):
            above = states[:, p] if p >= 0 else np.zeros(len(states), dtype=int)
            np.add.at(expected[v], (states[:, v], above), posterior)
    joint, total = tree.expected_counts(table)
    np.testing.assert_allclose(joint, expected, atol=1e-12)
    assert total == pytest.approx(tree.log_probabilities(table.columns) @ table.weight)


def test_many_improbable_children_do_not_underflow():
    tree = BinaryTree.of_parents(np.array([2000] + [0] * 1999), 1999 + 1)
    tree = tree.with_parameters(np.full((2000, 2), 1e-6))
    rows = np.ones((2000, 1), dtype=np.uint8)
    assert tree.log_probabilities(rows)[0] == pytest.approx(2000 * np.log(1e-6))


def test_em_never_lowers_the_likelihood_and_reaches_that_of_the_truth():
    truth = random_tree(7, 2, seed=5)
    X = truth.sample(4000, np.random.default_rng(0))
    table = Table.of(X)
    start = random_tree(7, 2, seed=5).with_parameters(
        np.clip(truth.p_on + np.random.default_rng(1).normal(0, 0.1, truth.p_on.shape), 0.1, 0.9)
    )
    _, history = start.em(table, 1e-9, 1e-7, 500)
    assert (np.diff(history) > -1e-9).all()
    assert history[-1] > truth.log_probabilities(table.columns) @ table.weight / table.total


def test_draws_have_the_probabilities_of_the_rows():
    tree = random_tree(4, 2, seed=3)
    X = tree.sample(200_000, np.random.default_rng(0))
    found = np.bincount(X @ [8, 4, 2, 1], minlength=16) / len(X)
    rows = np.ascontiguousarray(all_states(4).T.astype(np.uint8))
    np.testing.assert_allclose(found, np.exp(tree.log_probabilities(rows)), atol=0.005)


def test_chow_liu_is_the_best_of_all_trees():
    X = random_tree(4, 2, seed=8).sample(500, np.random.default_rng(0))
    best = -np.inf
    for choice in all_states(4, 4):  # every assignment of parents; those with cycles are left out
        parent = np.array([p if p != v else 4 for v, p in enumerate(choice)])
        if (parent == 4).sum() != 1 or _has_cycle(parent):
            continue
        total = 0.0
        for v, p in enumerate(parent):
            above = X[:, p] if p < 4 else np.zeros(len(X), dtype=int)
            for t in (0, 1):
                here = X[above == t, v]
                for s in (0, 1):
                    share = (here == s).mean() if here.size else 0
                    total += (here == s).sum() * np.log(share) if share else 0
        best = max(best, total / len(X))
    assert ChowLiuTree(alpha=1e-9).fit(X).log_likelihood_ == pytest.approx(best, abs=1e-6)


def _has_cycle(parent):
    for v in range(parent.size):
        steps = 0
        while parent[v] < parent.size:
            v, steps = parent[v], steps + 1
            if steps > parent.size:
                return True
    return False


def test_chow_liu_finds_a_known_tree():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(5000, 7))
    for v in range(1, 7):
        X[:, v] = X[:, (v - 1) // 2] ^ (rng.random(5000) < 0.15)
    found = {frozenset(edge) for edge in ChowLiuTree().fit(X).edges_.tolist()}
    assert found == {frozenset((v, (v - 1) // 2)) for v in range(1, 7)}


def splits(neighbours, n_variables):
    """What each edge separates: two trees with the same splits are the same tree."""
    forest = LatentForest(np.zeros((1, 1)), neighbours, n_variables)
    found = set()
    for a in neighbours:
        for b in neighbours[a]:
            side = frozenset(v for v in forest.branch(a, b) if v < n_variables)
            found.add(frozenset([side, frozenset(range(n_variables)) - side]))
    return found


def two_level_tree():
    """Three hidden nodes with four variables each under a hidden root, and one inner variable."""
    neighbours = {v: set() for v in range(17)}
    edges = [(v, 13 + v // 4) for v in range(12)] + [(13, 16), (14, 16), (15, 12), (12, 16)]
    for a, b in edges:
        neighbours[a].add(b)
        neighbours[b].add(a)
    return neighbours


def path_lengths(neighbours, lengths):
    n = len(neighbours)
    d = np.full((n, n), np.inf)
    np.fill_diagonal(d, 0)
    for a in neighbours:
        for b in neighbours[a]:
            d[a, b] = lengths[frozenset((a, b))]
    for k in range(n):
        d = np.minimum(d, d[:, [k]] + d[[k]])
    return d


@pytest.mark.parametrize("join", [neighbour_joining, recursive_grouping])
@pytest.mark.parametrize("seed", range(5))
def test_grouping_finds_a_latent_tree_from_exact_distances(join, seed):
    neighbours = two_level_tree()
    rng = np.random.default_rng(seed)
    lengths = {frozenset((a, b)): rng.uniform(0.3, 0.6) for a in neighbours for b in neighbours[a]}
    d = path_lengths(neighbours, lengths)[:13, :13]
    found = chow_liu_grouping(d, join)
    assert splits(found.neighbours, 13) == splits(neighbours, 13)
    assert found.n_nodes == 17


@pytest.mark.parametrize("method", ["clrg", "clnj", "regclrg", "regclnj"])
def test_latent_tree_is_found_from_data(method):
    neighbours = two_level_tree()
    tree = BinaryTree.of_parents(parents_of(neighbours, 16), 13)
    p_on = np.tile([0.15, 0.85], (17, 1))
    p_on[tree.parent < 0] = 0.5
    X = tree.with_parameters(p_on).sample(20_000, np.random.default_rng(0))
    model = LatentTree(method).fit(X)
    found = {v: set() for v in range(13 + model.n_hidden_)}
    for a, b in model.edges_.tolist():
        found[a].add(b)
        found[b].add(a)
    assert splits(found, 13) == splits(neighbours, 13)
    truth = tree.with_parameters(p_on).log_probabilities(np.ascontiguousarray(X.T)).mean()
    assert model.log_likelihood_ > truth - 0.002


@pytest.mark.parametrize("join", METHODS.values())
def test_grouping_of_few_variables(join):
    for n in (1, 2, 3):
        d = np.full((n, n), 0.5) - 0.5 * np.eye(n)
        assert len(chow_liu_grouping(d, join).neighbours) in (n, n + 1)


def test_best_is_chosen_on_validation_rows():
    X = random_tree(9, 4, seed=2).sample(3000, np.random.default_rng(0))
    model = LatentTree().fit(X[:2000], X_valid=X[2000:])
    assert set(model.scores_) == {"clrg", "clnj", "regclrg", "regclnj"}
    assert model.score(X[2000:]) == pytest.approx(max(model.scores_.values()))
    assert model.scores_[model.method_] == max(model.scores_.values())


def test_threads_do_not_change_the_fit():
    X = random_tree(9, 4, seed=2).sample(6000, np.random.default_rng(0))
    one, four = (LatentTree("clnj", n_jobs=n).fit(X) for n in (1, 4))
    assert one.history_ == four.history_


@pytest.mark.parametrize("model", [ChowLiuTree(), LatentTree("clnj")])
def test_weights_count_like_repeated_rows(model):
    X = random_tree(6, 2, seed=4).sample(300, np.random.default_rng(0))
    weight = np.random.default_rng(1).integers(0, 4, size=300)
    a = model.fit(X, sample_weight=weight).score_samples(X)
    b = model.fit(np.repeat(X, weight, axis=0)).score_samples(X)
    np.testing.assert_allclose(a, b, rtol=1e-9)


@pytest.mark.parametrize(
    ("model", "X", "message"),
    [
        (ChowLiuTree(alpha=0), [[0, 1]], "alpha must be positive"),
        (LatentTree("nj"), [[0, 1]], "'nj'"),
        (LatentTree(binarize=None), [[0, 2]], r"X\[0, 1\] is 2"),
    ],
)
def test_bad_input_is_named(model, X, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X)


@parametrize_with_checks([ChowLiuTree(), LatentTree()])
def test_scikit_learn_check(estimator, check):
    check(estimator)
