"""Polynomials of weights, and expectations given the count, against exact fractions."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy.special import gammaln

from exchangeable.families.common import count_smoothing
from exchangeable.families.common.pool import WIDTHS
from exchangeable.families.urns import kernels, series_kernels
from plain_smoothing import best_smoothing


def exact_polynomials(weights):
    e = [Fraction(1)] + [Fraction(0)] * len(weights)
    for number, weight in enumerate(map(Fraction, weights.tolist())):
        for count in range(number + 1, 0, -1):
            e[count] += weight * e[count - 1]
    return e


def expected(weights, histogram, known=()):
    out = np.empty(weights.size)
    kernels.expected_ones(weights, histogram, np.array(known, dtype=float), out)
    return out


def weights_of(kind, n, rng):
    return {
        "equal": np.ones(n),
        "near": np.exp(rng.normal(0.0, 0.5, n)),
        "wide": np.exp(rng.normal(0.0, 6.0, n)),
        "two kinds": np.where(np.arange(n) < n // 5, 1e6, 1e-6),
    }[kind]


@pytest.mark.parametrize("kind", ["equal", "near", "wide", "two kinds"])
def test_expectations_of_few_variables_are_those_of_all_subsets(kind):
    rng = np.random.default_rng(0)
    weights, histogram = weights_of(kind, 9, rng), rng.random(10)
    total = np.zeros(9)
    for count in range(1, 10):
        subsets = [list(each) for each in combinations(range(9), count)]
        chance = np.array([np.prod(weights[each]) for each in subsets])
        chance *= histogram[count] / chance.sum()
        for each, share in zip(subsets, chance, strict=True):
            total[each] += share
    np.testing.assert_allclose(expected(weights, histogram), total, rtol=1e-11)


@pytest.mark.parametrize("kind", ["equal", "near", "wide", "two kinds"])
@pytest.mark.parametrize("top", [3, 20, 50, 90])
def test_expectations_of_many_variables_are_exact(kind, top):
    rng = np.random.default_rng(top)
    weights, histogram = weights_of(kind, 90, rng), np.zeros(91)
    histogram[: top + 1] = rng.random(top + 1)
    e = exact_polynomials(weights)
    log_e = np.empty(91)
    kernels.log_polynomials(weights, log_e)
    logs = [math.log(each.numerator) - math.log(each.denominator) for each in e]
    np.testing.assert_allclose(log_e, logs, rtol=1e-13, atol=1e-11)
    # P(x_j = 1 | l) = θ_j·e_{l−1} of the others / e_l, in exact arithmetic for some variables.
    found = expected(weights, histogram)
    for j in range(0, 90, 31):
        others = exact_polynomials(np.delete(weights, j))
        chance = [
            float(Fraction(weights[j]) * others[count - 1] / e[count])
            for count in range(1, top + 1)
        ]
        np.testing.assert_allclose(found[j], histogram[1 : top + 1] @ chance, rtol=1e-10)
    np.testing.assert_allclose(expected(weights, histogram, log_e), found, rtol=1e-10)
    walked = np.empty(90)
    kernels._walk_down(weights, histogram, top, walked)
    np.testing.assert_allclose(walked, found, rtol=1e-10)


def test_polynomials_known_too_far_below_are_not_relied_on():
    rng = np.random.default_rng(1)
    weights, histogram = np.exp(rng.normal(0.0, 1.0, 300)), np.zeros(301)
    histogram[:101] = 1.0
    log_e = np.empty(301)
    kernels.log_polynomials(weights, log_e)
    full = expected(weights, histogram, log_e)
    for known in (50, 101, 103, 150):
        np.testing.assert_allclose(expected(weights, histogram, log_e[:known]), full, rtol=1e-10)


def log_sums(weights):
    """Return log e_l, one variable after the other in logarithms."""
    e = np.full(weights.size + 1, -np.inf)
    e[0] = 0.0
    for weight in weights:
        e[1:] = np.logaddexp(e[1:], e[:-1] + np.log(weight))
    return e


@pytest.mark.parametrize("kind", ["equal", "near", "wide", "two kinds"])
@pytest.mark.parametrize("n", [17, 203, 900])
def test_polynomials_of_hundreds_of_weights_are_log_sums(kind, n):
    weights = weights_of(kind, n, np.random.default_rng(n))
    for last in {n, n // 2}:
        log_e = np.empty(last + 1)
        kernels.log_polynomials(weights, log_e)
        np.testing.assert_allclose(log_e, log_sums(weights)[: last + 1], rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("kind", ["equal", "near", "wide", "two kinds"])
def test_expectations_with_a_count_far_from_the_others(kind):
    """Most rows are short and one is long; variables are left out one by one in logarithms."""
    rng, n = np.random.default_rng(3), 400
    weights, histogram = np.sort(weights_of(kind, n, rng)), np.zeros(n + 1)
    histogram[[0, 1, 2, 5, 6, 7, 8, 20, 31, 64]] = rng.random(10)
    histogram[[110, 333, n]] = 1e-3
    log_e = log_sums(weights)
    found = np.empty(n)
    assert series_kernels.sum_series(weights, log_e, histogram, found)
    seen = np.flatnonzero(histogram[1:]) + 1
    for j in range(0, n, 37):
        others = np.append(log_sums(np.delete(weights, j)), -np.inf)
        chance = np.exp(np.log(weights[j]) + others[seen - 1] - log_e[seen])
        np.testing.assert_allclose(found[j], histogram[seen] @ chance, rtol=1e-10)
    np.testing.assert_allclose(found.sum(), histogram @ np.arange(n + 1), rtol=1e-12)


@pytest.mark.parametrize("kind", ["equal", "near", "wide", "two kinds"])
@pytest.mark.parametrize("count", [1, 40, 150, 290])
def test_polynomials_within_the_margins_of_a_count_are_enough(kind, count):
    n = 300
    weights = np.sort(weights_of(kind, n, np.random.default_rng(count)))
    log_e, histogram = log_sums(weights), np.zeros(n + 1)
    histogram[count] = 2.0
    full, found = np.empty(n), np.empty(n)
    assert series_kernels.sum_series(weights, log_e, histogram, full)
    low = series_kernels.margin_below(count, n)
    high = series_kernels.margin_above(count, n)
    known = np.full(n + 1, np.inf)
    known[low : high + 1] = log_e[low : high + 1]
    assert series_kernels.sum_series(weights, known, histogram, found)
    np.testing.assert_allclose(found, full, rtol=1e-11)


def test_too_few_polynomials_are_noticed():
    n, count = 300, 100
    weights, histogram = np.geomspace(0.05, 20.0, n), np.zeros(n + 1)
    histogram[count] = 1.0
    log_e, out = log_sums(weights), np.empty(n)
    for first, last in ((0, 130), (70, n), (0, count - 1), (count, n)):
        known = np.full(n + 1, np.inf)
        known[first : last + 1] = log_e[first : last + 1]
        assert not series_kernels.sum_series(weights, known, histogram, out)
    assert not series_kernels.sum_series(weights, log_e[:130], histogram, out)


def test_every_histogram_is_smoothed_by_its_own_best_width():
    rng = np.random.default_rng(0)
    histograms = np.zeros((5, 80))
    np.add.at(histograms[0], rng.poisson(30, 25), 1.0)
    np.add.at(histograms[1], rng.geometric(0.05, 400) % 80, 0.7)
    histograms[2, [3, 50]] = 40.0, 1e-6
    np.add.at(histograms[3], rng.integers(0, 80, 12), 1.0)
    prior = np.tile(np.full(80, 0.01), (5, 1))
    out = np.empty(histograms.shape)
    count_smoothing.best_smoothing(histograms, prior, WIDTHS, out)
    for line, histogram in enumerate(histograms):
        expected_line = best_smoothing(histogram, prior[line]) if line < 4 else prior[4]
        np.testing.assert_allclose(out[line], expected_line, rtol=1e-10, err_msg=str(line))


def test_smoothing_spreads_by_a_gaussian_kernel():
    histograms, out, own = np.zeros((2, 60)), np.empty((2, 60)), np.empty((2, 60))
    histograms[0, 20] = 3.0
    histograms[1, [0, 20]] = 1.0, 1e-7  # too little to be spread
    count_smoothing.smooth_counts(histograms, 0.2, out, own)
    kernel = np.exp(-0.5 * ((np.arange(60) - 20) / 4.2) ** 2)
    kernel[np.abs(np.arange(60) - 20) > 13] = 0.0
    np.testing.assert_allclose(out[0], 3 * kernel / kernel.sum(), rtol=1e-12)
    np.testing.assert_array_equal(out[1], histograms[1])
    assert own[0, 20] == pytest.approx(1 / kernel.sum())
    assert own[1, 20] == 1.0


def test_thousands_of_equal_weights_are_added_at_once():
    """Rare words: closed form for one weight, and one variable after the other for several."""
    n, top = 5_000, 300
    log_e, counts = np.empty(top + 1), np.arange(top + 1)
    kernels.log_polynomials(np.full(n, 1e-3), log_e)
    ways = gammaln(n + 1) - gammaln(counts + 1) - gammaln(n - counts + 1)
    np.testing.assert_allclose(log_e, ways + counts * np.log(1e-3), rtol=1e-11, atol=1e-9)
    histogram = np.random.default_rng(0).random(top + 1)
    found = expected(np.full(n, 1e-3), np.append(histogram, np.zeros(n - top)))
    np.testing.assert_allclose(found, histogram @ counts / n, rtol=1e-10)

    weights = np.sort(
        np.concatenate([np.full(3_000, 1e-4), np.full(900, 0.02), np.geomspace(1e-3, 9, 40)])
    )
    log_e, plain = np.empty(top + 1), np.full(top + 1, -np.inf)
    plain[0] = 0.0
    for weight in weights:
        plain[1:] = np.logaddexp(plain[1:], plain[:-1] + np.log(weight))
    kernels.log_polynomials(weights, log_e)
    np.testing.assert_allclose(log_e, plain, rtol=1e-11, atol=1e-9)
    mass = np.append(histogram, np.zeros(weights.size - top))
    found, walked = expected(weights, mass), np.empty(weights.size)
    kernels._walk_down(weights, mass, top, walked)
    np.testing.assert_allclose(found, walked, rtol=1e-9)
