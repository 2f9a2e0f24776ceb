"""Trees over counts: every pattern of holes, models they contain, sums, bins and large blocks."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp

from enumeration import agreeing, all_states
from exchangeable.data.examples import merge_equal_rows
from exchangeable.data.observed import Observed
from exchangeable.data.rows import as_rows
from exchangeable.families.blocks.model import BlockModel
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.common.tables import Tables
from exchangeable.families.count_trees import family as count_trees
from exchangeable.families.count_trees.family import CountTreeFamily, choose_bins, rake
from exchangeable.families.count_trees.forest import CountForest, cut_counts
from exchangeable.families.count_trees.model import CountTreeModel
from exchangeable.families.mixture import Mixture
from exchangeable.families.problem import Problem
from exchangeable.families.trees.family import TreeFamily
from exchangeable.partitions import Partition
from exchangeable.structure.proposals import Proposal
from made_rows import examples_of

N = 6
STATES = all_states(N)
PATTERNS = np.array(list(itertools.product((0.0, 1.0, np.nan), repeat=N)))
LABELS = (0, 1, 2, 0, 1, 0)
BINS = (0, 1, 1, 2, 0, 1, 2, 0, 1)
PARENT = (3, 0, 1)


def observed(evidence):
    return Observed.from_symbols(np.where(np.isnan(evidence), -1, evidence).astype(np.int8))


def coupled(n_rows=800, seed=0, n=N):
    """Rows whose second half has about as many ones as the first."""
    rng = np.random.default_rng(seed)
    rate = rng.beta(0.7, 0.7, (n_rows, 1))
    return (rng.random((n_rows, n)) < rate).astype(np.uint8)


def first_of(kind, X, labels, shrinkage=1.0, strength=2.0, alpha=0.1):
    """Return what a family makes of rows that are all of one component."""
    examples, partition = examples_of(X), Partition.from_labels(list(labels))
    problem = Problem(
        1, [partition], examples=examples, pooling=strength, shrinkage=shrinkage, alpha=alpha
    )
    family, data = kind(problem), InMemory(examples)
    sums = family.held(data, np.ones((examples.rows.n_rows, 1)))
    return family.first(data, sums, Proposal([partition]), None, None).model


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(1)
    partition = Partition.from_labels(LABELS)
    forest = CountForest.of(partition, BINS, PARENT)
    q = np.concatenate([rng.dirichlet(np.ones(size + 1)) for size in partition.sizes])
    margins, log_ratio = forest.bin_masses(q), np.empty(forest.n_cells)
    for child, above in forest.edges():
        both = rake(rng.random((3, margins[child].size)), margins[above], margins[child])
        apart = np.outer(margins[above], margins[child])
        forest.table(log_ratio, child)[:] = np.log(both / apart)
    return CountTreeModel([forest], [np.log(q)], [log_ratio])


def test_every_pattern_of_holes(model):
    """All 3^6 rows with holes: scores, marginals and best completions by listing all states."""
    rows = observed(PATTERNS)
    log_p = model.score(Observed(as_rows(STATES, None)))[:, 0]
    np.testing.assert_allclose(np.exp(log_p).sum(), 1, rtol=1e-12)
    scores, marginals = model.score(rows)[:, 0], model.marginals(rows, 0)
    completed, best = model.complete(rows, 0)
    for row, evidence in enumerate(PATTERNS):
        able = agreeing(STATES, evidence)
        total = logsumexp(log_p[able])
        np.testing.assert_allclose(scores[row], total, atol=1e-12)
        expected = np.exp(log_p[able] - total) @ STATES[able]
        np.testing.assert_allclose(marginals[row], expected, atol=1e-12)
        at = int(completed[row].astype(int) @ 2 ** np.arange(N)[::-1])
        assert able[at]
        np.testing.assert_allclose([best[row], log_p[at]], log_p[able].max(), atol=1e-12)


def test_counts_of_a_block_have_its_q(model):
    """The ratios of the edges leave the distribution of each block's count as it is."""
    p = np.exp(model.score(Observed(as_rows(STATES, None)))[:, 0])
    for block, q in zip(model.partitions[0].blocks, model.count_probabilities()[0], strict=True):
        found = np.bincount(STATES[:, block].sum(axis=1), p)
        np.testing.assert_allclose(found, q, atol=1e-10)


def test_without_edges_it_is_the_papers_block_model():
    partition = Partition.from_labels(LABELS)
    histogram = np.random.default_rng(0).integers(1, 50, partition.table_size).astype(float)
    totals = np.add.reduceat(histogram, partition.starts)
    histogram /= np.repeat(totals, partition.sizes + 1)
    blocks = BlockModel([partition], [histogram], np.ones(1), Tables.layout([partition]))
    blocks.set_tables(0.0)
    forest = CountForest.of(partition, np.zeros(partition.table_size), [3, 3, 3])
    alone = CountTreeModel([forest], [np.log(histogram)], [np.empty(0)])
    rows = observed(PATTERNS)
    np.testing.assert_allclose(alone.score(rows), blocks.score(rows), atol=1e-12)
    np.testing.assert_allclose(alone.marginals(rows, 0), blocks.marginals(rows, 0), atol=1e-12)
    np.testing.assert_array_equal(alone.complete(rows, 0)[0], blocks.complete(rows, 0)[0])
    assert alone.n_parameters == N
    assert alone.edges()[0].shape == (0, 2)


def test_single_variables_make_the_chow_liu_tree(monkeypatch):
    """The same edges and the same likelihood as the family of trees over variables."""
    monkeypatch.setattr("exchangeable.families.trees.family.PENALTY", count_trees.PENALTY)
    X = coupled()
    X[:, 3] = np.where(np.arange(len(X)) % 3, X[:, 3], X[:, 0])
    counts = first_of(CountTreeFamily, X, range(N), shrinkage=5.0, strength=1e-9)
    plain = first_of(TreeFamily, X, range(N), shrinkage=5.0, strength=1e-9)
    rows = observed(PATTERNS)
    assert len(counts.edges()[0]) == N - 1
    np.testing.assert_array_equal(counts.edges()[0], plain.edges()[0])
    np.testing.assert_allclose(counts.score(rows), plain.score(rows), atol=1e-8)
    assert counts.n_parameters == plain.n_parameters


def test_sums_over_holes_are_sums_over_completions(model):
    rng = np.random.default_rng(3)
    chosen = PATTERNS[rng.integers(0, len(PATTERNS), 30)]
    weights = rng.random(30)
    examples, _ = merge_equal_rows(observed(chosen), weights)
    found = InMemory(examples).expect(Mixture(model, np.zeros(1)))
    log_p = model.score(Observed(as_rows(STATES, None)))[:, 0]
    mass = np.zeros(len(STATES))
    for evidence, weight in zip(chosen, weights, strict=True):
        able = agreeing(STATES, evidence)
        mass[able] += weight * np.exp(log_p[able] - logsumexp(log_p[able]))
    forest, binned = model.forests[0], []
    for b, block in enumerate(forest.partition.blocks):
        counts = STATES[:, block].sum(axis=1)
        start = forest.partition.starts[b]
        expected = np.bincount(counts, mass)
        part = found.blocks[0][start : start + expected.size]
        np.testing.assert_allclose(part, expected, atol=1e-12)
        binned.append(forest.bins[start + counts])
    for child, above in forest.edges():
        expected = np.zeros((forest.n_bins[above], forest.n_bins[child]))
        np.add.at(expected, (binned[above], binned[child]), mass)
        np.testing.assert_allclose(forest.table(found.edges[0], child), expected, atol=1e-12)
    by_row = np.array([logsumexp(log_p[agreeing(STATES, each)]) for each in chosen])
    np.testing.assert_allclose(found.log_likelihood, weights @ by_row, rtol=1e-12)


def test_the_chosen_tree_is_the_best_of_all():
    """No forest over three blocks has a higher penalised likelihood (all 7 are tried)."""
    rng = np.random.default_rng(0)
    X = coupled(600, n=6)
    X[:, 4:] = rng.integers(0, 2, (600, 2))
    X[:, 4] = np.where(rng.random(600) < 0.4, X[:, 0], X[:, 4])
    labels = (0, 0, 1, 1, 2, 2)
    found = first_of(CountTreeFamily, X, labels, shrinkage=1e-6, strength=1e-6)
    edges = {frozenset(map(int, edge)) for edge in found.edges()[0]}

    def gain(pair):
        a, b = (X[:, np.array(labels) == each].sum(axis=1) for each in pair)
        both = np.zeros((3, 3))
        np.add.at(both, (a, b), 1 / len(X))
        apart = np.outer(both.sum(axis=1), both.sum(axis=0))
        seen = both > 0
        return len(X) * (both[seen] * np.log(both[seen] / apart[seen])).sum() - 4

    pairs = [frozenset(pair) for pair in itertools.combinations(range(3), 2)]
    gains = {pair: gain(tuple(pair)) for pair in pairs}
    able = [set(some) for size in range(3) for some in itertools.combinations(pairs, size)]
    assert edges == max(able, key=lambda some: sum(gains[pair] for pair in some))
    assert len(edges) == 2


@pytest.mark.parametrize("seed", range(5))
def test_bins_are_few_and_full(seed):
    mass = np.random.default_rng(seed).pareto(1.0, 200) * (np.arange(200) % 3 > 0)
    bins = cut_counts(mass, 6, 2.0)
    assert bins[0] == 0
    assert set(np.diff(bins)) <= {0, 1}
    assert 2 <= bins[-1] + 1 <= 6
    assert np.bincount(bins, mass).min() >= 2.0


def test_the_last_bin_has_enough_mass_too():
    assert cut_counts(np.array([10, 10, 10, 0.5]), 8, 1.0).tolist() == [0, 1, 2, 2]
    assert cut_counts(np.array([0.5, 10, 10, 10]), 8, 1.0).tolist() == [0, 0, 1, 2]


def test_small_blocks_have_a_bin_for_every_count():
    masses = [np.array([300.0, 200.0, 100.0, 50.0]), np.array([649.0, 1.0])]
    assert choose_bins(masses).tolist() == [0, 1, 2, 3, 0, 1]
    with pytest.raises(
        ValueError, match="the limit is 8,000, the 5,000 blocks have 10,000: give larger blocks"
    ):
        choose_bins([np.array([600.0, 50.0])] * 5000)


def test_ten_thousand_words():
    """Blocks of thousands of words: finite, exact sums, and draws that the model finds possible."""
    rng = np.random.default_rng(0)
    n, half = 10_000, 5_000
    length = rng.gamma(2.0, 30.0, (300, 1))
    X = (rng.random((300, n)) < length / n).astype(np.uint8)
    model = first_of(CountTreeFamily, X, np.arange(n) // half)
    assert len(model.edges()[0]) == 1
    assert model.log_ratio[0].size <= 64
    every = observed(np.full((2, n), np.nan))
    np.testing.assert_allclose(model.score(every), 0, atol=1e-9)
    drawn = model.draw(every, 0, rng)
    assert np.isfinite(model.score(Observed(as_rows(drawn, None)))).all()
    known = X[:2].astype(float)
    known[:, half:] = np.nan
    longer = model.marginals(observed(known), 0)[:, half:].sum(axis=1)
    assert np.argmax(longer) == np.argmax(known[:, :half].sum(axis=1))
