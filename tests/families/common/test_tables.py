"""What an engine promises: moments, histograms and scores, in every form the rows come in."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from exchangeable.data.groups import Group, group_ones
from exchangeable.data.rows import as_rows
from exchangeable.families.common.tables import Tables, block_counts, group_histograms, score_tables
from exchangeable.partitions import Partition

FORMS = {
    "bytes": lambda X: X.astype(np.uint8),
    "bool": lambda X: X.astype(bool),
    "float": lambda X: X.astype(float),
    "fortran": lambda X: np.asfortranarray(X.astype(np.uint8)),
    "grey": lambda X: (200 * X).astype(np.uint8),
    "csr": lambda X: sp.csr_matrix(X),
    "csc": lambda X: sp.csc_array(X),
    "coo twice": lambda X: sp.coo_matrix(
        (np.ones(2 * X.sum()), np.tile(np.nonzero(X), 2)), shape=X.shape
    ),
    "stored zeros": lambda X: sp.csr_matrix((X.ravel(), np.indices(X.shape).reshape(2, -1))),
}


@pytest.fixture(params=FORMS, ids=str)
def form(request):
    return FORMS[request.param]


def random_case(seed, n_rows=300, n_variables=70, n_classes=3):
    rng = np.random.default_rng(seed)
    X = (rng.random((n_rows, n_variables)) < rng.random(n_variables)).astype(int)
    y = rng.integers(0, n_classes, n_rows)
    weights = rng.random(n_rows)
    partitions = [
        Partition.from_labels(
            np.unique(rng.integers(0, blocks, n_variables), return_inverse=True)[1]
        )
        for blocks in (1, 8, 40)[:n_classes]
    ]
    groups = [np.flatnonzero(y == c) for c in range(n_classes)]
    return X, weights, groups, partitions


def plain_histogram(X, weights, partition):
    """Count by count and block by block."""
    result = np.zeros(partition.table_size)
    for block, start in zip(partition.blocks, partition.starts, strict=True):
        for row, weight in zip(X, weights, strict=True):
            result[start + row[block].sum()] += weight
    return result


@pytest.mark.parametrize("weighted", [False, True])
def test_moments_are_sums_of_ones(form, weighted):
    X, weights, members, _ = random_case(0)
    groups = [Group(m, weights[m]) if weighted else Group(m) for m in members]
    sums = group_ones(as_rows(form(X), 0.0), groups)
    for m, found in zip(members, sums, strict=True):
        w = weights[m] if weighted else np.ones(m.size)
        np.testing.assert_allclose(found, w @ X[m], rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_histograms_are_sums_by_count(form, weighted):
    X, weights, members, partitions = random_case(1)
    groups = [Group(m, weights[m]) if weighted else Group(m) for m in members]
    found = group_histograms(as_rows(form(X), 0.0), groups, partitions)
    for m, partition, histogram in zip(members, partitions, found, strict=True):
        w = weights[m] if weighted else np.ones(m.size)
        expected = plain_histogram(X[m], w, partition)
        np.testing.assert_allclose(histogram, expected, rtol=1e-10, atol=1e-12)
        assert (histogram[expected == 0] == 0).all()


def test_block_counts(form):
    X, _, members, partitions = random_case(2)
    rows = as_rows(form(X), 0.0)
    for m, partition in zip(members, partitions, strict=True):
        expected = np.array([X[np.ix_(m, block)].sum(axis=1) for block in partition.blocks])
        np.testing.assert_array_equal(block_counts(rows, Group(m), partition), expected)


@pytest.mark.parametrize("impossible", [0.0, 0.3])
def test_scores_look_up_every_block(form, impossible):
    X, _, _, partitions = random_case(3)
    rng = np.random.default_rng(4)
    tables = Tables.layout(partitions)
    tables.values[:] = rng.normal(size=tables.values.size)
    tables.values[rng.random(tables.values.size) < impossible] = -np.inf
    found = score_tables(as_rows(form(X), 0.0), tables)
    for y, partition in enumerate(partitions):
        table = tables.of_class(y)
        expected = sum(
            table[start + X[:, block].sum(axis=1)]
            for block, start in zip(partition.blocks, partition.starts, strict=True)
        )
        np.testing.assert_allclose(found[:, y], expected, rtol=1e-10, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 200), st.floats(0, 1))
def test_scores_of_few_ones_in_many_blocks(seed, n_rows, n_variables, density):
    """The path that visits only touched blocks agrees with the one that visits all."""
    rng = np.random.default_rng(seed)
    X = (rng.random((n_rows, n_variables)) < density).astype(np.uint8)
    partitions = [Partition.from_labels(np.arange(n_variables))] * 2
    tables = Tables.layout(partitions)
    tables.values[:] = np.where(
        rng.random(tables.values.size) < 0.05, -np.inf, rng.normal(size=tables.values.size)
    )
    found = score_tables(as_rows(sp.csr_matrix(X), 0.0), tables)
    for y in range(2):
        table = tables.of_class(y).reshape(n_variables, 2)
        expected = table[np.arange(n_variables), X].sum(axis=1)
        np.testing.assert_allclose(found[:, y], expected, rtol=1e-9, atol=1e-10)


def test_results_do_not_depend_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr("exchangeable.data.groups.GROUP_CHUNK", 50)
    monkeypatch.setattr("exchangeable.families.common.tables.SCORE_CHUNK", 17)
    X, weights, members, partitions = random_case(5)
    rows = as_rows(sp.csr_matrix(X), 0.0)
    groups = [Group(m, weights[m]) for m in members]
    for function in (
        lambda n_jobs: group_ones(rows, groups, n_jobs),
        lambda n_jobs: group_histograms(rows, groups, partitions, n_jobs),
    ):
        for one, many in zip(function(1), function(4), strict=True):
            np.testing.assert_array_equal(one, many)


def test_a_csr_of_ones_and_a_byte_matrix_are_not_copied():
    X, *_ = random_case(6)
    dense = X.astype(np.uint8)
    assert as_rows(dense, 0.0).bytes_ is dense
    sparse = sp.csr_matrix(X)
    assert np.shares_memory(as_rows(sparse, 0.0).indices, sparse.indices)


@pytest.mark.parametrize("threshold", [0.5, 2.0, -1.0])
def test_binarize_keeps_what_exceeds_the_threshold(threshold):
    values = np.array([[0.2, 0.7, 3.0], [-2.0, 2.0, 0.0]])
    rows = as_rows(values, threshold)
    sums = group_ones(rows, [Group(np.arange(2))])[0]
    np.testing.assert_array_equal(sums, (values > threshold).sum(axis=0))


def test_a_negative_threshold_needs_a_dense_matrix():
    with pytest.raises(ValueError, match=r"binarize=-1\.0 would turn every absent entry"):
        as_rows(sp.csr_matrix([[1.0]]), -1.0)


@pytest.mark.parametrize("make", [np.array, sp.csr_matrix])
def test_without_binarize_only_zero_and_one_pass(make):
    assert as_rows(make([[0, 1], [1, 1]]), None).n_rows == 2
    with pytest.raises(ValueError, match=r"X\[1, 0\] is 3"):
        as_rows(make([[0, 1], [3, 1]]), None)


def test_counts_that_no_row_has_have_no_mass_at_all():
    """Zeros are found by subtraction, whose rounding must not be taken for rows."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (400, 30)).astype(np.uint8)
    X[:, ::2] = 1
    partition = Partition.from_labels(np.arange(30) // 2)
    group = Group(np.arange(400), rng.random(400))
    for form in (X, sp.csr_matrix(X)):
        (histogram,) = group_histograms(as_rows(form, None), [group], [partition])
        np.testing.assert_array_equal(histogram[partition.starts], 0.0)
        np.testing.assert_allclose(histogram.sum(), 15 * group.total)
