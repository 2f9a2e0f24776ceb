"""The forms in which passes read rows: codes and columns."""

import numpy as np
import scipy.sparse as sp

from exchangeable.data.forms import CODED_TILE, COLUMN_TILE, CodeLists, Codes, Columns
from exchangeable.data.rows import as_rows
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
            of_tile = X[tile * COLUMN_TILE :][:COLUMN_TILE, j]
            np.testing.assert_array_equal(rows, np.flatnonzero(of_tile))


def test_code_lists_have_the_rows_with_each_value():
    X = (np.random.default_rng(0).random((CODED_TILE + 700, 8)) < 0.3).astype(np.uint8)
    codes = Codes.of(as_rows(sp.csr_matrix(X), None))
    first, last = 100, len(X)
    lists = CodeLists.of(codes, (first, last))
    for tile, by_code in enumerate(lists.first_row):
        begin = first + tile * CODED_TILE
        for g, begins in enumerate(by_code):
            value = codes.codes[g, begin : min(begin + CODED_TILE, last)]
            assert not (begins % 4).any()
            for v in range(64):
                rows = lists.row[tile, g, begins[v] : begins[v + 1]]
                known = rows[rows < CODED_TILE]
                np.testing.assert_array_equal(known, np.flatnonzero(value == v))
                assert rows.size - known.size < 4
