"""The Boolean functions: right labels, the right distribution, the same rows in any chunks."""

import tracemalloc

import numpy as np
import pytest
from scipy.stats import chisquare

from exchangeable.datasets import iter_boolean, make_boolean

LABELS = {
    "parity": lambda X, n: n % 2 == 1,
    "counting": lambda X, n: n % 5 == 3,
    "threshold": lambda X, n: n >= 10,
    "exact": lambda X, n: np.isin(n, [0, 20, 40, 60, 80, 100]),
    "conjunction": lambda X, n: X[:, :3].sum(axis=1) == 3,
    "disjunction": lambda X, n: X[:, :3].sum(axis=1) > 0,
}


@pytest.mark.parametrize("ones", ["uniform", "fair"])
@pytest.mark.parametrize("function", LABELS)
def test_labels(function, ones):
    X, y = make_boolean(function, 5000, 100, random_state=0, ones=ones)
    assert X.shape == (5000, 100)
    assert X.dtype == np.uint8
    assert y.dtype == np.int64
    assert X.max() == 1
    np.testing.assert_array_equal(y, LABELS[function](X, X.sum(axis=1, dtype=int)))
    if ones == "uniform":
        assert set(y) == {0, 1}


def test_options_of_the_functions():
    n = make_boolean("parity", 500, 30, 1)[0].sum(axis=1)
    options = {"n_samples": 500, "n_variables": 30, "random_state": 1}
    _, y = make_boolean("counting", **options, modulus=7, remainder=2)
    np.testing.assert_array_equal(y, n % 7 == 2)
    _, y = make_boolean("threshold", **options, at_least=15)
    np.testing.assert_array_equal(y, n >= 15)
    _, y = make_boolean("exact", **options, counts=[4, 8])
    np.testing.assert_array_equal(y, (n == 4) | (n == 8))
    X, y = make_boolean("conjunction", **options, n_relevant=1)
    np.testing.assert_array_equal(y, X[:, 0])


@pytest.mark.parametrize("ones", ["uniform", "fair"])
@pytest.mark.parametrize("chunk_size", [1000, 4096, 10_000, 100_000])
def test_chunks_are_the_same_rows(chunk_size, ones):
    X, y = make_boolean("parity", 10_000, 70, random_state=3, ones=ones)
    chunks = list(iter_boolean("parity", 10_000, 70, 3, chunk_size=chunk_size, ones=ones))
    np.testing.assert_array_equal(np.concatenate([rows for rows, _ in chunks]), X)
    np.testing.assert_array_equal(np.concatenate([labels for _, labels in chunks]), y)
    assert all(len(rows) == chunk_size for rows, _ in chunks[:-1])


def test_more_rows_begin_with_the_same_rows():
    np.testing.assert_array_equal(
        make_boolean("parity", 9000, 20, 5)[0][:100], make_boolean("parity", 100, 20, 5)[0]
    )


def test_seeds():
    first, again, other = (make_boolean("parity", 50, 50, seed)[0] for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).mean() > 0.2
    state = np.random.RandomState(0)
    drawn = [make_boolean("parity", 50, 50, state)[0] for _ in range(2)]
    assert (drawn[0] != drawn[1]).any()


def test_number_of_ones_is_uniform_below_the_number_of_variables():
    X, _ = make_boolean("parity", 200_000, 20, random_state=0)
    counts = np.bincount(X.sum(axis=1), minlength=21)
    assert counts[20] == 0
    assert chisquare(counts[:20]).pvalue > 1e-3


def test_every_arrangement_of_the_ones_is_equally_likely():
    X, _ = make_boolean("parity", 120_000, 6, random_state=1)
    pattern = X @ (1 << np.arange(6))
    n_ones = X.sum(axis=1)
    for count in range(6):
        _, seen = np.unique(pattern[n_ones == count], return_counts=True)
        assert len(seen) == [1, 6, 15, 20, 15, 6][count]
        assert len(seen) == 1 or chisquare(seen).pvalue > 1e-3


def test_neighbouring_rows_and_columns_are_unrelated():
    X, _ = make_boolean("parity", 20_000, 64, random_state=2, ones="fair")
    for agreement in (X[1:] == X[:-1], X[:, 1:] == X[:, :-1]):
        error = 0.5 / np.sqrt(agreement.size)
        assert abs(agreement.mean() - 0.5) < 4 * error
    counts = make_boolean("parity", 20_000, 64, random_state=2)[0].sum(axis=1)
    assert abs(np.corrcoef(counts[1:], counts[:-1])[0, 1]) < 4 / np.sqrt(20_000)


def test_fair_bits_are_fair():
    X, _ = make_boolean("parity", 20_000, 100, random_state=4, ones="fair")
    error = 0.5 / np.sqrt(20_000)
    assert np.abs(X.mean(axis=0) - 0.5).max() < 5 * error
    assert X.sum(axis=1).std() == pytest.approx(5.0, rel=0.05)


def test_one_copy_in_memory():
    make_boolean("parity", 2, 2)
    tracemalloc.start()
    X, y = make_boolean("exact", 50_000, 1000, random_state=0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.1 * (X.nbytes + y.nbytes)


@pytest.mark.parametrize("n_variables", [1, 2])
def test_few_variables(n_variables):
    X, _ = make_boolean("parity", 100, n_variables, 0)
    assert X.sum(axis=1).max() == n_variables - 1


def test_no_rows():
    X, y = make_boolean("parity", 0, 5, 0)
    assert X.shape == (0, 5)
    assert y.shape == (0,)
    assert list(iter_boolean("parity", 0, 5, 0)) == []


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"function": "majority"}, "majority"),
        ({"function": "parity", "n_variables": 0}, "n_variables"),
        ({"function": "parity", "ones": "many"}, "many"),
        ({"function": "counting", "modulus": 3, "remainder": 3}, "remainder"),
        ({"function": "conjunction", "n_relevant": 0}, "n_relevant"),
        ({"function": "disjunction", "n_variables": 4, "n_relevant": 5}, "n_relevant"),
        ({"function": "disjunction", "n_relevant": 1.5}, "n_relevant must be an integer"),
        ({"function": "parity", "n_samples": -1}, "n_samples must be at least 0, got -1"),
        ({"function": "parity", "n_samples": 2.5}, "n_samples must be an integer, got 2.5"),
        ({"function": "parity", "n_variables": "3"}, "n_variables must be an integer, got '3'"),
        ({"function": "parity", "n_variables": 2**32}, "n_variables must be less than"),
        ({"function": "counting", "modulus": 2.5, "remainder": 1}, "modulus must be an integer"),
        ({"function": "threshold", "at_least": float("nan")}, "at_least must be an integer"),
        (
            {"function": "exact", "n_variables": 4, "counts": [5]},
            r"counts must be a list .* in \[0, 4\], got \[5\]",
        ),
        ({"function": "exact", "counts": []}, r"counts must be a list .*, got \[\]"),
        ({"function": "exact", "counts": [1.5]}, "each of counts must be an integer, got 1.5"),
        ({"function": "exact", "counts": 2}, r"counts must be a list .*, got 2"),
    ],
)
def test_what_makes_no_sense_is_refused(options, complaint):
    with pytest.raises((ValueError, TypeError), match=complaint):
        make_boolean(**options)
    with pytest.raises((ValueError, TypeError), match=complaint):
        iter_boolean(**options)


def test_chunks_have_rows():
    with pytest.raises(ValueError, match="chunk_size"):
        iter_boolean("parity", chunk_size=0)
