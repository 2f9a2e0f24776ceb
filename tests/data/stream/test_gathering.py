"""Rows in chunks, brought into memory."""

import numpy as np
import pytest
import scipy.sparse as sp

from exchangeable.data.observed import as_observed
from exchangeable.data.stream import cluster
from exchangeable.data.stream.gathering import gathered
from exchangeable.data.stream.passes import ChunkedRows
from exchangeable.data.stream.sources import as_source

rng = np.random.default_rng(0)
X = rng.integers(0, 2, size=(40, 70)).astype(float)
HOLED = np.where(rng.random(X.shape) < 0.2, np.nan, X)
WEIGHT = rng.integers(0, 3, size=40).astype(float)
WEIGHT[10:15] = 0.0
CUTS = (10, 15, 16)
"""A chunk of which no row counts, and one of a single row."""


def of_chunks(parts, labels=None, weights=None):
    source = as_source(parts)
    assert source is not None
    return gathered(ChunkedRows(source, labels, weights))


@pytest.mark.parametrize("rows", [X, HOLED])
def test_rows_that_count_are_gathered_in_their_order(rows):
    labels, counting = np.arange(40), np.flatnonzero(WEIGHT)
    found = of_chunks(np.split(rows, CUTS), labels, WEIGHT)
    expected = as_observed(rows[counting], 0.0).symbols()
    np.testing.assert_array_equal(found.observed.symbols(), expected)
    np.testing.assert_array_equal(found.weights, WEIGHT[counting])
    np.testing.assert_array_equal(found.labels, counting)


def test_complete_matrices_stay_bits_and_lists_stay_lists():
    found = of_chunks(np.split(X, CUTS)).observed.ones
    assert found.bits.shape == (40, 2)
    assert not found.indptr.size
    listed = of_chunks([sp.csr_matrix(X[:12]), X[12:]])
    assert listed.observed.ones.indptr.size == 41
    np.testing.assert_array_equal(listed.observed.symbols(), X)
    assert listed.labels is None
    assert (listed.weights == 1).all()


def test_rows_of_a_cluster_are_in_order_too():
    arrays = pytest.importorskip("dask.array")
    dask = pytest.importorskip("dask")
    with dask.config.set(scheduler="synchronous"):
        there = arrays.from_array(HOLED, chunks=(15, -1))
        found = gathered(cluster.open_collection(there, None, None, 0.0, 1, None))
    np.testing.assert_array_equal(found.observed.symbols(), as_observed(HOLED, 0.0).symbols())


def test_some_row_must_count():
    with pytest.raises(ValueError, match="sample_weight is zero for every row"):
        of_chunks(np.split(X, CUTS), None, np.zeros(40))
