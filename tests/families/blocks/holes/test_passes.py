"""Expected counts of rows with holes against sums over the hidden ones, written out plainly."""

import numpy as np
import pytest
from scipy.stats import chisquare

from exchangeable.data.examples import Examples
from exchangeable.data.observed import Observed
from exchangeable.families.blocks.holes import passes as holes
from exchangeable.partitions import Partition
from hidden_counts import expected_counts, random_tables


@pytest.mark.parametrize("n_variables", [12, 400])
def test_expected_counts_are_those_of_the_hidden_ones(n_variables):
    """In one block of 400 variables pairs of counts and holes displace each other in the memo."""
    rng = np.random.default_rng(n_variables)
    symbols = (rng.random((150, n_variables)) < rng.random((150, 1))).astype(np.int8)
    symbols[rng.random(symbols.shape) < 0.5 * rng.random((150, 1))] = -1
    labels = np.zeros(n_variables, dtype=int) if n_variables > 12 else np.arange(12) // 5
    partition = Partition.from_labels(labels)
    tables = random_tables(rng, [partition])
    weights = rng.random(150)
    observed = Observed.from_symbols(symbols)
    examples = Examples(observed.ones, weights, holes=observed.holes)
    found = holes.expect(examples, tables, np.zeros(1), 1)
    histogram, log_p = expected_counts(symbols, weights, partition, tables.values)
    np.testing.assert_allclose(found.histograms[0], histogram, rtol=1e-9, atol=1e-12)
    assert found.log_likelihood == pytest.approx(weights @ log_p, rel=1e-10)


def test_counts_that_no_row_has_have_no_mass_at_all():
    """What is left by a subtraction is rounding, not rows: without smoothing it would be seen."""
    rng = np.random.default_rng(1)
    symbols = rng.integers(0, 2, (500, 9)).astype(np.int8)
    symbols[:, [0, 3, 6]] = 1
    symbols[rng.random(500) < 0.5, 1] = -1
    partitions = [Partition.from_labels(np.arange(9) // 3)] * 3
    tables = random_tables(rng, partitions)
    observed = Observed.from_symbols(symbols)
    examples = Examples(observed.ones, rng.random(500), holes=observed.holes)
    found = holes.expect(examples, tables, np.log([0.2, 0.3, 0.5]), 1)
    for partition, histogram in zip(partitions, found.histograms, strict=True):
        np.testing.assert_array_equal(histogram[partition.starts], 0.0)
        assert (histogram[partition.starts + 1] > 1.0).all()


def test_draws_of_a_block_are_completions_by_their_probability():
    """Chi-square over the eight completions of one pattern; a right sampler fails in 1 of 10^4."""
    rng = np.random.default_rng(3)
    partition = Partition.from_labels([0, 0, 0, 0, 0])
    table = random_tables(rng, [partition]).values
    symbols = np.tile(np.array([-1, 1, -1, 0, -1], dtype=np.int8), (4000, 1))
    drawn = holes.draw(Observed.from_symbols(symbols), partition, table, rng)
    assert (drawn[:, [1, 3]] == [1, 0]).all()
    seen = np.bincount(drawn[:, [0, 2, 4]] @ [4, 2, 1], minlength=8)
    ones = np.array([bin(number).count("1") for number in range(8)])
    chances = np.exp(table[1 + ones])
    assert chisquare(seen, 4000 * chances / chances.sum()).pvalue > 1e-4
