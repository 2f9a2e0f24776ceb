"""Conditional maximum likelihood: the maximum, its curvature, and where there is none."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize

from exchangeable.families.items import answers_of
from exchangeable.rasch.answers import read_answers, sort_answers
from exchangeable.rasch.conditional import conditional_of, fit_conditional
from exchangeable.rasch.parameters import to_credits, to_thresholds
from exchangeable.rasch.scores import score_distribution
from rasch_data import draw_answers, with_holes

rng = np.random.default_rng(8)
ABILITY = rng.normal(size=150)
GRADED = with_holes(draw_answers([[-0.5, 0.5], [0.0], [-0.3, 0.0, 0.6]], ABILITY, rng), 0.15, rng)
BINARY = draw_answers([-1.0, -0.5, 0.0, 1.0], ABILITY, rng)


def written_out(X, highest, free):
    """Return the log-likelihood given the scores, by going through all answers of everybody."""
    log_credits = np.concatenate([[0.0], free])
    begins = np.concatenate([[0], np.cumsum(highest)])

    def worth(items, x):
        return sum(log_credits[begins[j] + int(v) - 1] for j, v in zip(items, x, strict=True) if v)

    total = 0.0
    distinct, counts = np.unique(np.nan_to_num(X, nan=-1), axis=0, return_counts=True)
    for line, count in zip(distinct, counts, strict=True):
        row = np.where(line < 0, np.nan, line)
        items = np.flatnonzero(~np.isnan(row))
        alike = [
            worth(items, x)
            for x in itertools.product(*[range(highest[j] + 1) for j in items])
            if sum(x) == row[items].sum()
        ]
        total += count * (worth(items, row[items]) - np.logaddexp.reduce(alike))
    return total


def test_items_with_different_numbers_of_answers_and_holes():
    """The maximum of the likelihood as it is written in the books."""
    answers = read_answers(GRADED)
    fit = fit_conditional(answers)
    steps = answers_of(answers.highest)
    found = optimize.minimize(
        lambda free: -written_out(GRADED, answers.highest, free), np.zeros(5), tol=1e-8
    )
    expected = to_thresholds(answers.highest) @ np.concatenate([[0.0], found.x])
    np.testing.assert_allclose(fit.parameters.thresholds[:, 0], expected, atol=1e-4)
    credits = to_credits(answers.highest, fit.parameters.thresholds[:, 0])
    free = (credits - credits[0] * steps)[1:]
    assert fit.log_likelihood == pytest.approx(written_out(GRADED, answers.highest, free), abs=1e-6)
    assert fit.n_parameters == 5


def test_locations_sum_to_zero_and_so_do_their_errors():
    parameters = fit_conditional(read_answers(GRADED)).parameters
    assert parameters.locations.sum() == pytest.approx(0.0, abs=1e-12)
    ends = parameters.intervals(0.9)
    assert (ends[0] < parameters.locations).all()
    assert (parameters.locations < ends[1]).all()
    covariance = fit_conditional(read_answers(BINARY)).parameters.covariance
    np.testing.assert_allclose(covariance.sum(axis=0), 0.0, atol=1e-12)


def test_weights_are_numbers_of_persons():
    times = rng.integers(0, 4, size=len(GRADED))
    one = fit_conditional(read_answers(GRADED, sample_weight=times))
    other = fit_conditional(read_answers(np.repeat(GRADED, times, axis=0)))
    np.testing.assert_allclose(one.parameters.thresholds, other.parameters.thresholds, atol=1e-9)
    np.testing.assert_allclose(one.parameters.covariance, other.parameters.covariance, atol=1e-9)


def test_small_weights():
    one = fit_conditional(read_answers(BINARY)).parameters
    other = fit_conditional(read_answers(BINARY, sample_weight=np.full(150, 1e-4))).parameters
    np.testing.assert_allclose(other.thresholds, one.thresholds, atol=1e-8)
    np.testing.assert_allclose(other.standard_errors, 100 * one.standard_errors, rtol=1e-6)


def test_many_patterns_start_from_a_few(monkeypatch):
    X = with_holes(draw_answers(list(np.linspace(-1, 1, 12)), rng.normal(size=600), rng), 0.3, rng)
    plain = fit_conditional(read_answers(X))
    monkeypatch.setattr("exchangeable.rasch.conditional.FEW_PATTERNS", 50)
    fewer = fit_conditional(read_answers(X))
    np.testing.assert_allclose(fewer.parameters.thresholds, plain.parameters.thresholds, atol=1e-8)


def test_binary_items_by_either_family():
    answers = read_answers(BINARY)
    answered = sort_answers(answers.only(persons=answers.informative))
    credits = np.array([0.3, 0.1, -0.2, -0.2])
    by_weights = conditional_of(np.ones(4, dtype=np.int64))
    by_levels = conditional_of(np.array([1, 1, 1, 2]))
    assert by_weights is not by_levels
    one, other = (f(answers.highest, credits, answered, 1) for f in (by_weights, by_levels))
    np.testing.assert_allclose(one.information, other.information, atol=1e-9)


def with_column(values):
    return np.column_stack([BINARY, values])


@pytest.mark.parametrize(("value", "name"), [(0.0, "nobody"), (1.0, "everybody")])
def test_items_that_all_or_none_solve_have_no_number(value, name):
    with pytest.warns(UserWarning, match=r"no finite estimate for item 'x4'.*left out"):
        fit = fit_conditional(read_answers(with_column(np.full(len(BINARY), value))))
    assert np.isnan(fit.parameters.thresholds[4]), name
    assert np.isnan(fit.parameters.standard_errors[4])
    plain = fit_conditional(read_answers(BINARY)).parameters
    np.testing.assert_allclose(fit.parameters.thresholds[:4], plain.thresholds, atol=1e-8)
    np.testing.assert_allclose(fit.parameters.standard_errors[:4], plain.standard_errors, atol=1e-8)
    assert "nan" in str(fit.parameters)


def test_items_that_only_extreme_persons_do_not_solve():
    """An item that all solve who solve any: those who solve none say nothing."""
    solved = (BINARY.sum(axis=1) > 0).astype(float)
    with pytest.warns(UserWarning, match="no finite estimate for item 'x4'"):
        fit_conditional(read_answers(with_column(solved)))


@pytest.mark.filterwarnings("ignore")
def test_estimates_are_finite_or_refused():
    """Few persons and graded items, where likelihoods often have no maximum."""
    source, fits, refusals = np.random.default_rng(0), 0, 0
    for _ in range(250):
        top = source.integers(1, 4)
        X = source.integers(0, top + 1, size=source.integers([3, 2], [40, 6])).astype(float)
        X = np.sort(X, axis=1) if source.random() < 0.5 else X
        try:
            found = fit_conditional(read_answers(X)).parameters
        except ValueError as error:
            refusals += "no maximum" in str(error)
            continue
        fits += 1
        known = ~np.isnan(found.thresholds)
        assert np.abs(found.thresholds[known]).max() < 8
        assert found.threshold_errors[known].min() > 0.05
        assert found.threshold_errors[known].max() < 10
    assert fits > 50
    assert refusals > 0


def test_perfect_separation():
    X = np.array([[1, 1, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 1, 0], [1, 1, 0, 1]] * 20)
    with pytest.raises(ValueError, match=r"cannot be put on one scale.*perfect separation"):
        fit_conditional(read_answers(X))


def test_items_that_nothing_links():
    X = np.vstack([with_holes(BINARY, 0.0, rng), BINARY])
    X[: len(BINARY), :2], X[len(BINARY) :, 2:] = np.nan, np.nan
    with pytest.raises(ValueError, match=r"nobody with information answered both items 'x2', 'x3'"):
        fit_conditional(read_answers(X))


def test_answers_that_nobody_gave():
    X = np.where(GRADED == 2, 3, GRADED)
    with pytest.raises(ValueError, match="answer 2 of item 'x0' was given by nobody"):
        fit_conditional(read_answers(X))


def test_nobody_tells_anything():
    with pytest.raises(ValueError, match="no person tells anything about the items"):
        fit_conditional(read_answers(np.repeat([[0], [1]], 4, axis=1)))
    with pytest.raises(ValueError, match="1 of 1 items can be used"):
        fit_conditional(read_answers([[0], [1]]))


def test_few_persons():
    X = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [0, 1, 1], [1, 0, 1]])
    with pytest.warns(UserWarning, match="only 6 persons"):
        fit = fit_conditional(read_answers(X))
    np.testing.assert_allclose(fit.parameters.thresholds, 0.0, atol=1e-9)
    with pytest.raises(ValueError, match="cannot be put on one scale"):
        fit_conditional(read_answers([[1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 1, 0], [1, 1, 0, 1]]))


@pytest.mark.parametrize(
    ("X", "match"),
    [
        ([[0.5, 1], [1, 0]], "row 0 to item 'x0' is 0.5"),
        ([[0, 1], [-1, 0]], "row 1 to item 'x0' is -1"),
        ([[0, 1], [1, 1000]], "is 1000; answers must be whole numbers from 0 to 100"),
        ([["a", "b"], ["b", "a"]], "answers cannot be read"),
        ([0, 1], "one row per person"),
        ([[0, np.inf], [1, 0]], "is inf"),
    ],
)
def test_answers_that_are_none(X, match):
    with pytest.raises(ValueError, match=match):
        read_answers(X)


@pytest.mark.parametrize("shift", [0.0, -700.0, 700.0])
def test_scores_of_many_items_with_holes_have_a_distribution(shift):
    rng = np.random.default_rng(4)
    n_items = 1500  # sums over their ways exceed the largest float
    X = (rng.random((40, n_items)) < 0.5).astype(float)
    X[rng.random(X.shape) < 0.01] = np.nan
    answers = read_answers(X)
    credits = rng.normal(size=n_items)
    shares = score_distribution(answers.highest, credits + shift, sort_answers(answers))
    assert shares.sum() == pytest.approx(1)
    for unit in (5e-324, 1e300):
        tiny = sort_answers(replace(answers, weights=np.full(40, unit)))
        assert score_distribution(answers.highest, credits, tiny).sum() == pytest.approx(1)
    same = score_distribution(answers.highest, credits, sort_answers(answers))
    np.testing.assert_allclose(shares, same, atol=1e-6)
