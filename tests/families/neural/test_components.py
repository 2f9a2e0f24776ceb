"""Decoded components: equal to the network's own likelihood, and exactly normalised."""

from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

from enumeration import all_states
from exchangeable.data.observed import Observed, as_observed
from exchangeable.families.neural import components, trees, urns

jax = pytest.importorskip("jax")
from exchangeable.devices.networks import batches, engine, residuals, scores  # noqa: E402

N, WIDE, K = 6, 9, 6
STATES = all_states(N)
rng = np.random.default_rng(3)
KIND = rng.integers(0, 2, size=(200, 1))
X = (rng.random((200, N)) < np.where(np.arange(N) % 2 == KIND, 0.8, 0.2)).astype(float)
MEANS = X.mean(axis=0)


PARENTS = np.array([[6, 0, 1, 2, 3, 4], [6, 0, 0, 6, 3, 3], [5, 5, 5, 5, 5, 6]], dtype=np.int32).T


def component(kind: str, holes: bool) -> components.Component:
    if kind == "independent":
        return components.Independent(MEANS, WIDE, holes)
    if kind == "urns":
        return urns.Urns(MEANS, WIDE)
    return trees.Trees(PARENTS[:, : int(kind[-1])], MEANS, WIDE, holes)


def outputs_of(made: components.Component) -> Any:
    bias = np.resize(made.bias, (K, made.bias.shape[1]))
    return bias + np.random.default_rng(1).normal(size=bias.shape)


def wide(symbols: Any, fill: int) -> Any:
    return np.pad(symbols, ((0, 0), (0, WIDE - N)), constant_values=fill).astype(np.int8)


CASES = [
    ("independent", False),
    ("independent", True),
    ("tree 1", False),
    ("tree 3", False),
    ("tree 3", True),
    ("urns", False),
]


@pytest.mark.parametrize(("kind", "holes"), CASES)
def test_the_compiled_model_is_what_the_network_was_trained_as(kind: str, holes: bool) -> None:
    made = component(kind, holes)
    outputs = outputs_of(made)
    symbols = STATES.astype(np.int8)
    if holes:
        gaps = np.random.default_rng(2).random(symbols.shape) < 0.4
        symbols = np.where(gaps, -1, symbols).astype(np.int8)
    score = scores.SCORES[made.head.kind]
    rows = wide(symbols, -1 if holes else 0)
    trained = score(made.head, made.constants, outputs.astype(np.float32), rows)
    model = made.model(outputs)
    np.testing.assert_allclose(
        model.score(Observed.from_symbols(symbols)), np.asarray(trained), atol=2e-5
    )
    total = logsumexp(model.score(as_observed(STATES, None)), axis=0)
    np.testing.assert_allclose(total, 0.0, atol=1e-12)


@pytest.mark.parametrize("kind", ["independent", "urns", "tree 1", "tree 3"])
def test_components_begin_at_the_means(kind: str) -> None:
    made = component(kind, False)
    expected = (STATES * np.log(MEANS) + (1 - STATES) * np.log1p(-MEANS)).sum(axis=1)
    found = made.model(made.bias).score(as_observed(STATES, None))
    np.testing.assert_allclose(found, np.tile(expected, (len(made.bias), 1)).T, atol=1e-9)


def log_likelihood(odds: Any, pair: tuple[int, int], theta: float, weights: Any) -> Any:
    """Return that of even shares of components with one more factor each, by enumeration."""

    def scores(rows: Any) -> Any:
        first, second = (rows[:, i, None] - 1 / (1 + np.exp(-odds[:, i])) for i in pair)
        return rows @ odds.T + theta * first * second

    each = logsumexp(scores(X) - logsumexp(scores(STATES), axis=0), axis=1) - np.log(len(odds))
    return weights @ each


def test_pairs_are_what_the_likelihood_would_gain_most_by() -> None:
    """The sums are derivatives of the log-likelihood, taken here by differences."""
    made = components.Independent(MEANS, WIDE, False)
    odds, some = outputs_of(made), np.random.default_rng(8).random(len(X))
    rows = batches.Symbols(wide(X, 0), some)
    identity = [(np.eye(WIDE, dtype=np.float32), np.zeros(WIDE, np.float32))]
    points = odds.astype(np.float32), np.full(K, -np.log(K), np.float32)
    where = jax.devices("cpu")[0]
    gains = residuals.pair_gains(made.head, identity, made.constants, points, rows, where)
    means = 1 / (1 + np.exp(-odds[:, :N]))
    log_odds, spread = odds[:, :N], means * (1 - means)
    joint = X @ log_odds.T - np.logaddexp(0, log_odds).sum(axis=1)
    shares = some @ np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    for i, j in ((0, 1), (2, 5), (1, 3)):
        up, down = (log_likelihood(log_odds, (i, j), theta, some) for theta in (1e-5, -1e-5))
        information = (shares * spread[:, i]) @ spread[:, j] + residuals.LEAST_INFORMATION
        assert gains[i, j] == pytest.approx(((up - down) / 2e-5) ** 2 / (2 * information), rel=2e-3)
        assert gains[j, i] == pytest.approx(gains[i, j], rel=1e-4)


def test_holes_are_drawn_where_pairs_are_compared() -> None:
    """With half of the entries hidden the strongest pair is the same, and unknown rows add none."""
    rng = np.random.default_rng(9)
    first = rng.random(4000) < 0.5
    rows = (rng.random((4000, N)) < 0.5).astype(np.int8)
    rows[:, 0], rows[:, 3] = first, first ^ (rng.random(4000) < 0.1)
    hidden = np.where(rng.random(rows.shape) < 0.5, -1, rows)
    made = components.Independent(np.full(N, 0.5), WIDE, True)
    layers = [(np.eye(WIDE, dtype=np.float32), np.zeros(WIDE, np.float32))]
    points = np.zeros((K, WIDE), np.float32), np.full(K, -np.log(K), np.float32)
    where = jax.devices("cpu")[0]
    found = [
        residuals.pair_gains(
            made.head, layers, made.constants, points, batches.Symbols(wide(some, -1), one), where
        )[:N, :N]
        for some, one in ((hidden, np.ones(4000)), (np.full_like(hidden, -1), np.ones(4000)))
    ]
    assert np.unravel_index(found[0].argmax(), (N, N)) in ((0, 3), (3, 0))
    assert trees.tree_of(found[0])[3] == 0
    assert found[0][0, 3] > 50 > found[1].max()


def test_counts_of_independent_variables_are_those_of_enumeration() -> None:
    chances = np.random.default_rng(5).random((2, N)).astype(np.float32)
    found = np.asarray(scores.count_probabilities(chances, 1 - chances))
    for line, p in zip(found, chances.astype(np.float64), strict=True):
        each = np.prod(np.where(STATES == 1, p, 1 - p), axis=1)
        expected = np.bincount(STATES.sum(axis=1).astype(int), weights=each)
        np.testing.assert_allclose(line, expected, rtol=1e-5)


def test_shares_follow_em() -> None:
    chances = np.random.default_rng(6).random((40, 3)).astype(np.float32)
    weights = np.random.default_rng(7).random(40).astype(np.float32)
    shares = np.array([0.2, 0.3, 0.5], dtype=np.float32)
    posterior = chances * shares
    posterior /= posterior.sum(axis=1, keepdims=True)
    expected = weights @ posterior / weights.sum()
    np.testing.assert_allclose(
        np.asarray(engine.next_shares(chances, weights, shares)), expected, rtol=1e-5
    )
