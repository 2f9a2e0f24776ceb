"""Gaussians with several factors, against dense formulas."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from exchangeable import ExchangeableImputer, ExchangeableMixture
from exchangeable.data.rows import ColumnType
from exchangeable.families.mixed.algebra import factor_kernels
from exchangeable.families.mixed.parts.base import Prior
from exchangeable.families.mixed.parts.factor import Factor

rng = np.random.default_rng(4)
N, M = 500, 9
LOADINGS = rng.normal(size=(M, 2))
VALUES = rng.normal(size=(N, 2)) @ LOADINGS.T + 0.3 * rng.normal(size=(N, M)) + 1.0
HOLED = np.where(rng.random(VALUES.shape) < 0.3, np.nan, VALUES)
TYPES = (ColumnType("continuous", 0),) * M


def fitted(values: np.ndarray, mass: np.ndarray) -> Factor:
    part = Factor.first(np.arange(M), TYPES, values, mass, Prior(1.0))
    for _ in range(3):
        part = part.following(part.sums(values, mass), Prior(1.0))
    return part


def dense(part: Factor, y: int) -> tuple[np.ndarray, np.ndarray]:
    loadings = part.loadings[:, :, y]
    return part.means[:, y], loadings @ loadings.T + np.diag(part.variances[:, y])


def test_evidence_finds_the_number_of_factors() -> None:
    assert fitted(VALUES, np.ones((N, 1))).n_factors == 2
    assert fitted(HOLED, np.ones((N, 1))).n_factors == 2
    alone = rng.normal(size=(N, M))
    assert fitted(alone, np.ones((N, 1))).n_factors == 1


def test_answers_are_those_of_the_dense_gaussian() -> None:
    part = fitted(HOLED, rng.dirichlet(np.ones(2), N))
    rows = HOLED[:20]
    scores, drawn = part.score(rows), part.draw(rows, 1, np.random.default_rng(0))
    for y in range(2):
        mean, covariance = dense(part, y)
        completed = part.complete(rows, y)
        for i, row in enumerate(rows):
            known = ~np.isnan(row)
            own = covariance[np.ix_(known, known)]
            expected = stats.multivariate_normal(mean[known], own).logpdf(row[known])
            assert scores[i, y] == pytest.approx(expected, abs=1e-9)
            if known.all():
                continue
            gain = covariance[np.ix_(~known, known)] @ np.linalg.inv(own)
            centre = mean[~known] + gain @ (row[known] - mean[known])
            np.testing.assert_allclose(completed[i, ~known], centre, atol=1e-9)
            left = covariance[np.ix_(~known, ~known)] - gain @ covariance[np.ix_(known, ~known)]
            hole = int(np.flatnonzero(~known)[0])
            found = part.predictive(rows[[i]], hole, y)
            assert found.mean[0] == pytest.approx(centre[0], abs=1e-9)
            assert found.variance[0] == pytest.approx(left[0, 0], abs=1e-9)
            np.testing.assert_array_equal(drawn[i, known], row[known])


def test_draws_have_the_covariance() -> None:
    part = fitted(VALUES, np.ones((N, 1)))
    mean, covariance = dense(part, 0)
    drawn = part.draw(np.full((40000, M), np.nan), 0, np.random.default_rng(1))
    scale = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=0.05)
    np.testing.assert_allclose(np.cov(drawn.T) / scale, covariance / scale, atol=0.03)


def test_likelihood_grows_until_it_is_that_of_the_covariance() -> None:
    """Complete rows of two factors: hardly worse than the likeliest Gaussian, and never falling."""
    mass = np.ones((N, 1))
    part, worth = fitted(VALUES, mass), [-np.inf]
    for _ in range(60):
        part = part.following(part.sums(VALUES, mass), Prior(1.0))
        worth.append(float(part.score(VALUES).sum()))
        assert worth[-1] >= worth[-2] - 1e-9
    full = stats.multivariate_normal(VALUES.mean(axis=0), np.cov(VALUES.T, ddof=0)).logpdf(VALUES)
    free = M * (M + 1) / 2 - (part.n_parameters - M)
    assert 0 < full.sum() - worth[-1] < 3 * free  # half a unit each is expected


def test_parts_with_other_numbers_of_factors_stack() -> None:
    two = fitted(VALUES, np.ones((N, 1)))
    one = Factor(two.columns, two.types, two.means, two.loadings[:, :1], two.variances)
    both = Factor.stack([one, two])
    np.testing.assert_allclose(both.score(HOLED[:30])[:, 0], one.score(HOLED[:30])[:, 0])
    np.testing.assert_allclose(both.score(HOLED[:30])[:, 1], two.score(HOLED[:30])[:, 0])


def test_inverses() -> None:
    half = rng.normal(size=(7, 5, 9))
    matrices = half @ half.transpose(0, 2, 1)
    inverses, log_dets = matrices.copy(), np.empty(7)
    factor_kernels.invert(inverses, np.empty((5, 5)), log_dets)
    np.testing.assert_allclose(inverses, np.linalg.inv(matrices), atol=1e-12)
    np.testing.assert_allclose(log_dets, np.linalg.slogdet(matrices)[1], atol=1e-12)


def test_imputer_chooses_columns_that_go_together() -> None:
    table = pd.DataFrame(HOLED, columns=[f"x{j}" for j in range(M)])
    imputer = ExchangeableImputer(method="marginal", random_state=0).fit(table)
    assert imputer.model_.blocks == "full"
    holes = np.isnan(HOLED)
    error = (imputer.transform(table).to_numpy() - VALUES)[holes]
    apart = ExchangeableMixture(20, random_state=0).fit(table).impute(table, "marginal")
    assert np.mean(error**2) < 0.5 * np.mean((apart.to_numpy() - VALUES)[holes] ** 2)
