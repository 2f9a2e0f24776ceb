"""Hidden trees against enumeration of all rows and all hidden states."""

import itertools

import numpy as np
import pytest
from scipy.special import comb
from scipy.stats import chisquare

from enumeration import agreeing, all_states
from exchangeable.arrays import UNASSIGNED
from exchangeable.data.observed import Observed
from exchangeable.families.hidden_trees.model import HiddenModel
from exchangeable.families.hidden_trees.tree import HiddenTree
from exchangeable.families.joined import JoinedModel
from exchangeable.families.urns.model import UrnModel
from exchangeable.partitions import Partition

N = 5
STATES = all_states(N)
EVIDENCE = np.array(list(itertools.product((0, 1, UNASSIGNED), repeat=N)))
"""Every pattern of holes with every row that it leaves."""


def random_tree(seed, labels, h, states=None, sharp=1.0):
    rng = np.random.default_rng(seed)
    partition = Partition.from_labels(labels)
    n_blocks = partition.n_blocks
    name = rng.permutation(n_blocks)
    parent = np.full(n_blocks, n_blocks, dtype=np.int32)
    for place in range(1, n_blocks):
        parent[name[place]] = name[rng.integers(place)]
    log_q = np.concatenate(
        [np.log(rng.dirichlet(np.full(m + 1, sharp), size=h).T) for m in partition.sizes]
    )
    edges = rng.dirichlet(np.full(h, sharp), size=(n_blocks, h))
    return HiddenTree.make(partition, parent, log_q, edges, states)


MODELS = {
    "single variables": lambda: HiddenModel([random_tree(0, range(N), 3)]),
    "blocks": lambda: HiddenModel([random_tree(1, [0, 1, 0, 2, 0], 3)]),
    "one block": lambda: HiddenModel([random_tree(2, [0] * N, 2)]),
    "one state": lambda: HiddenModel([random_tree(3, range(N), 1)]),
    "two trees": lambda: HiddenModel(
        [random_tree(4, range(N), 2), random_tree(5, [0, 0, 1, 1, 2], 3, np.array([0, 2]))]
    ),
}


@pytest.fixture(params=MODELS, ids=str, scope="module")
def model(request):
    return MODELS[request.param]()


def plain_probabilities(tree, state):
    """P of every row given the root's state, by summing over all hidden states one by one."""
    inner = tree.messages
    partition, h = inner.partition, inner.n_states
    n_blocks = partition.n_blocks
    total = np.zeros(len(STATES))
    for hidden in itertools.product(range(h), repeat=n_blocks):
        chance = np.ones(len(STATES))
        for b, members in enumerate(partition.blocks):
            above = inner.parent[b]
            if above == n_blocks:
                chance *= hidden[b] == state
            else:
                chance *= inner.edges[b, hidden[above], hidden[b]]
            counts = STATES[:, members].sum(axis=1)
            q = np.exp(inner.log_q[partition.starts[b] + counts, hidden[b]])
            chance *= q / comb(members.size, counts)
        total += chance
    return total


def probabilities(model):
    return np.stack(
        [plain_probabilities(tree, s) for tree in model.trees for s in tree.states], axis=1
    )


def able(row):
    return agreeing(STATES, np.where(row == UNASSIGNED, np.nan, row.astype(float)))


def place_of(rows):
    return rows.astype(int) @ 2 ** np.arange(N)[::-1]


def test_every_class_sums_to_one_and_is_the_definition(model):
    found = np.exp(model.score(Observed.from_symbols(STATES)))
    np.testing.assert_allclose(found.sum(axis=0), 1, rtol=1e-12)
    np.testing.assert_allclose(found, probabilities(model), rtol=1e-10)


def test_scores_for_every_pattern_of_holes(model):
    found = np.exp(model.score(Observed.from_symbols(EVIDENCE)))
    p = probabilities(model)
    expected = np.stack([p[able(row)].sum(axis=0) for row in EVIDENCE])
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_marginals_for_every_pattern_of_holes(model):
    p = probabilities(model)
    for y in range(model.n_classes):
        found = model.marginals(Observed.from_symbols(EVIDENCE), y)
        for row, answer in zip(EVIDENCE, found, strict=True):
            share = p[able(row), y] / p[able(row), y].sum()
            np.testing.assert_allclose(answer, share @ STATES[able(row)], atol=1e-12)


def test_a_hidden_tree_joined_with_an_urn():
    hidden = HiddenModel([random_tree(6, [0, 1, 0, 2, 2], 3)])
    log_q = np.log(np.random.default_rng(7).dirichlet(np.ones(N + 1)))
    urn = UrnModel.make([Partition.from_labels([0] * N)], np.full((N, 1), 0.4), [log_q])
    joined, counts = JoinedModel([hidden, urn]), STATES.sum(axis=1)
    p = np.column_stack([probabilities(hidden), np.exp(log_q)[counts] / comb(N, counts)])
    observed = Observed.from_symbols(EVIDENCE)
    expected = np.stack([p[able(row)].sum(axis=0) for row in EVIDENCE])
    np.testing.assert_allclose(np.exp(joined.score(observed)), expected, rtol=1e-10)
    for y in range(joined.n_classes):
        for row, answer in zip(EVIDENCE, joined.marginals(observed, y), strict=True):
            share = p[able(row), y] / p[able(row), y].sum()
            np.testing.assert_allclose(answer, share @ STATES[able(row)], atol=1e-12)


def test_completions_agree_and_no_block_can_be_bettered(model):
    p = probabilities(model)
    best = 0
    for y in range(model.n_classes):
        completed, log_prob = model.complete(Observed.from_symbols(EVIDENCE), y)
        at = place_of(completed)
        np.testing.assert_allclose(np.exp(log_prob), p[at, y], rtol=1e-10)
        labels = model.partitions[y].labels
        for row, answer, here in zip(EVIDENCE, completed, at, strict=True):
            able_rows = np.flatnonzero(able(row))
            assert here in able_rows
            best += p[here, y] >= p[able_rows, y].max() * (1 - 1e-9)
            for b in range(model.partitions[y].n_blocks):
                others = labels != b
                same = (STATES[able_rows][:, others] == answer[others]).all(axis=1)
                assert p[here, y] >= p[able_rows[same], y].max() * (1 - 1e-6)
    assert best >= 0.95 * len(EVIDENCE) * model.n_classes


@pytest.mark.parametrize(
    ("seed", "labels"), [(94, [0, 1, 0, 2, 0]), (97, range(N)), (98, range(N))]
)
def test_a_completion_climbs_until_no_block_can_be_bettered(seed, labels):
    """Of six states none says it all: what is best with its states is far from best without."""
    model = HiddenModel([random_tree(seed, labels, 6, sharp=2.0)])
    log_p = model.score(Observed.from_symbols(STATES))
    block = model.partitions[0].labels
    for y in (0, 1):
        completed, log_prob = model.complete(Observed.from_symbols(EVIDENCE), y)
        np.testing.assert_allclose(log_prob, log_p[place_of(completed), y], rtol=1e-10)
        for row, answer, here in zip(EVIDENCE, completed, log_prob, strict=True):
            for b in range(block.max() + 1):
                same = able(row) & (STATES[:, block != b] == answer[block != b]).all(axis=1)
                assert here >= log_p[same, y].max() - 1e-9


@pytest.mark.parametrize("known", [{}, {1: 1, 4: 0}], ids=str)
def test_draws_have_the_conditional_distribution(model, known):
    """Chi-square over all completions; a right sampler fails one run in 10,000."""
    n_draws, p = 20_000, probabilities(model)
    row = np.full(N, UNASSIGNED)
    for j, value in known.items():
        row[j] = value
    observed = Observed.from_symbols(np.tile(row, (n_draws, 1)))
    for y in range(model.n_classes):
        drawn = model.draw(observed, y, np.random.default_rng(y))
        seen = np.bincount(place_of(drawn), minlength=2**N)
        assert seen[~able(row)].sum() == 0
        expected = n_draws * p[able(row), y] / p[able(row), y].sum()
        rare = expected < 5
        counts = np.append(seen[able(row)][~rare], seen[able(row)][rare].sum())
        wanted = np.append(expected[~rare], expected[rare].sum())
        keep = wanted > 0
        assert chisquare(counts[keep], wanted[keep]).pvalue > 1e-4


def test_draws_look_at_what_is_known_further_down():
    """A chain of three: what is drawn in the middle depends on the end, which is known."""
    log_q = np.log(np.tile([[0.9, 0.1], [0.1, 0.9]], (3, 1)))
    edges = np.array([[[0.5, 0.5], [0.5, 0.5]], [[0.6, 0.4], [0.3, 0.7]], [[0.9, 0.1], [0.1, 0.9]]])
    parent = np.array([3, 0, 1], dtype=np.int32)
    tree = HiddenTree.make(Partition.from_labels(range(3)), parent, log_q, edges)
    model, n_draws = HiddenModel([tree]), 4000
    observed = Observed.from_symbols(np.tile([-1, -1, 1], (n_draws, 1)))
    expected = model.marginals(observed, 0)[0]
    assert expected[1] > model.marginals(Observed.from_symbols(np.full((1, 3), -1)), 0)[0, 1] + 0.1
    drawn = model.draw(observed, 0, np.random.default_rng(0))
    np.testing.assert_allclose(drawn.mean(axis=0), expected, atol=0.04)  # five standard errors


def test_stacked_and_chosen_classes_keep_their_scores(model):
    rows = Observed.from_symbols(EVIDENCE)
    scores = model.score(rows)
    twice = HiddenModel.stack([model, model])
    np.testing.assert_array_equal(twice.score(rows), np.tile(scores, 2))
    kept = np.arange(twice.n_classes)[1::2]
    np.testing.assert_array_equal(twice.only(kept).score(rows), np.tile(scores, 2)[:, kept])
    assert twice.n_parameters == 2 * model.n_parameters


def test_count_probabilities_are_those_of_the_rows(model):
    p = probabilities(model)
    for y, blocks in enumerate(model.count_probabilities()):
        for members, q in zip(model.partitions[y].blocks, blocks, strict=True):
            counts = STATES[:, members].sum(axis=1)
            np.testing.assert_allclose(q, np.bincount(counts, weights=p[:, y]), rtol=1e-10)


def test_parameters_are_counted():
    """Blocks of 3, 1 and 1 variables with 3 states: 15 in the blocks, 12 on the two edges."""
    assert MODELS["blocks"]().n_parameters == 3 * 5 + 2 * 3 * 2


def test_nothing_underflows_over_many_variables():
    """A chain of 3,000 variables, whose probability is far below the smallest number."""
    n, h = 3_000, 4
    rng = np.random.default_rng(0)
    log_q = np.log(rng.dirichlet(np.ones(2), size=(n, h)).transpose(0, 2, 1).reshape(2 * n, h))
    edges = rng.dirichlet(np.full(h, 0.2), size=(n, h)) * 0.999 + 0.001 / h
    for parent in (np.arange(-1, n - 1), np.zeros(n)):  # a chain, and a star
        parents = parent.astype(np.int32)
        parents[0] = n
        model = HiddenModel(
            [HiddenTree.make(Partition.from_labels(np.arange(n)), parents, log_q, edges)]
        )
        rows = rng.integers(0, 2, (3, n))
        found = model.score(Observed.from_symbols(rows))
        np.testing.assert_allclose(found, in_logs(rows, parents, log_q, edges), rtol=1e-9)


def in_logs(rows, parent, log_q, edges):
    """Messages in logarithms, node by node; children have higher numbers than parents."""
    n, h = edges.shape[:2]
    below = log_q.reshape(n, 2, h)[np.arange(n), rows]
    for v in range(n - 1, 0, -1):
        message = np.logaddexp.reduce(np.log(edges[v]) + below[:, v, None, :], axis=2)
        below[:, parent[v]] += message
    return below[:, 0]
