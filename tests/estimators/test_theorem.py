"""The explicit parameters in the proof of Theorem 4.4, found by fitting all rows once."""

from math import comb

import numpy as np
import pytest

from enumeration import all_states
from exchangeable import ExchangeableClassifier

N, M = 9, 4
STATES = all_states(N).astype(int)
WITHIN = list(range(M))
OUTSIDE = list(range(M, N))
SYMMETRIC = {
    "threshold": lambda ones: ones >= 4,
    "parity": lambda ones: ones % 2 == 1,
    "counting": lambda ones: ones % 3 == 2,
    "exact value": lambda ones: ones == 5,
}


def binomial(m):
    return np.array([comb(m, ones) for ones in range(m + 1)]) / 2**m


def test_conjunctions_have_the_parameters_of_the_proof():
    """What the proof gives for class 0 adds up to 1 − 2^−m; the fit divides by that."""
    y = STATES[:, WITHIN].all(axis=1).astype(int)
    model = ExchangeableClassifier(blocks=[WITHIN, OUTSIDE], alpha=0.0).fit(STATES, y)
    no, yes = model.count_probabilities_
    expected = np.append(binomial(M)[:-1], 0.0)
    np.testing.assert_allclose(no[0], expected / (1 - 2.0**-M), atol=1e-12)
    np.testing.assert_allclose(yes[0], np.eye(M + 1)[M], atol=1e-12)
    for rest in (no[1], yes[1]):
        np.testing.assert_allclose(rest, binomial(N - M), atol=1e-12)
    p_yes = 2.0 ** (N - M) / 2.0**N
    p_no = (2.0**M - 1) * 2.0 ** (N - M) / 2.0**N
    np.testing.assert_allclose(np.exp(model.class_log_prior_), [p_no, p_yes], atol=1e-12)
    np.testing.assert_array_equal(model.predict_proba(STATES), np.eye(2)[y])


def test_disjunctions_are_conjunctions_of_zeros():
    y = STATES[:, WITHIN].any(axis=1).astype(int)
    model = ExchangeableClassifier(blocks=[WITHIN, OUTSIDE], alpha=0.0).fit(STATES, y)
    np.testing.assert_allclose(model.count_probabilities_[0][0], np.eye(M + 1)[0], atol=1e-12)
    np.testing.assert_array_equal(model.predict_proba(STATES), np.eye(2)[y])


@pytest.mark.parametrize("name", SYMMETRIC)
def test_symmetric_functions_need_one_block(name):
    ones = STATES.sum(axis=1)
    y = SYMMETRIC[name](ones).astype(int)
    model = ExchangeableClassifier(blocks="full", alpha=0.0).fit(STATES, y)
    np.testing.assert_array_equal(model.predict_proba(STATES), np.eye(2)[y])
    for label, (q,) in enumerate(model.count_probabilities_):
        ways = np.bincount(ones[y == label], minlength=N + 1)
        np.testing.assert_allclose(q, ways / ways.sum(), atol=1e-12)
