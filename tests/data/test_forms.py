"""The forms in which passes read rows: codes and columns."""

import numpy as np
import scipy.sparse as sp

from exchangeable.data.forms import Codes, Columns
from exchangeable.data.rows import as_rows
from exchangeable.runtime.kernels.vectors import TILE
from random_blocks import make


def rows_of(X):
    return as_rows(sp.csr_matrix(X), None)


def test_codes_expand_and_fold():
    rng, X, _ = make()
    codes = Codes.of(rows_of(X))
    lines = rng.random((X.shape[1], 4))
    expanded = codes.expand(lines)
    found = sum(expanded[g][codes.codes[g]] for g in range(len(codes.codes)))
    np.testing.assert_allclose(found, X @ lines)
    mass = rng.random((len(X), 4))
    sums = np.zeros(codes.sums_shape(4))
    for g, code in enumerate(codes.codes):
        np.add.at(sums[g], code, mass)
    np.testing.assert_allclose(codes.fold(sums), X.T @ mass)


def test_columns_list_the_ones_of_each_variable():
    _, X, _ = make(density=0.1)
    columns = Columns.of(rows_of(X))
    for tile, first in enumerate(columns.first_one):
        for j in range(X.shape[1]):
            rows = columns.row[first[j] : first[j + 1]]
            np.testing.assert_array_equal(rows, np.flatnonzero(X[tile * TILE :][:TILE, j]))
