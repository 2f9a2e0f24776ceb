"""States of blocks in rows with holes, against sums over hidden ones and the pass row by row."""

import numpy as np
import pytest

from exchangeable.data.examples import Examples
from exchangeable.data.observed import Observed
from exchangeable.families.blocks.holes import passes as holes
from exchangeable.families.blocks.holes.states import HoleStates, n_states, sizes_of
from exchangeable.families.blocks.model import BlockModel
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.common.tables import Tables
from exchangeable.families.mixture import Mixture
from exchangeable.partitions import Partition
from hidden_counts import expected_counts, random_tables


def random_symbols(rng, n_rows, n_variables):
    """Return rows in which a third of the entries is not known."""
    symbols = (rng.random((n_rows, n_variables)) < rng.random((n_rows, 1))).astype(np.int8)
    symbols[rng.random(symbols.shape) < 1 / 3] = -1
    return symbols


def fitted(tables, partitions, rng):
    """Return a model with given tables."""
    histograms = [rng.random(partition.table_size) for partition in partitions]
    return BlockModel(partitions, histograms, np.ones(len(partitions)), tables)


@pytest.mark.parametrize("n_variables", [7, 130])
def test_states_are_numbered_and_summed_out(n_variables):
    rng = np.random.default_rng(n_variables)
    partition = Partition.from_labels(np.arange(n_variables) % 3)
    tables = random_tables(rng, [partition])
    states = HoleStates.of(tables)
    symbols = random_symbols(rng, 40, n_variables)
    worth = np.zeros(40)
    for b, block in enumerate(partition.blocks):
        on, at_most = (symbols[:, block] == 1).sum(axis=1), (symbols[:, block] != 0).sum(axis=1)
        worth += states.tables.values[states.tables.starts[b] + at_most * (at_most + 1) // 2 + on]
    np.testing.assert_allclose(
        worth, expected_counts(symbols, np.ones(40), partition, tables.values)[1], rtol=1e-10
    )


def test_impossible_counts_stay_impossible():
    partition = Partition.from_labels(np.zeros(3, dtype=int))
    tables = Tables.layout([partition])
    tables.values[:] = [np.log(0.5), -np.inf, np.log(0.5 / 3), -np.inf]
    states = HoleStates.of(tables)
    # n, c = (1, 1) and (3, 3) name impossible counts; (1, 0) leaves only the row of zeros.
    np.testing.assert_allclose(
        states.tables.values[[1, 2, 9]], [np.log(0.5), -np.inf, -np.inf], rtol=1e-12
    )
    moved = states.expected_counts(tables, np.array([0, 2.0, 0, 0, 0, 0, 3.0, 0, 0, 0]))
    np.testing.assert_allclose(moved, [2 + 1.5, 0, 1.5, 0], rtol=1e-12)


def test_entries_too_far_apart_are_refused():
    tables = Tables.layout([Partition.from_labels(np.zeros(1, dtype=int))])
    tables.values[:] = [0.0, -700.0]
    assert HoleStates.of(tables) is None


@pytest.mark.parametrize(("n_variables", "n_jobs"), [(12, 1), (80, 2)])
def test_a_pass_by_states_finds_what_a_pass_row_by_row_finds(n_variables, n_jobs):
    rng = np.random.default_rng(n_variables)
    partitions = [Partition.from_labels(rng.integers(0, 5, n_variables)) for _ in range(3)]
    tables, weights = random_tables(rng, partitions), rng.random(300)
    observed = Observed.from_symbols(random_symbols(rng, 300, n_variables))
    clamp = np.where(rng.random(300) < 0.2, 1, -1)
    examples = Examples(observed.ones, weights, clamp, holes=observed.holes)
    log_prior = np.log([0.2, 0.3, 0.5])
    model = fitted(tables, partitions, rng)
    found = model.expect(InMemory(examples, n_jobs=n_jobs), log_prior)
    plain = holes.expect(examples, tables, log_prior, 1)
    assert found.log_likelihood == pytest.approx(plain.log_likelihood, rel=1e-12)
    np.testing.assert_allclose(found.posterior, plain.posterior, atol=1e-12)
    for one, other in zip(found.histograms, plain.histograms, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("too_many", [False, True])
def test_the_likeliest_candidate_is_chosen(too_many, monkeypatch):
    if too_many:
        monkeypatch.setattr(holes, "MOST_STATES", 0)
    rng = np.random.default_rng(8)
    observed = Observed.from_symbols(random_symbols(rng, 200, 9))
    data = InMemory(Examples(observed.ones, np.ones(200), holes=observed.holes), n_jobs=1)
    candidates = []
    for _ in range(3):
        partitions = [Partition.from_labels(rng.integers(0, 3, 9)) for _ in range(2)]
        model = fitted(random_tables(rng, partitions), partitions, rng)
        candidates.append(Mixture(model, np.log([0.5, 0.5])))
    sums, best = BlockModel.best(data, candidates)
    worth = [each.log_likelihood(data.examples) for each in candidates]
    assert best is candidates[int(np.argmax(worth))]
    assert sums.log_likelihood == pytest.approx(max(worth), rel=1e-12)


def test_packed_draws_are_the_same_draws():
    rng = np.random.default_rng(4)
    symbols = random_symbols(rng, 500, 70)
    partition = Partition.from_labels(np.arange(70) % 6)
    table = random_tables(rng, [partition]).values
    observed = Observed.from_symbols(symbols)
    plain = holes.draw(observed, partition, table, np.random.default_rng(9))
    numbers = np.random.default_rng(9).random(500 * 76)
    packed = holes.draw_packed(observed, partition, table, lambda size: numbers)
    bits = np.unpackbits(packed.bits.view(np.uint8), axis=1, count=70, bitorder="little")
    np.testing.assert_array_equal(bits, plain)


def test_sizes_and_states_of_a_layout():
    tables = Tables.layout([Partition.from_labels([0, 0, 1]), Partition.from_labels([0, 0, 0])])
    np.testing.assert_array_equal(sizes_of(tables), [2, 1, 3])
    np.testing.assert_array_equal(n_states(sizes_of(tables)), [6, 3, 10])
