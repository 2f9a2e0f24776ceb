"""Bundles of blocks: their tables spread out, their histograms gathered."""

import numpy as np
import pytest

from exchangeable.families.blocks.bundles import MOST_ENTRIES, Bundles, gather
from exchangeable.families.common.tables import Tables
from random_blocks import make


@pytest.mark.parametrize("n_rows", [1, 800, 1 << 16])
def test_bundles_spread_tables_and_gather_histograms(n_rows):
    rng, _, partitions = make()
    tables = Tables.layout(partitions)
    tables.values[:] = rng.random(tables.values.size)
    bundles = Bundles.of(tables, n_rows)
    lengths = np.diff(tables.starts, append=tables.values.size)
    digits = [rng.integers(0, length) for length in lengths]
    spread = bundles.spread(tables)
    histogram = np.zeros(bundles.starts[-1])
    for g in range(bundles.starts.size - 1):
        own = bundles.order[bundles.first_block[g] : bundles.first_block[g + 1]]
        number = 0
        for b in own[::-1]:
            number = number * lengths[b] + digits[b]
        at = bundles.starts[g] + number
        assert np.isclose(spread[at], sum(tables.values[tables.starts[b] + digits[b]] for b in own))
        histogram[at] += 2.5
    expected = np.zeros(tables.values.size)
    expected[tables.starts + digits] = 2.5
    gathered = np.zeros(tables.values.size)
    for y in range(len(partitions)):
        gather(tables.starts, gathered, bundles, y, histogram)
    np.testing.assert_array_equal(gathered, expected)


def test_every_number_is_spread_and_gathered():
    rng, _, partitions = make(n_variables=40)
    tables = Tables.layout(partitions)
    tables.values[:] = rng.random(tables.values.size)
    bundles = Bundles.of(tables, 1 << 16)
    lengths = np.diff(tables.starts, append=tables.values.size)
    spread, histogram = bundles.spread(tables), rng.random(bundles.starts[-1])
    gathered, expected = np.zeros(tables.values.size), np.zeros(tables.values.size)
    overwritten = histogram.copy()
    for y in range(len(partitions)):
        gather(tables.starts, gathered, bundles, y, overwritten)
    for g in range(bundles.starts.size - 1):
        own = bundles.order[bundles.first_block[g] : bundles.first_block[g + 1]]
        values = np.zeros(1)
        for b in own:
            of_block = tables.values[tables.starts[b] :][: lengths[b]]
            values = (of_block[:, None] + values).ravel()
        masses = histogram[bundles.starts[g] : bundles.starts[g + 1]]
        np.testing.assert_array_equal(spread[bundles.starts[g] : bundles.starts[g + 1]], values)
        for b in own[::-1]:
            by_count = masses.reshape(lengths[b], -1)
            expected[tables.starts[b] :][: lengths[b]] += by_count.sum(axis=1)
            masses = by_count.sum(axis=0)
    np.testing.assert_allclose(gathered, expected, rtol=1e-13)


def test_bundles_are_of_one_class_and_filled_well():
    _, _, partitions = make(n_variables=60)
    tables = Tables.layout(partitions)
    bundles = Bundles.of(tables, 1 << 16)
    assert sorted(bundles.order) == list(range(tables.starts.size))
    for y in range(len(partitions)):
        first, last = bundles.first_block[bundles.first_bundle[y : y + 2]]
        own = bundles.order[first:last]
        assert sorted(own) == list(range(tables.first_block[y], tables.first_block[y + 1]))
    entries = np.diff(bundles.starts)
    assert entries.max() <= MOST_ENTRIES
    for y in range(len(partitions)):
        of_class = entries[bundles.first_bundle[y] : bundles.first_bundle[y + 1]]
        shortest = (partitions[y].sizes + 1).min()
        # What is left over could not have gone into an earlier bundle.
        assert (of_class[:-1] * shortest > MOST_ENTRIES).all()
