"""Expected sums over rows with holes: moments, and counts in blocks that are new."""

from itertools import product
from math import comb

import numpy as np
import pytest

from exchangeable.data.examples import Examples, merge_equal_rows
from exchangeable.data.observed import Observed
from exchangeable.families.blocks import row_counts
from exchangeable.families.blocks.holes.expected import STEPS, settled_counts
from exchangeable.families.blocks.holes.states import state_layout
from exchangeable.families.blocks.model import BlockModel
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.common.tables import Tables
from exchangeable.partitions import Partition

N_VARIABLES, LEAST = 7, 1e-3


def holed(rng: np.random.Generator, n_rows: int, n_variables: int = N_VARIABLES) -> Examples:
    symbols = rng.integers(0, 2, (n_rows, n_variables)).astype(np.int8)
    symbols[rng.random(symbols.shape) < 0.4] = -1
    return merge_equal_rows(Observed.from_symbols(symbols), rng.uniform(0.5, 2.0, n_rows))[0]


def blocks(rng: np.random.Generator, labels: list[list[int]]) -> BlockModel:
    partitions = [Partition.from_labels(np.array(each)) for each in labels]
    histograms = [
        np.concatenate([10.0 * rng.dirichlet(np.ones(size + 1)) for size in each.sizes])
        for each in partitions
    ]
    model = BlockModel(partitions, histograms, np.full(len(labels), 10.0))
    model.set_tables(0.1)
    return model


def enumerated(model: BlockModel, examples: Examples, posterior: np.ndarray) -> np.ndarray:
    """Return the moments by a sum over all completions of every row."""
    every = np.array(list(product([0, 1], repeat=N_VARIABLES)), dtype=np.int8)
    chances = np.exp(model.score(Observed.from_symbols(every)))
    moments = np.zeros((2, N_VARIABLES, model.n_classes))
    for row, weight, share in zip(
        examples.observed.symbols(), examples.weights, posterior, strict=True
    ):
        agrees = ((every == row) | (row < 0)).all(axis=1)
        for y in np.flatnonzero(share > LEAST):
            on = chances[agrees, y] @ every[agrees] / chances[agrees, y].sum()
            moments[0, :, y] += weight * share[y] * on
            moments[1, :, y] += weight * share[y] ** 2 * on
    return moments


@pytest.mark.parametrize("most_kept", [row_counts.MOST_KEPT, 0])
@pytest.mark.parametrize(
    "labels",
    [
        [[0, 1, 0, 1, 2, 2, 2], [0, 0, 0, 0, 0, 0, 0], [0, 1, 2, 3, 4, 5, 6]],
        [[0, 1, 2, 3, 4, 5, 6], [0, 1, 2, 3, 4, 5, 6], [0, 1, 2, 3, 4, 5, 6]],
    ],
)
def test_moments_are_those_of_all_completions(
    labels: list[list[int]], most_kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_counts, "MOST_KEPT", most_kept)
    rng = np.random.default_rng(3)
    examples, model = holed(rng, 40), blocks(rng, labels)
    posterior = rng.dirichlet(np.full(3, 0.3), examples.rows.n_rows)
    assert (posterior < LEAST).any()
    expected = enumerated(model, examples, posterior)
    found = model.expected_moments(InMemory(examples), posterior, LEAST)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    by_marginals = super(BlockModel, model).expected_moments(InMemory(examples), posterior, LEAST)
    np.testing.assert_allclose(by_marginals, expected, rtol=1e-12)


@pytest.mark.parametrize("n_large", [100, 400])
def test_moments_of_more_rows_than_are_added_at_a_time(n_large: int) -> None:
    """Rows have several words, and the numbers of a block of 400 variables need 32 bits."""
    rng = np.random.default_rng(5)
    n_variables = n_large + 30
    large = [0] * n_large + [1 + j // 3 for j in range(30)]
    mixed = list(rng.permutation(large))
    examples = holed(rng, 1500, n_variables)
    model = blocks(rng, [large, mixed])
    posterior = rng.dirichlet(np.full(2, 0.2), examples.rows.n_rows)
    data = InMemory(examples)
    found = model.expected_moments(data, posterior, LEAST)
    by_marginals = super(BlockModel, model).expected_moments(data, posterior, LEAST)
    np.testing.assert_allclose(found, by_marginals, rtol=1e-10)


def test_moments_of_listed_rows() -> None:
    """Rows with many variables are not packed, and their marginals are summed."""
    rng = np.random.default_rng(4)
    symbols = rng.integers(0, 2, (20, 3000)).astype(np.int8)
    symbols[rng.random(symbols.shape) < 0.1] = -1
    examples = merge_equal_rows(Observed.from_symbols(symbols), np.ones(20))[0]
    model = blocks(rng, [list(np.arange(3000) // 1000)])
    found = model.expected_moments(InMemory(examples), np.ones((20, 1)), LEAST)
    on = model.marginals(examples.observed, 0).sum(axis=0)
    np.testing.assert_allclose(found[:, :, 0], [on, on], rtol=1e-12)


def steps_of_em(size: int, seen: dict[tuple[int, int], float]) -> np.ndarray:
    """Return what EM makes of equal probabilities, each step summed over hidden ones."""
    share = np.full(size + 1, 1.0)
    for _ in range(STEPS):
        counts = np.zeros(size + 1)
        for (at_most, on), weight in seen.items():
            hidden = np.arange(at_most - on + 1)
            ways = np.array([comb(at_most - on, s) / comb(size, on + s) for s in hidden])
            chance = ways * share[on : at_most + 1]
            counts[on : at_most + 1] += weight * chance / chance.sum()
        share = counts
    return share


def test_counts_settle_as_by_em_over_hidden_ones() -> None:
    rng = np.random.default_rng(5)
    labels = np.array([0, 0, 0, 1, 0, 1])
    layout = Tables.layout([Partition.from_labels(labels), Partition.from_labels(0 * labels)])
    states = state_layout(layout)
    ends = np.append(states.starts[1:], states.values.size)
    by_state = rng.uniform(0.0, 3.0, states.values.size)
    by_state[rng.random(by_state.size) < 0.5] = 0.0
    by_state[states.starts[1] : ends[1]] = 0.0  # nothing was counted in the second block
    found = settled_counts(layout, states, by_state.copy())
    assert not found[layout.starts[1] : layout.starts[2]].any()
    for block, size in ((0, 4), (2, 6)):
        own = by_state[states.starts[block] : ends[block]]
        pairs = [(n, c) for n in range(size + 1) for c in range(n + 1)]
        seen = {pair: weight for pair, weight in zip(pairs, own, strict=True) if weight}
        counts = found[layout.starts[block] :][: size + 1]
        np.testing.assert_allclose(counts, steps_of_em(size, seen), rtol=1e-10)
        assert counts.sum() == pytest.approx(own.sum())


def test_counts_without_holes_are_the_counts() -> None:
    layout = Tables.layout([Partition.from_labels(np.zeros(5, dtype=int))])
    states = state_layout(layout)
    by_state = np.zeros(states.values.size)
    by_state[[n * (n + 1) // 2 + n for n in range(6)]] = np.arange(6.0)
    np.testing.assert_array_equal(settled_counts(layout, states, by_state), np.arange(6.0))


def test_counts_of_blocks_too_large_for_numbers_are_finite() -> None:
    """Where probabilities underflow, holes are on as often as what is known of their block."""
    size = 1800
    layout = Tables.layout([Partition.from_labels(np.zeros(size, dtype=int))])
    states = state_layout(layout)
    by_state = np.zeros(states.values.size)
    at_most, on = 1000, 600  # 200 holes per 600 known ones of 1,400 known entries
    by_state[at_most * (at_most + 1) // 2 + on] = 2.0
    counts = settled_counts(layout, states, by_state)
    assert counts.sum() == pytest.approx(2.0)
    assert counts @ np.arange(size + 1) / 2 == pytest.approx(600 + 400 * 600.5 / 1401, rel=0.05)
