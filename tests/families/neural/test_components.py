"""Decoded components: equal to the network's own likelihood, and exactly normalised."""

from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

from enumeration import all_states
from exchangeable.data.examples import merge_equal_rows
from exchangeable.data.observed import Observed, as_observed
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.neural import components, trees, urns
from exchangeable.families.problem import Problem
from exchangeable.families.trees.model import TreeModel
from exchangeable.partitions import Partition

jax = pytest.importorskip("jax")
from exchangeable.devices import engine, scores  # noqa: E402

N, WIDE, K = 6, 9, 6
STATES = all_states(N)
rng = np.random.default_rng(3)
KIND = rng.integers(0, 2, size=(200, 1))
X = (rng.random((200, N)) < np.where(np.arange(N) % 2 == KIND, 0.8, 0.2)).astype(float)
MEANS = X.mean(axis=0)


def examples() -> Any:
    return merge_equal_rows(as_observed(X, None), np.ones(len(X)))[0]


def small_trees(count: int, varied: bool = False) -> TreeModel:
    problem = Problem(
        K, [Partition.from_labels(np.arange(N))] * K, examples=examples(), varied=varied
    )
    return trees.first_trees(problem, InMemory(examples()), count, np.random.default_rng(0))


def component(kind: str, holes: bool) -> components.Component:
    if kind == "independent":
        return components.Independent(MEANS, WIDE, holes)
    if kind == "urns":
        return urns.Urns(MEANS, WIDE)
    return trees.Trees(small_trees(int(kind[-1])), WIDE, holes)


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


def test_components_begin_as_what_they_are_made_of() -> None:
    rows = as_observed(STATES, None)
    for kind in ("independent", "urns"):
        made = component(kind, False)
        scores = made.model(made.bias).score(rows)[:, 0]
        expected = (STATES * np.log(MEANS) + (1 - STATES) * np.log1p(-MEANS)).sum(axis=1)
        np.testing.assert_allclose(scores, expected, atol=1e-9)
    small = small_trees(3)
    made = trees.Trees(small, WIDE, False)
    np.testing.assert_allclose(made.model(made.bias).score(rows), small.score(rows), atol=1e-9)
    assert (small.parent != small_trees(3, varied=True).parent).any() or not np.allclose(
        small.slope, small_trees(3, varied=True).slope
    )


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
