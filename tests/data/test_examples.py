"""Distinct rows and their weights."""

import numpy as np
import scipy.sparse as sp

from exchangeable.data.examples import merge_equal_rows
from exchangeable.data.observed import as_observed


def test_equal_rows_are_merged_once():
    X = np.array([[0, 1, 1], [1, 0, 0], [0, 1, 1], [0, 1, 1]], dtype=np.uint8)
    for form in (X, sp.csr_matrix(X)):
        examples, member = merge_equal_rows(as_observed(form, None), np.array([1.0, 2, 3, 4]))
        assert member.tolist() == [0, 1, 0, 0]
        assert examples.weights.tolist() == [8, 2]
        assert examples.total == 10
