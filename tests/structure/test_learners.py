"""The block learners against literal, slow versions of what they are said to do."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import gammaln
from scipy.stats import chi2, ttest_ind_from_stats
from scipy.stats import t as student_t

from exchangeable.arrays import FloatArray
from exchangeable.data.groups import Group
from exchangeable.data.rows import as_rows
from exchangeable.partitions import Partition, log_factorials
from exchangeable.structure.conditions import (
    equal_means_p_value,
    split_by_covariance,
    split_by_variance,
)
from exchangeable.structure.evidence import merge_blocks
from exchangeable.structure.learner import BlockSettings, check_structure
from exchangeable.structure.rounds import learn_from_sums
from exchangeable.structure.student import two_sided_p
from exchangeable.structure.sweep import sweep, sweep_counts

SETTINGS = BlockSettings(significance=0.1, start=0.5, prior=0.1, conditions=(1,))


def literal_sweep(mean, variance, n, significance):
    """The sweep as the paper's figures were made: one SciPy t-test after the other."""
    order = np.argsort(mean, kind="stable")
    labels = np.zeros(mean.size, dtype=int)
    block, reference = 0, order[0]
    for before, j in pairwise(order):
        if mean[j] != mean[before]:
            with np.errstate(all="ignore"):
                p = ttest_ind_from_stats(
                    mean[j], np.sqrt(variance[j]), n,
                    mean[reference], np.sqrt(variance[reference]), n, equal_var=False,
                ).pvalue  # fmt: skip
            if p < significance:
                block, reference = block + 1, j
        labels[j] = block
    return labels


@settings(max_examples=150, deadline=None)
@given(
    st.integers(2, 400).flatmap(
        lambda n: st.tuples(st.just(n), st.lists(st.integers(0, n), min_size=1, max_size=40))
    ),
    st.sampled_from([0.01, 0.1, 0.5, 0.9]),
)
def test_sweep_over_whole_counts(case, significance):
    n, ones = case[0], np.array(case[1], dtype=float)
    mean = ones / n
    expected = literal_sweep(mean, mean * (1 - mean) * n / (n - 1), n, significance)
    np.testing.assert_array_equal(sweep_counts(ones, n, significance).labels, expected)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 60), st.floats(1.5, 1e5))
def test_sweep_over_fractional_moments(seed, n_variables, n):
    rng = np.random.default_rng(seed)
    mean = rng.beta(0.5, 2, n_variables)
    variance = mean * rng.random(n_variables)
    n = float(n)
    expected = literal_sweep(mean, variance, n, 0.1)
    np.testing.assert_array_equal(sweep(mean, variance, n, 0.1), expected)


def test_one_row_cannot_be_tested():
    np.testing.assert_array_equal(sweep_counts(np.array([0.0, 1, 1]), 1, 0.1).labels, [0, 0, 0])


@pytest.mark.parametrize("df", [0.5, 1, 2.5, 30, 1e3, 1e6])
@pytest.mark.parametrize("t", [0.0, 1e-6, 0.3, 1.7, 5.0, 60.0, np.inf])
def test_two_sided_p_is_students(df, t):
    np.testing.assert_allclose(two_sided_p(t, df), 2 * student_t.sf(t, df), rtol=1e-6, atol=1e-12)


def literal_evidence(counts: FloatArray, m: int, weights: FloatArray, prior: float) -> float:
    h = np.bincount(counts, weights, minlength=m + 1)
    log_choose = gammaln(m + 1) - gammaln(np.arange(m + 1) + 1) - gammaln(m - np.arange(m + 1) + 1)
    total = weights.sum()
    return (
        (gammaln(h + prior) - gammaln(prior)).sum()
        - (gammaln(total + prior * (m + 1)) - gammaln(prior * (m + 1)))
        - h @ log_choose
    )


def literal_merge(counts, sizes, weights, prior, limit):
    """Merge the neighbouring pair that gains most, while one gains, unless their means differ."""
    blocks = [[b] for b in range(len(sizes))]

    def z_score(a, b):
        difference = counts[a].sum(axis=0) / sizes[a].sum() - counts[b].sum(axis=0) / sizes[b].sum()
        mean = np.average(difference, weights=weights)
        error = np.sqrt(np.average((difference - mean) ** 2, weights=weights) / weights.sum())
        assume(abs(abs(mean) - limit * error) > 1e-9)
        return abs(mean) / error if error > 0 else np.inf

    def evidence(members):
        return literal_evidence(counts[members].sum(axis=0), sizes[members].sum(), weights, prior)

    while len(blocks) > 1:
        gains = [
            evidence(a + b) - evidence(a) - evidence(b)
            if np.isinf(limit) or z_score(a, b) <= limit
            else -np.inf
            for a, b in pairwise(blocks)
        ]
        best = int(np.argmax(gains))
        if gains[best] == -np.inf:
            break
        # Leave out ties, between pairs or with not merging at all, which rounding decides.
        assume(np.sum(np.array(gains) > gains[best] - 1e-9) == 1 and abs(gains[best]) > 1e-9)
        if gains[best] <= 0:
            break
        blocks[best : best + 2] = [blocks[best] + blocks[best + 1]]
    return np.repeat(np.arange(len(blocks)), [len(block) for block in blocks])


@settings(max_examples=100, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 8),
    st.integers(1, 60),
    st.booleans(),
    st.sampled_from([np.inf, 2.0, 5.0]),
)
def test_evidence_merging(seed, n_blocks, n_rows, weighted, limit):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, n_blocks)
    rate = np.where(rng.random((1, n_rows)) < 0.5, rng.random((n_blocks, 1)), 0.9)
    counts = rng.binomial(sizes[:, None], rate).astype(np.int32)
    weights = rng.random(n_rows) if weighted else np.empty(0)
    prior = float(rng.choice([0.1, 1.0]))
    found = merge_blocks(
        counts.copy(), sizes, weights, prior, log_factorials(int(sizes.sum())), limit
    )
    plain = weights if weighted else np.ones(n_rows)
    np.testing.assert_array_equal(found, literal_merge(counts, sizes, plain, prior, limit))


def learn(structure, X, settings=SETTINGS):
    rows, group = as_rows(X, 0.0), Group(np.arange(len(X)))
    learner = check_structure(structure, settings, X.shape[1], [0])
    return learner.learn(rows, group, X.sum(axis=0).astype(float))


def two_kinds(rng, n=2000):
    """Three variables that are on together, and three of the same mean that avoid each other."""
    together = np.repeat(rng.random((n, 1)) < 1 / 3, 3, axis=1)
    apart = np.eye(3, dtype=bool)[rng.integers(0, 3, n)]
    return np.hstack([together, apart]).astype(np.uint8)


def test_equal_means_are_one_block_and_condition_3_sees_the_difference():
    X = two_kinds(np.random.default_rng(0))
    strict = BlockSettings(1e-4, 0.5, 0.1, (1, 3))
    assert learn("welch", X, BlockSettings(1e-4, 0.5, 0.1, (1,))).n_blocks == 1
    blocks = sorted(block.tolist() for block in learn("welch", X, strict).blocks)
    assert blocks == [[0, 1, 2], [3, 4, 5]]


def test_condition_3_leaves_exchangeable_variables_together():
    rng = np.random.default_rng(1)
    X = (rng.random((2000, 8)) < rng.random((2000, 1))).astype(np.uint8)
    assert learn("welch", X, BlockSettings(1e-4, 0.5, 0.1, (1, 2, 3))).n_blocks == 1


def test_condition_2_separates_unequal_variances():
    """Within a given block of means 0.1 and 0.5, which the first condition alone would cut too."""
    ones = np.array([100.0, 100, 500, 500])
    one_block = Partition.from_labels(np.zeros(4, dtype=int))
    np.testing.assert_array_equal(
        split_by_variance(one_block, ones, 1000, 0.1).labels, [0, 0, 1, 1]
    )
    mirrored = np.array([100.0, 900, 100, 900])
    assert split_by_variance(one_block, mirrored, 1000, 0.1).n_blocks == 1


@pytest.mark.parametrize("seed", range(6))
def test_conditions_2_and_3_are_sweeps_over_squares_and_products(seed):
    """Of deviations from the mean, and of these with the rest of the block, as in the text."""
    rng = np.random.default_rng(seed)
    n, m = 150, 8
    X = (rng.random((n, m)) < rng.uniform(0.1, 0.6, m) + 0.3 * rng.random((n, 1))).astype(np.uint8)
    ones, one_block = X.sum(axis=0).astype(float), Partition.from_labels(np.zeros(m, dtype=int))
    deviation = X - X.mean(axis=0)
    rest = X.sum(axis=1, keepdims=True) - X.astype(float)
    products = deviation * (rest - rest.mean(axis=0))
    rows, group = as_rows(X, None), Group(np.arange(n))
    for level in (0.1, 0.5):
        by_variance = split_by_variance(one_block, ones, n, level)
        by_covariance = split_by_covariance(one_block, rows, group, ones, level)
        for found, value in ((by_variance, deviation**2), (by_covariance, products)):
            expected = literal_sweep(value.mean(axis=0), value.var(axis=0, ddof=1), n, level)
            np.testing.assert_array_equal(found.labels, expected)


def test_evidence_finds_planted_blocks():
    """Two blocks whose counts go their own ways, though their means are close."""
    rng = np.random.default_rng(2)
    rates = [np.where(rng.random((3000, 1)) < 0.5, 0.9, 0.1), np.full((3000, 1), 0.45)]
    X = np.hstack([rng.random((3000, 20)) < rate for rate in rates]).astype(np.uint8)
    partition = learn("evidence", X)
    for block in partition.blocks:
        assert (block < 20).all() or (block >= 20).all()
    assert partition.n_blocks <= 6


@pytest.mark.parametrize("seed", range(5))
def test_evidence_keeps_exchangeable_variables_in_one_block(seed):
    rng = np.random.default_rng(seed)
    X = (rng.random((200, 300)) < rng.beta(1, 30, (200, 1))).astype(np.uint8)
    assert learn("evidence", X).n_blocks == 1


def cochran(X):
    """Return Cochran's Q test of equal means, as textbooks write it."""
    ones, counts, m = X.sum(axis=0).astype(float), X.sum(axis=1).astype(float), X.shape[1]
    q = (m - 1) * (m * (ones**2).sum() - ones.sum() ** 2) / (m * counts.sum() - (counts**2).sum())
    return chi2.sf(q, m - 1)


@pytest.mark.parametrize(("low", "high"), [(0.01, 0.02), (0.005, 0.01)])
def test_equal_means_are_tested_at_one_per_cent_before_evidence_looks_for_blocks(low, high):
    rng = np.random.default_rng(0)
    while True:
        X = (rng.random((400, 6)) < np.where(np.arange(6) < 3, 0.5, 0.58)).astype(np.uint8)
        if low < cochran(X) < high and len({*X.sum(axis=0).tolist()}) == 6:
            break
    found = learn("evidence", X)
    ones, count = X.sum(axis=0).astype(float), X.sum(axis=1).astype(float)
    p_value = equal_means_p_value(ones, X.sum(axis=1), np.empty(0))
    assert p_value == pytest.approx(cochran(X), rel=1e-9)
    assert (found.n_blocks == 1) == (low == 0.01)
    sums = [(float(len(X)), ones, float(count.sum()), float(count @ count))]
    rows, group = as_rows(X, None), Group(np.arange(len(X)))
    learner = check_structure("evidence", SETTINGS, 6, [0])
    (in_rounds,) = learn_from_sums(learner, sums, 6, lambda function: [function(rows, group, 0)])
    assert in_rounds.same_as(found)


def test_independent_and_full():
    X = two_kinds(np.random.default_rng(3), 50)
    assert learn("independent", X).n_blocks == 6
    assert learn("full", X).n_blocks == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(significance=0), "significance must lie between 0 and 1, got 0"),
        (dict(significance=1.0), "significance must lie between 0 and 1"),
        (dict(start=-0.1), "start must lie between 0 and 1"),
        (dict(prior=0), "prior must be positive and finite, got 0"),
        (dict(prior=np.inf), "prior must be positive and finite, got inf"),
        (dict(conditions=None), "conditions=None: expected"),
        (dict(conditions="1"), "conditions='1': expected"),
        (dict(conditions=(2,)), r"conditions=\(2,\): expected"),
        (dict(conditions=(1, 4)), r"conditions=\(1, 4\): expected"),
    ],
)
def test_settings_are_checked(change, message):
    values = dict(significance=0.1, start=0.5, prior=0.1, conditions=(1,)) | change
    with pytest.raises(ValueError, match=message):
        check_structure("welch", BlockSettings(**values), 3, [0])


def test_given_structures():
    given = check_structure([["b", "a"], ["c"]], SETTINGS, 3, [0, 1], ["a", "b", "c"])
    assert [p.labels.tolist() for p in given] == [[0, 0, 1], [0, 0, 1]]
    each = check_structure({0: [[0, 1, 2]], 1: [[0], [1, 2]]}, SETTINGS, 3, [0, 1])
    assert [p.n_blocks for p in each] == [1, 2]
    with pytest.raises(ValueError, match=r"no partition for the classes \[1\]"):
        check_structure({0: [[0, 1, 2]]}, SETTINGS, 3, [0, 1])
    with pytest.raises(TypeError, match="a partition must be a list of blocks of variables, got 3"):
        check_structure(3, SETTINGS, 3, [0])
    with pytest.raises(ValueError, match="variable 2 is in 0 blocks"):
        check_structure([[0, 1]], SETTINGS, 3, [0])


@pytest.mark.parametrize(
    ("structure", "error", "message"),
    [
        ([None], TypeError, "block 0 is None; expected a list of variables"),
        (["ab"], TypeError, "block 0 is 'ab'; expected a list of variables"),
        ([["a", "z"]], ValueError, "block 0 names 'z', which is not a feature of X"),
        ({0: "welch"}, TypeError, "a partition must be a list of blocks of variables, got 'welch'"),
        ([[[0]]], ValueError, "block 0"),
    ],
)
def test_given_structures_that_are_none(structure, error, message):
    with pytest.raises(error, match=message):
        check_structure(structure, SETTINGS, 2, [0], ["a", "b"])


@pytest.mark.parametrize("name", ["significance", "start", "prior"])
def test_settings_must_be_numbers(name):
    values = dict(significance=0.1, start=0.5, prior=0.1, conditions=(1,)) | {name: "much"}
    with pytest.raises(TypeError, match=f"{name} must be a number, got 'much'"):
        check_structure("welch", BlockSettings(**values), 3, [0])
