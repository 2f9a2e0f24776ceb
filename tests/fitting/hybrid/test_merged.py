"""Merged variables are fitted as if they were apart, wherever a fit ends."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import log_softmax

from exchangeable.data.rows import Rows
from exchangeable.fitting.hybrid.convex import Centred, Solver, solve
from exchangeable.fitting.hybrid.design import Design
from exchangeable.fitting.hybrid.lbfgs import MEMORY
from exchangeable.fitting.hybrid.merged import Merged


def made_design(n_classes):
    """Rows of rare variables: many are on once, and some never."""
    rng = np.random.default_rng(0)
    X = rng.random((40, 150)) < rng.choice([0.01, 0.05, 0.3], size=150)
    matrix = sp.csr_array(X)
    ones = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
    rows = Rows(*X.shape, np.empty((0, 0), dtype=np.uint64), *ones)
    labels, weights = np.arange(40) % n_classes, rng.uniform(0.5, 2.0, 40)
    return X.astype(float), Design(rows, labels, weights, n_classes)


def fitted_apart(X, design, penalty, tol):
    """What the solver finds for a slope per variable and class."""
    k, total = design.n_classes, design.total
    bend = (1 - 1 / k) / k
    by_variable = np.sqrt((bend * (design.weights @ X) + penalty) / total)
    scale = np.append(np.sqrt(bend), by_variable)[:, None]
    values = np.column_stack([np.ones(len(X)), X])

    def objective(z):
        lines = z.reshape(-1, k) / scale
        log_p = log_softmax(values @ lines, axis=1)
        loss = -(design.weights * log_p[np.arange(len(X)), design.labels]).sum()
        residuals = design.weights[:, None] * (np.exp(log_p) - np.eye(k)[design.labels])
        penalised = np.vstack([np.zeros((1, k)), lines[1:]])
        gradient = (values.T @ residuals + penalty * penalised) / scale / total
        return (loss + penalty / 2 * (penalised**2).sum()) / total, gradient.ravel()

    options = {"gtol": tol, "ftol": 0.0, "maxcor": MEMORY}
    start = np.zeros((X.shape[1] + 1) * k)
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    return found.x.reshape(-1, k) / scale, found.nit


@pytest.mark.parametrize("tol", [1e-2, 1e-3, 1e-6])
def test_fits_end_where_they_would_with_variables_apart(tol):
    X, design = made_design(3)
    merged = Merged.of(design)
    assert (np.bincount(merged.line) > 1).any()
    assert (X.sum(axis=0) == 0).any()
    nothing = Centred(np.empty((0, 40, 3)), np.empty(0))
    fit = solve(merged, nothing, 0.5, Solver(tol), 1)
    lines, n_iter = fitted_apart(X, design, 0.5, tol)
    assert fit.n_iter == n_iter
    np.testing.assert_allclose(fit.base, lines[0], atol=1e-6)
    np.testing.assert_allclose(fit.slope, lines[1:], atol=1e-6)
    again = solve(merged, nothing, 0.5, Solver(tol), 1, fit)
    assert again.n_iter == 0
    np.testing.assert_allclose(again.slope, fit.slope, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3, 5, 9])
def test_passes_are_products_of_matrices(n_classes):
    X, design = made_design(n_classes)
    merged, rng = Merged.of(design), np.random.default_rng(1)
    slope = merged.apart(rng.normal(size=(merged.ones.size, design.width)))
    lines = merged.together(slope)
    np.testing.assert_allclose(merged.apart(lines), slope, atol=1e-12)
    start = rng.normal(size=(40, design.width))
    np.testing.assert_allclose(merged.scores(lines, start, 1), start + X @ slope, atol=1e-12)
    np.testing.assert_allclose(design.scores(slope, start, 1), start + X @ slope, atol=1e-12)
    np.testing.assert_allclose(design.gather(start, 1), X.T @ start, atol=1e-12)
    gradient = np.zeros_like(lines)
    merged.gather(start, gradient, 1)
    np.testing.assert_allclose((lines * gradient).sum(), (slope * (X.T @ start)).sum())


@pytest.mark.parametrize("n_classes", [2, 4])
def test_residuals_of_scores_however_large(n_classes):
    _, design = made_design(n_classes)
    scores = np.random.default_rng(2).normal(scale=300.0, size=(40, design.width))
    whole = np.column_stack([np.zeros(40), scores]) if n_classes == 2 else scores.copy()
    log_p = log_softmax(whole, axis=1)
    loss = design.settle(scores, 1)
    right = log_p[np.arange(40), design.labels]
    assert loss == pytest.approx(-(design.weights * right).sum(), rel=1e-12)
    expected = design.weights[:, None] * (np.exp(log_p) - np.eye(n_classes)[design.labels])
    np.testing.assert_allclose(scores, expected[:, -design.width :], atol=1e-12)
