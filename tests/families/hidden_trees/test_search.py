"""The most probable completion under hidden trees: found by enumeration, or bounded."""

from itertools import product

import numpy as np
import pytest

from exchangeable import ExchangeableMixture
from exchangeable.data.observed import Observed
from exchangeable.families.contract import Completions, Model
from exchangeable.families.hidden_trees import tree as tree_module
from exchangeable.families.hidden_trees.model import HiddenModel
from exchangeable.families.hidden_trees.tree import HiddenTree
from exchangeable.families.joined import JoinedModel
from exchangeable.partitions import Partition

N, H = 9, 6
STATES = np.array(list(product([0, 1], repeat=N)), dtype=np.int8)
LABELS = [list(range(N)), [0, 1, 0, 2, 2, 3, 0, 4, 5]]


def random_model(seed, labels):
    """Return a hidden tree over blocks."""
    rng = np.random.default_rng(seed)
    partition = Partition.from_labels(labels)
    n_blocks = partition.n_blocks
    parent = np.array([n_blocks, *(rng.integers(b) for b in range(1, n_blocks))], dtype=np.int32)
    tables = [rng.dirichlet(np.ones(m + 1), size=H).T for m in partition.sizes]
    log_q = np.log(np.concatenate(tables))
    edges = rng.dirichlet(np.full(H, 0.3), size=(n_blocks, H))
    return HiddenModel([HiddenTree.make(partition, parent, log_q, edges)])


def evidence(seed):
    """Return rows of which about a quarter is known."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random((12, N)) < 0.25, rng.integers(0, 2, (12, N)), -1).astype(np.int8)


def maximum(joint, rows):
    """Return the highest log-probability of a completion of each row."""
    able = [((row < 0) | (row == STATES)).all(axis=1) for row in rows]
    return np.array([joint[each].max() for each in able])


def cases():
    """Yield models, priors, rows and what is best, for trees over variables and over blocks."""
    for seed in range(12):
        model = random_model(seed, LABELS[seed % 2])
        log_prior = np.log(np.random.default_rng(seed).dirichlet(np.ones(H)))
        joint = model.score(Observed.from_symbols(STATES)) + log_prior
        yield model, log_prior, evidence(seed), joint


def test_the_search_finds_the_maximum_where_climbing_does_not():
    missed = 0
    for model, log_prior, rows, joint in cases():
        observed = Observed.from_symbols(rows)
        for classes in (np.arange(H), np.array([0]), np.array([3])):
            best = maximum(joint[:, classes], rows)
            found = model.most_probable(observed, log_prior, classes)
            np.testing.assert_allclose(found.log_prob, best, rtol=1e-10)
            np.testing.assert_array_equal(found.bound, found.log_prob)
            place = found.rows @ (1 << np.arange(N)[::-1])
            np.testing.assert_allclose(joint[place, found.classes], best, rtol=1e-10)
            assert ((rows < 0) | (rows == found.rows)).all()
            climbed = Model.most_probable(model, observed, log_prior, classes)
            missed += (climbed.log_prob < best - 1e-9).sum()
    assert missed > 0


def test_some_classes_only():
    model, log_prior, rows, joint = next(cases())
    classes = np.array([1, 4])
    found = model.most_probable(Observed.from_symbols(rows), log_prior, classes)
    np.testing.assert_allclose(found.log_prob, maximum(joint[:, classes], rows), rtol=1e-10)
    assert np.isin(found.classes, classes).all()


def test_joined_with_another_tree():
    model, log_prior, rows, joint = next(cases())
    other = random_model(50, LABELS[1])
    prior = np.concatenate([log_prior, log_prior]) - np.log(2)
    joint = np.column_stack([joint, other.score(Observed.from_symbols(STATES)) + log_prior])
    found = JoinedModel([model, other]).most_probable(
        Observed.from_symbols(rows), prior, np.arange(2 * H)
    )
    np.testing.assert_allclose(found.log_prob, maximum(joint, rows) - np.log(2), rtol=1e-10)


def test_a_search_that_ends_early_bounds_what_it_has_not_found(monkeypatch):
    search = tree_module.Search

    class Hasty(search):
        def _patience(self):
            return 2

    monkeypatch.setattr(tree_module, "Search", Hasty)
    loose = 0
    for model, log_prior, rows, joint in cases():
        observed, best = Observed.from_symbols(rows), maximum(joint, rows)
        found = model.most_probable(observed, log_prior, np.arange(H))
        climbed = Model.most_probable(model, observed, log_prior, np.arange(H))
        assert (found.bound >= best - 1e-9).all()
        assert (found.log_prob <= best + 1e-9).all()
        assert (found.log_prob >= climbed.log_prob).all()
        loose += (found.bound > found.log_prob).sum()
    assert loose > 0


def test_the_answer_says_whether_it_is_exact():
    X = np.random.default_rng(3).integers(0, 2, (60, N))
    model = ExchangeableMixture(3, family="hidden tree", random_state=0).fit(X)
    one, many = (
        model.most_probable({0: 1}),
        model.most_probable(np.where(evidence(1) < 0, np.nan, evidence(1))),
    )
    assert one.exact is True
    assert one.gap == 0.0
    assert many.exact.shape == (12,)


def test_bounds_hold_for_both_of_two_candidates():
    def candidate(log_prob, bound, y):
        rows = np.full((2, 1), y, dtype=np.uint8)
        return Completions(rows, np.full(2, y), np.array(log_prob), np.array(bound))

    best = candidate([-1.0, -5.0], [-1.0, -2.0], 0)
    best.take_better(candidate([-3.0, -4.0], [-0.5, -4.0], 1))
    assert best.classes.tolist() == [0, 1]
    assert best.rows.ravel().tolist() == [0, 1]
    assert best.log_prob.tolist() == pytest.approx([-1.0, -4.0])
    assert best.bound.tolist() == pytest.approx([-0.5, -2.0])
