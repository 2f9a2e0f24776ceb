"""Models with random parameters against enumeration of all states, for every pattern of holes."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import chisquare

from enumeration import agreeing, all_states
from exchangeable.arrays import UNASSIGNED
from exchangeable.data.observed import Observed
from exchangeable.data.rows import as_rows
from exchangeable.families.blocks.model import BlockModel
from exchangeable.families.count_trees.family import rake
from exchangeable.families.count_trees.forest import CountForest
from exchangeable.families.count_trees.model import CountTreeModel
from exchangeable.families.joined import JoinedModel
from exchangeable.families.trees.model import TreeModel
from exchangeable.families.urns.model import UrnModel
from exchangeable.partitions import Partition

N = 7
STATES = all_states(N)


def random_log_q(rng, partition):
    return np.concatenate([np.log(rng.dirichlet(np.ones(size + 1))) for size in partition.sizes])


def random_parents(rng, n):
    """A forest whose variables are numbered at random."""
    name = rng.permutation(n)
    parent = np.full(n, n, dtype=np.int32)
    for place in range(1, n):
        if rng.random() < 0.85:
            parent[name[place]] = name[rng.integers(place)]
    return parent


def blocks(seed, labels, alpha):
    """Blocks with random histograms; without smoothing some counts are impossible."""
    rng = np.random.default_rng(seed)
    partitions = [Partition.from_labels(list(entry)) for entry in labels]
    histograms = []
    for partition in partitions:
        parts = [rng.multinomial(40, rng.dirichlet(np.ones(m + 1))) for m in partition.sizes]
        histograms.append(np.concatenate(parts).astype(float))
    model = BlockModel(partitions, histograms, np.full(len(partitions), 40.0))
    model.set_tables(alpha)
    return model


def urns(seed, labels=((0,) * N, (0,) * N)):
    rng = np.random.default_rng(seed)
    partitions = [Partition.from_labels(list(entry)) for entry in labels]
    return UrnModel.make(
        partitions,
        rng.normal(0, 1.5, (N, len(labels))),
        [random_log_q(rng, partition) for partition in partitions],
    )


def trees(seed, counting, edges=True, k=2):
    rng = np.random.default_rng(seed)
    slope, pair = rng.normal(0, 1, (N, k)), rng.normal(0, 1.5, (N, k))
    parent = np.stack([random_parents(rng, N) for _ in range(k)], axis=1)
    pair[parent == N] = 0.0
    tree = (parent, pair) if edges else (np.empty((0, 0), np.int32), np.empty((0, 0)))
    if counting:
        log_q = np.log(rng.dirichlet(np.ones(N + 1), size=k).T)
        return TreeModel.make(np.zeros(k), slope, *tree, log_q)
    base = -np.array([logsumexp(plain_weight(slope, *tree, y)) for y in range(k)])
    return TreeModel.make(base, slope, *tree)


def plain_weight(slope, parent, pair, y):
    """The score of every state, edge by edge."""
    weight = STATES @ slope[:, y]
    for j in range(N) if parent.size else ():
        if parent[j, y] < N:
            weight = weight + pair[j, y] * STATES[:, j] * STATES[:, parent[j, y]]
    return weight


def count_trees(seed, labels, bins, parents):
    """Trees over counts with random parameters."""
    rng = np.random.default_rng(seed)
    forests, log_q, log_ratio = [], [], []
    for label, number, parent in zip(labels, bins, parents, strict=True):
        partition = Partition.from_labels(label)
        forest = CountForest.of(partition, np.concatenate(number), parent)
        q = random_log_q(rng, partition)
        margins, ratio = forest.bin_masses(np.exp(q)), np.empty(forest.n_cells)
        for child, above in forest.edges():
            apart = np.outer(margins[above], margins[child])
            both = rake(
                rng.dirichlet(np.ones(apart.size) / 2).reshape(apart.shape) + 1e-3,
                margins[above],
                margins[child],
            )
            forest.table(ratio, child)[:] = np.log(both / apart)
        forests.append(forest)
        log_q.append(q)
        log_ratio.append(ratio)
    return CountTreeModel(forests, log_q, log_ratio)


CHAIN = (
    ((0, 1, 0, 2, 1, 0, 2), (1, 1, 0, 0, 2, 3, 0)),
    (([0, 1, 1, 2], [0, 1, 2], [0, 1, 1]), ([0, 0, 1, 1], [0, 1, 2], [0, 1], [0, 1])),
    ((1, 3, 1), (4, 0, 0, 1)),
)

MODELS = {
    "blocks": lambda: blocks(11, ((0, 1, 0, 2, 1, 0, 3), (1, 1, 0, 0, 0, 1, 0)), 0.1),
    "one block, and single variables": lambda: blocks(12, ((0,) * N, range(N)), 0.3),
    "tree over counts": lambda: count_trees(6, *CHAIN),
    "two blocks' counts, and one block": lambda: count_trees(
        7,
        ((0, 1, 1, 0, 1, 0, 1), (0,) * N),
        (([0, 1, 2, 3], [0, 0, 1, 1, 1]), ([0, 0, 1, 1, 2, 2, 2, 3],)),
        ((2, 0), (1,)),
    ),
    "one weighted urn": lambda: urns(0),
    "several weighted urns": lambda: urns(1, ((0, 1, 0, 2, 1, 0, 3), (1, 1, 0, 0, 0, 1, 0))),
    "naive Bayes": lambda: trees(2, counting=False, edges=False),
    "tree": lambda: trees(3, counting=False),
    "weighted tree": lambda: trees(4, counting=True),
    "joined urns, trees, weighted trees and blocks": lambda: JoinedModel(
        [
            urns(8),
            trees(9, counting=False),
            trees(10, counting=True),
            blocks(13, ((0, 1, 0, 2, 1, 0, 3), (0,) * N), 0.1),
        ]
    ),
    "weighted tree without edges": lambda: trees(5, counting=True, edges=False),
}


@pytest.fixture(params=MODELS, ids=str, scope="module")
def model(request):
    return MODELS[request.param]()


def plain_log_prob(model, y):
    """log P of every state by the definitions, polynomials summed state by state."""
    if isinstance(model, JoinedModel):
        return plain_log_prob(model.parts[y // 2], y % 2)
    if isinstance(model, CountTreeModel):
        return plain_count_tree(model, y)
    if isinstance(model, BlockModel):
        return plain_blocks(model, y)
    if isinstance(model, UrnModel):
        total = np.zeros(len(STATES))
        partition = model.partitions[y]
        q_of = np.split(model.log_q[y], partition.starts[1:])
        for block, log_q in zip(partition.blocks, q_of, strict=True):
            total += tilted(STATES[:, block] @ model.log_weights[block, y], log_q, block)
        return total
    weight = plain_weight(model.slope, model.parent, model.pair, y)
    if not model.log_q.size:
        return weight - logsumexp(weight)
    return tilted(weight, model.log_q[:, y], np.arange(N))


def plain_blocks(model, y):
    """The share of rows with each count of a block, over the number of ways."""
    total, partition = np.zeros(len(STATES)), model.partitions[y]
    for block, q in zip(partition.blocks, model.count_probabilities()[y], strict=True):
        total += tilted(np.zeros(len(STATES)), np.log(q), block)
    return total


def plain_count_tree(model, y):
    """q of every block over the number of ways, and the ratios edge by edge."""
    forest, total, binned = model.forests[y], np.zeros(len(STATES)), []
    starts = forest.partition.starts[1:]
    parts = zip(np.split(model.log_q[y], starts), np.split(forest.bins, starts), strict=True)
    for block, (log_q, number) in zip(forest.partition.blocks, parts, strict=True):
        total += tilted(np.zeros(len(STATES)), log_q, block)
        binned.append(number[STATES[:, block].sum(axis=1)])
    for child, above in forest.edges():
        ratio = forest.table(model.log_ratio[y], child)
        total += ratio[binned[above], binned[child]]
    return total


def tilted(weight, log_q, block):
    """q(n)·weight / (weight of all states with n ones), each state of the block counted once."""
    rest = np.setdiff1d(np.arange(N), block)
    once = (STATES[:, rest] == 0).all(axis=1)
    counts = STATES[:, block].sum(axis=1)
    sums = np.array([logsumexp(weight[once & (counts == n)]) for n in range(block.size + 1)])
    return log_q[counts] + weight - sums[counts]


def rows_with_holes(seed, n_rows=40, share=0.5):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n_rows, N))
    holes = rng.random((n_rows, N)) < share
    holes[0], holes[1] = True, False
    X[holes] = 0
    return Observed(as_rows(X, None), as_rows(holes.astype(np.uint8), None))


def as_evidence(observed):
    dense = observed.symbols().astype(float)
    dense[dense == UNASSIGNED] = np.nan
    return dense


def test_every_class_sums_to_one(model):
    scores = model.score(Observed(as_rows(STATES, None)))
    np.testing.assert_allclose(np.exp(scores).sum(axis=0), 1, rtol=1e-12)
    for y in range(model.n_classes):
        np.testing.assert_allclose(scores[:, y], plain_log_prob(model, y), atol=1e-11)


def test_scores_of_rows_with_holes_are_sums_over_completions(model):
    observed = rows_with_holes(0)
    found = model.score(observed)
    for y in range(model.n_classes):
        log_p = plain_log_prob(model, y)
        for row, evidence in enumerate(as_evidence(observed)):
            expected = logsumexp(log_p[agreeing(STATES, evidence)])
            np.testing.assert_allclose(found[row, y], expected, atol=1e-11)


def test_marginals(model):
    observed = rows_with_holes(1)
    for y in range(model.n_classes):
        log_p = plain_log_prob(model, y)
        found = model.marginals(observed, y)
        for row, evidence in enumerate(as_evidence(observed)):
            able = agreeing(STATES, evidence)
            share = np.exp(log_p[able] - logsumexp(log_p[able]))
            np.testing.assert_allclose(found[row], share @ STATES[able], atol=1e-11)


def test_most_probable_completions(model):
    observed = rows_with_holes(2)
    for y in range(model.n_classes):
        log_p = plain_log_prob(model, y)
        completed, scores = model.complete(observed, y)
        for row, evidence in enumerate(as_evidence(observed)):
            able = agreeing(STATES, evidence)
            at = int(completed[row] @ 2 ** np.arange(N)[::-1])
            assert able[at]
            np.testing.assert_allclose(log_p[at], log_p[able].max(), atol=1e-11)
            np.testing.assert_allclose(scores[row], log_p[at], atol=1e-11)


@pytest.mark.parametrize("known", [{}, {1: 1, 4: 0}], ids=str)
def test_draws_have_the_conditional_distribution(model, known):
    """Chi-square over all completions; a right sampler fails one run in 10,000."""
    n_draws = 20_000
    X = np.zeros((n_draws, N), dtype=np.uint8)
    holes = np.ones((n_draws, N), dtype=np.uint8)
    evidence = np.full(N, np.nan)
    for j, value in known.items():
        X[:, j], holes[:, j], evidence[j] = value, 0, value
    observed = Observed(as_rows(X, None), as_rows(holes, None))
    able = agreeing(STATES, evidence)
    for y in range(model.n_classes):
        drawn = model.draw(observed, y, np.random.default_rng(y))
        log_p = plain_log_prob(model, y)[able]
        expected = n_draws * np.exp(log_p - logsumexp(log_p))
        seen = np.bincount(drawn.astype(int) @ 2 ** np.arange(N)[::-1], minlength=2**N)
        assert seen[~able].sum() == 0
        rare = expected < 5
        observed_counts = np.append(seen[able][~rare], seen[able][rare].sum())
        expected_counts = np.append(expected[~rare], expected[rare].sum())
        keep = expected_counts > 0
        assert chisquare(observed_counts[keep], expected_counts[keep]).pvalue > 1e-4


def test_stacked_and_chosen_classes_keep_their_scores(model):
    rows = Observed(as_rows(STATES, None))
    twice = type(model).stack([model, model])
    np.testing.assert_allclose(twice.score(rows), np.tile(model.score(rows), 2), atol=1e-12)
    last = model.only(np.array([1]))
    np.testing.assert_allclose(last.score(rows)[:, 0], model.score(rows)[:, 1], atol=1e-12)


def test_rows_that_a_class_excludes():
    """Counts never seen, without smoothing: −inf, and sums over what is left."""
    model = blocks(14, ((0, 0, 0, 1, 1, 2, 2), (0,) * N), 0.0)
    impossible = 0
    for y in range(model.n_classes):
        with np.errstate(divide="ignore"):
            log_p = plain_log_prob(model, y)
        impossible += np.isneginf(log_p).sum()
        np.testing.assert_allclose(model.score(Observed(as_rows(STATES, None)))[:, y], log_p)
        observed = rows_with_holes(4)
        scores, marginals = model.score(observed)[:, y], model.marginals(observed, y)
        for row, evidence in enumerate(as_evidence(observed)):
            able = agreeing(STATES, evidence)
            total = logsumexp(log_p[able])
            np.testing.assert_allclose(scores[row], total, atol=1e-11)
            assert np.isfinite(marginals[row]).all()
            if total > -np.inf:
                expected = np.exp(log_p[able] - total) @ STATES[able]
                np.testing.assert_allclose(marginals[row], expected, atol=1e-11)
    assert impossible > 0


def test_equal_weights_are_the_papers_block():
    log_q = np.log(np.random.default_rng(0).dirichlet(np.ones(N + 1)))
    partition = Partition.from_labels([0] * N)
    model = UrnModel.make([partition], np.full((N, 1), 0.7), [log_q])
    counts = STATES.sum(axis=1)
    n_ways = np.bincount(counts)
    expected = log_q[counts] - np.log(n_ways[counts])
    found = model.score(Observed(as_rows(STATES, None)))[:, 0]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_poisson_binomial_counts_are_naive_bayes():
    p = np.random.default_rng(0).uniform(0.05, 0.9, N)
    q = np.array([1.0])
    for share in p:
        q = np.convolve(q, [1 - share, share])
    partition = Partition.from_labels([0] * N)
    model = UrnModel.make([partition], np.log(p / (1 - p))[:, None], [np.log(q)])
    expected = np.log(np.where(STATES == 1, p, 1 - p)).sum(axis=1)
    found = model.score(Observed(as_rows(STATES, None)))[:, 0]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_weighted_tree_without_edges_is_a_weighted_urn():
    tree = MODELS["weighted tree without edges"]()
    partition = Partition.from_labels([0] * N)
    urn = UrnModel.make([partition] * 2, tree.slope, list(tree.log_q.T))
    observed = rows_with_holes(3)
    np.testing.assert_allclose(urn.score(observed), tree.score(observed), atol=1e-11)
    np.testing.assert_allclose(urn.marginals(observed, 1), tree.marginals(observed, 1), atol=1e-11)


@pytest.mark.parametrize("spread", [1.0, 6.0])
def test_large_weighted_trees_stay_numbers(spread):
    """Coefficients over thousands of orders of magnitude, checked against urns' ratios."""
    rng = np.random.default_rng(0)
    n = 600
    slope = rng.normal(-3, spread, (n, 1))
    log_q = np.log(rng.dirichlet(np.ones(n + 1)))[:, None]
    tree = TreeModel.make(np.zeros(1), slope, log_q=log_q)
    urn = UrnModel.make([Partition.from_labels([0] * n)], slope, [log_q[:, 0]])
    np.testing.assert_allclose(tree.scores.by_count, urn.scores.by_count, atol=1e-7)
    X = (rng.random((3, n)) < [[0.01], [0.3], [0.99]]).astype(np.uint8)
    holes = (rng.random((3, n)) < 0.3).astype(np.uint8)
    observed = Observed(as_rows(X * (1 - holes), None), as_rows(holes, None))
    np.testing.assert_allclose(tree.score(observed), urn.score(observed), atol=1e-7)
    np.testing.assert_allclose(tree.marginals(observed, 0), urn.marginals(observed, 0), atol=1e-9)


def test_a_hundred_thousand_words():
    """Documents of a few hundred among 100,000 words: finite, quick, and summing up."""
    rng = np.random.default_rng(0)
    n, reach = 100_000, 1000
    log_weights = rng.normal(-4, 3, (n, 1))
    log_q = np.full(n + 1, -np.inf)
    log_q[: reach + 1] = -np.log(reach + 1)
    model = UrnModel.make([Partition.from_labels(np.zeros(n, dtype=int))], log_weights, [log_q])
    nothing = as_rows(np.zeros((2, n), dtype=np.uint8), None)
    every = Observed(nothing, as_rows(np.ones((2, n), dtype=np.uint8), None))
    np.testing.assert_allclose(model.score(every), 0, atol=1e-9)
    marginals = model.marginals(every, 0)
    np.testing.assert_allclose(marginals.sum(axis=1), reach / 2, rtol=1e-9)
    drawn = model.draw(every, 0, rng)
    assert (drawn.sum(axis=1) <= reach).all()
    assert np.isfinite(model.score(Observed(as_rows(drawn, None)))).all()
