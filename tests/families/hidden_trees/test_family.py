"""A step of EM of hidden trees against sums over all hidden states."""

import itertools

import numpy as np
import pytest
from scipy.special import comb

from exchangeable.families.common.em_data import InMemory
from exchangeable.families.hidden_trees.edges import rooted_tree
from exchangeable.families.hidden_trees.family import HiddenFamily, count_gains
from exchangeable.families.hidden_trees.passes.row_sums import pair_masses
from exchangeable.families.problem import Problem
from exchangeable.partitions import Partition
from exchangeable.structure.proposals import Proposal
from made_rows import bound_clusters, examples_of

STRENGTH, ALPHA, H = 2.0, 0.1, 3
X = bound_clusters(80, 5, 3, seed=4)


def begun(labels, shrinkage):
    """Return a family, rows, the mixture that EM starts from, and sums under it."""
    examples = examples_of(X)
    partition = Partition.from_labels(labels)
    problem = Problem(
        H, [partition] * H, examples=examples, alpha=ALPHA, pooling=STRENGTH, shrinkage=shrinkage
    )
    family, data = HiddenFamily(problem), InMemory(examples)
    start = family.start(data, "random", np.random.default_rng(0))
    mixture = family.first(data, start, Proposal([partition] * H), None, None)
    return family, data, mixture, data.expect(mixture)


def expected_sums(mixture, partition):
    """Return the mass of every count and state, and of every pair of states along an edge."""
    tree = mixture.model.trees[0].messages
    n_blocks = partition.n_blocks
    counts = np.stack([X[:, block].sum(axis=1) for block in partition.blocks], axis=1).astype(int)
    hidden = np.array(list(itertools.product(range(H), repeat=n_blocks)))
    joint = np.ones((len(X), len(hidden)))
    for b, m in enumerate(partition.sizes):
        above = tree.parent[b]
        if above == n_blocks:
            joint *= np.exp(mixture.log_prior)[hidden[:, b]]
        else:
            joint *= tree.edges[b, hidden[:, above], hidden[:, b]]
        q = np.exp(tree.log_q[partition.starts[b] + counts[:, b]]) / comb(m, counts[:, [b]])
        joint *= q[:, hidden[:, b]]
    posterior = joint / joint.sum(axis=1, keepdims=True)
    by_count = np.zeros((partition.table_size, H))
    pairs = np.zeros((n_blocks, H, H))
    for b in range(n_blocks):
        for place, states in enumerate(hidden):
            np.add.at(
                by_count[:, states[b]], partition.starts[b] + counts[:, b], posterior[:, place]
            )
            if tree.parent[b] < n_blocks:
                pairs[b, states[tree.parent[b]], states[b]] += posterior[:, place].sum()
    return by_count, pairs


@pytest.mark.parametrize("labels", [range(5), [0, 0, 1, 2, 2]], ids=["variables", "blocks"])
@pytest.mark.parametrize("shrinkage", [0.0, 7.0, 1e9])
def test_a_step_takes_expected_counts_and_pulls_edges_towards_independence(labels, shrinkage):
    """Pseudo-rows have the state that is usual in the block, whatever the parent's state is."""
    family, data, mixture, sums = begun(labels, shrinkage)
    partition = family.partition
    by_count, pairs = expected_sums(mixture, partition)
    (model,) = family.following(data, mixture.model, sums, 1)
    found = model.trees[0].messages
    mass = by_count + STRENGTH * family.shares[:, None]
    totals = np.repeat(np.add.reduceat(mass, partition.starts), partition.sizes + 1, axis=0)
    np.testing.assert_allclose(np.exp(found.log_q), mass / totals, rtol=1e-8)
    usual = np.add.reduceat(by_count, partition.starts) / len(X)
    for b in np.flatnonzero(found.parent < partition.n_blocks):
        wanted = pairs[b] + shrinkage * usual[b]
        wanted /= wanted.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(found.edges[b], wanted, rtol=1e-7)
    if shrinkage > 1e6:
        assert np.ptp(usual, axis=1).max() > 0.1  # or independence would be uniform


def test_the_counts_of_pseudo_rows_are_smoothed_shares_of_the_training_set():
    family, *_ = begun([0, 1, 1, 2, 2], 1.0)
    means = (X.sum(axis=0) + ALPHA) / (len(X) + 2 * ALPHA)
    np.testing.assert_allclose(family.shares[:2], [1 - means[0], means[0]], rtol=1e-12)
    np.testing.assert_allclose(np.add.reduceat(family.shares, family.partition.starts), 1.0)
    assert family.partition.sizes.tolist() == [1, 2, 2]


def test_the_root_tells_most_about_the_others_and_runs_disturb_the_tree():
    family, data, *_ = begun(range(5), 1.0)
    gains = np.zeros((5, 5))
    for i, j in itertools.permutations(range(5), 2):
        table = np.zeros((2, 2))
        np.add.at(table, (X[:, i], X[:, j]), 1.0)
        apart = np.outer(table.sum(axis=1), table.sum(axis=0)) / len(X)
        gains[i, j] = (table * np.log(np.where(table > 0, table, 1) / apart))[table > 0].sum()
    both = pair_masses(data.examples, family.partition)
    np.testing.assert_allclose(count_gains(both, family.partition, len(X)), gains, atol=1e-9)
    plain = family.learn_tree(data, None)
    assert np.flatnonzero(plain == 5).tolist() == [gains.sum(axis=1).argmax()]
    np.testing.assert_array_equal(family.learn_tree(data, None), plain)
    disturbed = {
        family.learn_tree(data, np.random.default_rng(seed)).tobytes() for seed in range(30)
    }
    assert len(disturbed) > 3


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 0.0])
@pytest.mark.parametrize("rng", [None, np.random.default_rng(0)])
def test_there_is_one_root_whatever_the_gains_are(number, rng):
    """Kernels rely on it."""
    gains = np.arange(25.0).reshape(5, 5)
    gains[2:, :], gains[:, 2:] = number, number
    with np.errstate(invalid="ignore"):
        parent = rooted_tree(gains, rng)
    assert np.count_nonzero(parent == 5) == 1
    above = np.append(parent, 5)
    for _ in range(5):
        parent = above[parent]
    assert (parent == 5).all()
