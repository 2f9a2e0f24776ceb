"""Pólya's urn and measurements that are alike, against enumeration and the multivariate normal."""

import itertools
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import gammaln, logsumexp

import exchangeable
from exchangeable import ExchangeableClassifier, ExchangeableMixture
from exchangeable.data.columns.schema import typed
from exchangeable.data.rows import ColumnType
from exchangeable.families.mixed.parts.base import Prior
from exchangeable.families.mixed.parts.level_urn import LevelUrn
from exchangeable.families.mixed.parts.polya import Polya

TOP = 60
GRID = np.array(list(itertools.product(range(TOP), range(TOP))), dtype=float)
COUNT = ColumnType("count", 0)
sizes = st.floats(1.0, 50.0)


def urn(weights: Any, mean: float, size: float) -> Polya:
    a = np.asarray(weights, dtype=float)[:, None]
    largest = np.full(a.shape[0] + 1, 5)
    types = (COUNT,) * a.shape[0]
    return Polya(np.arange(a.shape[0]), types, a, np.array([mean]), np.array([size]), largest)


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.floats(0.05, 8.0), min_size=2, max_size=2),
    st.floats(0.2, 3.0),
    sizes | st.just(np.inf),
)
def test_counts_from_an_urn_answer_as_enumeration_does(
    weights: list[float], mean: float, size: float
) -> None:
    part = urn(weights, mean, size)
    log_p = part.score(GRID)[:, 0].reshape(TOP, TOP)
    total = GRID.sum(axis=1)
    r = size if np.isfinite(size) else 1e9
    wanted = stats.nbinom.logpmf(total, r, r / (r + mean))
    wanted += stats.dirichlet_multinomial.logpmf(GRID.astype(int), weights, total.astype(int))
    np.testing.assert_allclose(log_p.ravel()[:500], wanted[:500], atol=1e-5)
    assert logsumexp(log_p) == pytest.approx(0.0, abs=1e-6)
    far = np.array([[2.0, np.nan], [np.nan, 0.0], [np.nan, np.nan]])
    sums = logsumexp(log_p[2]), logsumexp(log_p[:, 0]), logsumexp(log_p)
    np.testing.assert_allclose(part.score(far)[:, 0], sums, atol=1e-6)
    shares = part.predictive(far[:1], 1, 0)[0]
    np.testing.assert_allclose(shares[:10], np.exp(log_p[2, :10] - sums[0]), atol=1e-6)
    shares = part.predictive(far[2:], 1, 0)[0]
    np.testing.assert_allclose(shares[:10], np.exp(logsumexp(log_p, axis=0))[:10], atol=1e-6)
    best = part.complete(far, 0)
    scores = part.score(best)[:, 0]
    assert scores[0] == pytest.approx(log_p[2].max(), abs=1e-9)
    assert scores[2] == pytest.approx(log_p.max(), abs=1e-9)


def bursts(n: int = 300) -> np.ndarray:
    rng = np.random.default_rng(0)
    shares = rng.dirichlet([0.5, 1.0, 0.2, 0.3], n)
    return np.stack([rng.multinomial(t, p) for t, p in zip(rng.poisson(6, n), shares, strict=True)])


def test_an_urn_is_fitted_by_maximum_likelihood() -> None:
    X = bursts()
    model = ExchangeableMixture(1, family="polya", blocks="full", kinds="count", alpha=0.0).fit(X)
    part: Any = model._model.parts[0]
    assert isinstance(part, Polya)
    a = part.weights[:, 0]
    for j, factor in itertools.product(range(4), (0.97, 1.03)):
        moved = a.copy()
        moved[j] *= factor
        other = urn(moved, part.means[0], part.sizes[0])
        assert other.score(X.astype(float)).sum() < part.score(X.astype(float)).sum()
    np.testing.assert_allclose(a, [0.5, 1.0, 0.2, 0.3], atol=0.15)


@pytest.mark.parametrize("holes", [False, True], ids=["complete", "holes"])
def test_em_with_urns_never_lowers_its_objective(holes: bool) -> None:
    rng = np.random.default_rng(1)
    group = rng.integers(0, 2, 200)
    table = pd.DataFrame(
        {f"word {j}": rng.negative_binomial(1, 0.3 + 0.3 * (group == j % 2)) for j in range(3)}
        | {f"item {j}": rng.choice(list("abc"), 200) for j in range(3)}
        | {f"mark {j}": rng.normal(group + rng.normal(size=200)) for j in range(3)}
    ).astype({f"word {j}": float for j in range(3)})
    if holes:
        table = table.mask(rng.random(table.shape) < 0.2)
    kinds = {f"word {j}": "count" for j in range(3)}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="EM did not converge")
        model = ExchangeableMixture(
            2,
            family="polya",
            blocks="full",
            kinds=kinds,
            tol=0.0,
            max_iter=15,
            random_state=0,
            pooling=1.0,
        ).fit(table)
    assert len(model.history_[0]) == 16  # no step was refused
    assert model.log_likelihood_ > model.history_[0][0]
    names = [part.name for part in model._model.parts]
    assert sorted(names) == ["alike", "level urn", "polya"]


LEVELS = np.array(list(itertools.product(range(3), repeat=4)), dtype=float)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.floats(0.05, 8.0), min_size=3, max_size=3), st.integers(0, 80))
def test_items_of_an_urn_answer_as_enumeration_does(weights: list[float], state: int) -> None:
    a = np.asarray(weights)[:, None]
    part = LevelUrn(np.arange(4), (ColumnType("nominal", 3),) * 4, a)
    log_p = part.score(LEVELS)[:, 0]
    counts = np.stack([(v == LEVELS).sum(axis=1) for v in range(3)], axis=1)
    ways = gammaln(5) - gammaln(counts + 1).sum(axis=1)
    wanted = stats.dirichlet_multinomial.logpmf(counts, weights, 4) - ways
    np.testing.assert_allclose(log_p, wanted, atol=1e-9)
    assert logsumexp(log_p) == pytest.approx(0.0, abs=1e-9)
    row = LEVELS[state].copy()
    row[[1, 3]] = np.nan
    agree = (LEVELS[:, [0, 2]] == row[[0, 2]]).all(axis=1)
    assert part.score(row[None])[0, 0] == pytest.approx(logsumexp(log_p[agree]), abs=1e-9)
    shares = part.predictive(row[None], 3, 0)[0]
    for level in range(3):
        here = agree & (LEVELS[:, 3] == level)
        wanted = np.exp(logsumexp(log_p[here]) - logsumexp(log_p[agree]))
        assert shares[level] == pytest.approx(wanted, abs=1e-9)
    best = part.score(part.complete(row[None], 0))[0, 0]
    assert best == pytest.approx(log_p[agree].max(), abs=1e-9)


def test_draws_from_urns_follow_their_distributions() -> None:
    rng, n = np.random.default_rng(5), 4000
    part = LevelUrn(np.arange(4), (ColumnType("nominal", 3),) * 4, np.array([[0.4], [1.0], [2.0]]))
    drawn = part.draw(np.full((n, 4), np.nan), 0, rng)
    seen = np.array([(drawn == state).all(axis=1).sum() for state in LEVELS])
    assert stats.chisquare(seen, n * np.exp(part.score(LEVELS)[:, 0]))[1] > 1e-3
    counts = urn([0.4, 1.5], 2.0, 3.0)
    drawn = counts.draw(np.tile([np.nan, np.nan], (n, 1)), 0, rng)
    few = (drawn < 5).all(axis=1)
    cells = np.bincount((drawn[few, 0] * 5 + drawn[few, 1]).astype(int), minlength=25)
    wanted = n * np.exp(counts.score(GRID)[:, 0].reshape(TOP, TOP)[:5, :5]).ravel()
    both = np.append(cells, n - cells.sum()), np.append(wanted, n - wanted.sum())
    assert stats.chisquare(*both)[1] > 1e-3


def test_alike_measurements_are_exchangeable_normals() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 1)) + 0.7 * rng.normal(size=(400, 4))
    model = ExchangeableMixture(
        1, family="polya", blocks="full", kinds="continuous", alpha=0.0, tol=1e-9, max_iter=2000
    ).fit(X)
    part: Any = model._model.parts[0]
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    sample = Z.T @ Z / len(Z)
    off = (sample.sum() - np.trace(sample)) / 12
    wanted = np.full((4, 4), off) + np.eye(4) * (1 - off)
    found = part.loadings[:, :, 0] @ part.loadings[:, :, 0].T + np.diag(part.variances[:, 0])
    np.testing.assert_allclose(found, wanted, atol=1e-4)
    assert np.ptp(part.means[:, 0]) == 0
    score = stats.multivariate_normal.logpdf(Z, np.zeros(4), found)
    plain = typed(Z, (ColumnType("continuous", 0),) * 4)
    np.testing.assert_allclose(model._model.score(plain)[:, 0], score, atol=1e-6)


@pytest.mark.parametrize(
    ("family", "blocks"), [("polya", "full"), ("mixed", "full"), ("mixed", "independent")]
)
def test_sparse_counts_are_fitted_as_dense_ones(family: str, blocks: str, tmp_path: Path) -> None:
    X, y = bursts(), np.arange(300) % 2
    X[y == 1, 0] += 1
    sparse = sp.csr_matrix(X)
    options: dict[str, Any] = {"family": family, "blocks": blocks, "kinds": "count"}
    one = ExchangeableClassifier(**options).fit(X, y)
    other = ExchangeableClassifier(**options).fit(sparse, y)
    beyond = np.vstack([X[:20], [[200, 0, 3, 1]]])
    expected = one.predict_joint_log_proba(beyond)
    for model, rows in (
        (one, sp.csr_array(beyond)),
        (other, beyond),
        (other, sp.csc_array(beyond)),
    ):
        np.testing.assert_allclose(model.predict_joint_log_proba(rows), expected, rtol=1e-9)
    assert len(other.columns_["columns"]) == 1  # described once
    exchangeable.save(other, tmp_path / "counts.exch")
    same = exchangeable.load(tmp_path / "counts.exch")
    np.testing.assert_array_equal(same.predict_proba(sparse), other.predict_proba(sparse))
    assert other.conditional(1, {0: 2}).mean > 0
    mixture = ExchangeableMixture(2, random_state=0, **options)
    np.testing.assert_allclose(
        mixture.fit(sparse).score_samples(X), mixture.fit(X).score_samples(X), rtol=1e-6
    )
    holed = sparse.astype(float)
    holed.data[3] = np.nan
    assert np.isfinite(other.predict_log_proba(holed)).all()
    with pytest.raises(ValueError, match="column 0 is a count, but holds -1"):
        ExchangeableClassifier(**options).fit(sp.csr_matrix(-1 * (X > 99) - np.eye(300, 4)), y)


def test_pooled_rows_smooth_an_urn() -> None:
    """A column that a class never has keeps a weight, by the rows of the others."""
    X = np.array([[3.0, 0.0], [2.0, 0.0], [0.0, 4.0]])
    mass = np.eye(3)[:, :2] + [[0, 0], [1, 0], [0, 1]]
    pooled = Polya.first(np.arange(2), (COUNT,) * 2, X, np.ones((3, 1)), Prior(0.0))
    row = {name: each / 3 for name, each in pooled.sums(X, np.ones((3, 1))).items()}
    part = Polya.first(np.arange(2), (COUNT,) * 2, X, mass, Prior(0.1, 2.0, pooled, row))
    assert part.weights[1, 0] > 1e-3
    assert np.isfinite(part.log_prior(Prior(0.1, 2.0, pooled, row)))


def test_parameters_are_weights_and_those_of_totals() -> None:
    counts = np.random.default_rng(0).poisson(2.0, size=(60, 3))
    options: dict[str, Any] = dict(kinds="count", blocks="full", max_iter=2, tol=1.0)
    model = ExchangeableMixture(2, family="polya", random_state=0, **options).fit(counts)
    assert model._model.n_parameters == 2 * (3 + 2)


def test_units_of_holes_are_what_is_expected_of_them() -> None:
    draws = np.random.default_rng(3)
    counts = draws.poisson(2.0 * draws.gamma(1.0, size=(80, 1)), size=(80, 3)).astype(float)
    options: dict[str, Any] = dict(kinds="count", blocks="full", max_iter=3, tol=1.0)
    model = ExchangeableMixture(2, family="mixed", random_state=0, **options).fit(counts)._model
    counts[draws.random(counts.shape) < 0.3] = np.nan
    (part,) = model.parts
    units = part.sums(counts, np.ones((80, 2)))["units"]
    for y in range(2):
        expected = model.marginals(typed(counts, model.types), y).sum(axis=0)
        np.testing.assert_allclose(units[:, y], expected, rtol=1e-6)
