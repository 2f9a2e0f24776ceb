"""The family of blocks: starts, which blocks a component takes, and the pooled prior."""

import numpy as np
import pytest

from exchangeable import Blocks, ExchangeableClassifier
from exchangeable.data.examples import Examples
from exchangeable.data.observed import Observed, flags
from exchangeable.data.stream.passes import ChunkedRows
from exchangeable.data.stream.sources import as_source
from exchangeable.families.blocks.family import BlockFamily
from exchangeable.families.blocks.model import BlockModel
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.common.streaming.streamed import Streamed
from exchangeable.families.problem import Problem
from exchangeable.partitions import Partition
from exchangeable.structure.proposals import Proposal
from made_rows import clusters, examples_of, fit_mixture

BLOCKS = [[0, 3], [1, 2, 4], [5]]


def smoothed_shares(X, block, alpha=0.1):
    counts = np.bincount(X[:, block].sum(axis=1), minlength=len(block) + 1)
    return (counts + alpha) / (len(X) + alpha * (len(block) + 1))


@pytest.mark.parametrize("blocks", ["evidence", "welch", "independent", "full", BLOCKS], ids=str)
def test_q_is_that_of_the_rows_and_of_pseudo_rows_like_the_training_set(blocks):
    """q = (h + c·q0) / (N + c), q0 being the smoothed share of the training set."""
    X, y = clusters(), np.arange(400) % 4 // 3
    model = ExchangeableClassifier(blocks=blocks, pooling=5.0).fit(X, y)
    for label in (0, 1):
        rows = X[y == label]
        for block, q in zip(
            model.partitions_[label], model.count_probabilities_[label], strict=True
        ):
            h = np.bincount(rows[:, block].sum(axis=1), minlength=block.size + 1)
            expected = (h + 5.0 * smoothed_shares(X, block)) / (len(rows) + 5.0)
            np.testing.assert_allclose(q, expected, rtol=1e-10)


def test_a_strong_prior_makes_all_components_the_training_set():
    X = clusters()
    model = fit_mixture(X, 2, blocks=BLOCKS, pooling=1e9, max_iter=3)
    for blocks in model.count_probabilities_:
        for block, q in zip(BLOCKS, blocks, strict=True):
            np.testing.assert_allclose(q, smoothed_shares(X, block), rtol=1e-5)


def test_structural_em_goes_on_under_a_pooled_prior():
    X = clusters(800, 12)
    kept = fit_mixture(X, blocks=Blocks("welch", relearn=False), pooling=2.0)
    learned = fit_mixture(X, blocks="welch", pooling=2.0)
    assert learned.log_likelihood_ > kept.log_likelihood_
    labels = [[p.labels.tolist() for p in model._model.partitions] for model in (kept, learned)]
    assert labels[0] != labels[1]


def two_structures(n=800):
    """Return rows of two kinds, and the blocks and posteriors under which each is explained."""
    rng = np.random.default_rng(0)
    pairs = np.repeat(rng.random((n, 2)) < 0.5, 2, axis=1)  # 0 with 1, 2 with 3
    crossed = np.repeat(rng.random((n, 2)) < 0.5, 2, axis=1)[:, [0, 2, 1, 3]]  # 0 with 2, 1 with 3
    X = np.concatenate([pairs, crossed]).astype(np.uint8)
    return X, Partition.from_labels([0, 0, 1, 1]), Partition.from_labels([0, 1, 0, 1])


def test_every_component_takes_the_blocks_that_explain_its_rows_better():
    X, along, across = two_structures()
    examples = examples_of(X)
    data = InMemory(examples, n_jobs=1)
    rows = flags(examples.rows)
    first = np.where(rows[:, 0] == rows[:, 1], 0.9, 0.2)
    posterior = np.stack([0.3 * first, 0.7 * (1 - first), 0.7 - 0.3 * first], axis=1)
    posterior /= posterior.sum(axis=1, keepdims=True)
    given = [along] * 3
    problem = Problem(3, given, examples=examples, alpha=0.1, accept="component")
    family = BlockFamily(problem)
    sums = family.held(data, posterior)
    old = family.first(data, sums, Proposal(given), None, None)
    sums = data.expect(old)
    choices = [
        family.first(data, sums, Proposal([blocks] * 3), None, None).model
        for blocks in (along, across)
    ]
    mass = examples.weights[:, None] * sums.posterior
    worth = [(mass * model.score(examples.observed)).sum(axis=0) for model in choices]
    for model, expected in zip(choices, worth, strict=True):
        np.testing.assert_allclose(model.expected_log_likelihood(), expected, rtol=1e-10)
    better = worth[1] > worth[0]
    assert better.any()
    assert not better.all()
    (chosen,) = family.candidates(data, old.model, sums, 1, [Proposal([across] * 3)])
    for y, crosswise in enumerate(better):
        assert chosen.partitions[y].same_as(across if crosswise else along)
        np.testing.assert_allclose(
            chosen.score(examples.observed)[:, y],
            choices[int(crosswise)].score(examples.observed)[:, y],
            rtol=1e-10,
        )


def dealt(data, seed, k=3):
    """Return which share of each row every component gets at the start."""
    family = BlockFamily(Problem(k, [Partition.from_labels(range(4))] * k))
    return family.start(data, "random", np.random.default_rng(seed))


def test_a_random_start_deals_equally_many_rows_out_in_an_order_that_is_random():
    rng = np.random.default_rng(0)
    X = np.unique(rng.integers(0, 2, (600, 12)), axis=0)[:300].astype(np.uint8)
    examples = examples_of(X)
    starts = [dealt(InMemory(examples), seed).posterior for seed in range(40)]
    for posterior in starts:
        np.testing.assert_array_equal(np.sort(posterior, axis=1), [[0, 0, 1]] * 300)
        np.testing.assert_array_equal(posterior.sum(axis=0), [100, 100, 100])
    # Any two rows are in one component in 99 of 299 starts: so neighbours are not alike or unlike.
    component = np.stack([posterior.argmax(axis=1) for posterior in starts])
    for apart in (1, 3, 100):
        together = (component[:, apart:] == component[:, :-apart]).mean()
        assert together == pytest.approx(99 / 299, abs=0.03)
    assert len({one.tobytes() for one in component}) == 40


def test_a_random_start_from_chunks_deals_rows_out_as_one_in_memory_does():
    rng = np.random.default_rng(1)
    X = np.unique(rng.integers(0, 2, (600, 12)), axis=0)[:300].astype(np.uint8)
    chunks = Streamed.of(ChunkedRows(as_source([X[:120], X[120:]])))
    in_memory = InMemory(examples_of(X), np.arange(300), np.ones(300))
    for seed in range(3):
        found, expected = dealt(chunks, seed), dealt(in_memory, seed)
        np.testing.assert_allclose(found.moments[0], expected.moments[0], atol=1e-9)
        np.testing.assert_allclose(found.totals, expected.totals)
    assert not np.allclose(dealt(chunks, 0).moments, dealt(chunks, 1).moments)


def test_known_entries_alone_say_how_often_a_variable_is_on():
    symbols = np.array([[1, 0, -1], [1, -1, -1], [0, 1, -1], [-1, 1, -1]], dtype=np.int8)
    observed, weights = Observed.from_symbols(symbols), np.array([1.0, 2.0, 3.0, 4.0])
    examples = Examples(observed.ones, weights, holes=observed.holes)
    posterior = np.array([[1.0, 0.0], [0.5, 0.5], [0.25, 0.75], [0.0, 1.0]])
    model = BlockModel.of_known_entries(examples, posterior, 1e-9)
    found = np.array([[block[1] for block in blocks] for blocks in model.count_probabilities()])
    mass = weights[:, None] * posterior
    for y, (first, second, third, fourth) in enumerate(mass.T):
        expected = [
            (first + second) / (first + second + third),
            (third + fourth) / (first + third + fourth),
            0.5,  # nobody knows
        ]
        np.testing.assert_allclose(found[y], expected, rtol=1e-6)
