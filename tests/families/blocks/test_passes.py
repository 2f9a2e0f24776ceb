"""The passes of EM over blocks, each against the plain definition."""

import numpy as np
import pytest
import scipy.sparse as sp

from exchangeable import Blocks, ExchangeableMixture
from exchangeable.data.examples import Examples, merge_equal_rows
from exchangeable.data.observed import Observed
from exchangeable.data.rows import as_rows
from exchangeable.families.blocks import passes
from exchangeable.families.blocks.model import COUNTS
from exchangeable.families.blocks.row_counts import RowCounts
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.common.tables import Tables
from exchangeable.partitions import Partition
from random_blocks import make


def rows_of(X):
    return as_rows(sp.csr_matrix(X), None)


def counts(X, partition):
    return np.stack([X[:, block].sum(axis=1) for block in partition.blocks], axis=1)


@pytest.mark.parametrize("steps", [None, 1000])
@pytest.mark.parametrize("walk", [False, True])
@pytest.mark.parametrize("density", [0.05, 0.6])
def test_passes_agree_with_the_definition(walk, density, steps, monkeypatch):
    if steps is not None:  # rows are cut as well as classes
        monkeypatch.setattr("exchangeable.data.examples.PART_STEPS", steps)
    rng, X, partitions = make(density=density)
    examples, _ = merge_equal_rows(Observed(rows_of(X)), rng.random(len(X)))
    if walk:
        examples = Examples(examples.rows, examples.weights)
    assert walk or (examples.codes is not None) == (density > 0.5)
    assert walk or (examples.columns is not None) == (density < 0.5)
    k = len(partitions)
    tables = Tables.layout(partitions)
    tables.values[:] = -rng.random(tables.values.size)
    log_prior = np.log(rng.dirichlet(np.ones(k)))
    joint = log_prior + np.stack(
        [
            sum(
                tables.of_class(y)[partition.starts[b] + column]
                for b, column in enumerate(counts(X, partition).T)
            )
            for y, partition in enumerate(partitions)
        ],
        axis=1,
    )
    posterior = np.exp(joint - joint.max(axis=1, keepdims=True))
    posterior /= posterior.sum(axis=1, keepdims=True)
    mass = examples.weights[:, None] * posterior
    found = passes.expect(examples, partitions, tables, log_prior, n_jobs=2)
    log_likelihood = examples.weights @ np.logaddexp.reduce(joint, axis=1)
    np.testing.assert_allclose(found.log_likelihood, log_likelihood, rtol=1e-12)
    np.testing.assert_allclose(found.posterior, posterior, atol=1e-13)
    np.testing.assert_allclose(found.moments[0], X.T @ mass, rtol=1e-10)
    np.testing.assert_allclose(found.moments[1], X.T @ (mass * posterior), rtol=1e-10)
    for y, partition in enumerate(partitions):
        expected = np.zeros(partition.table_size)
        for b, column in enumerate(counts(X, partition).T):
            np.add.at(expected, partition.starts[b] + column, mass[:, y])
        np.testing.assert_allclose(found.histograms[y], expected, atol=1e-10)


def test_impossible_and_known_rows():
    X = np.array([[1, 0], [0, 1], [1, 1]], dtype=np.uint8)
    partitions = [Partition.from_labels([0, 1])] * 2
    tables = Tables.layout(partitions)
    tables.values[:] = [-0.7, -0.7, 0.0, -np.inf, -0.1, -2.3, 0.0, -np.inf]
    log_prior = np.log([0.25, 0.75])
    examples, _ = merge_equal_rows(Observed(rows_of(X)), np.ones(3), np.array([1, -1, -1]))
    found = passes.score(RowCounts.of(examples, partitions), tables, log_prior)
    assert found.log_likelihood == -np.inf
    np.testing.assert_allclose(found.posterior, [[0, 1], [0.25, 0.75], [0.25, 0.75]])


@pytest.mark.parametrize("n_variables", [150, 2500])
@pytest.mark.filterwarnings("ignore:EM did not converge")
def test_counts_that_are_kept_and_counts_that_are_not_give_the_same_fit(n_variables, monkeypatch):
    """Few variables are counted by masks, many by walking; neither depends on what is kept."""
    rng = np.random.default_rng(3)
    kind = rng.integers(0, 2, 3000)
    X = rng.random((3000, n_variables)) < np.where(kind, 0.04, 0.1)[:, None]

    def fit():
        return ExchangeableMixture(3, blocks="welch", max_iter=6, random_state=0).fit(X)

    kept = fit()
    monkeypatch.setattr("exchangeable.families.blocks.row_counts.MOST_KEPT", 0)
    forgotten = fit()
    np.testing.assert_allclose(forgotten.history_[0], kept.history_[0], rtol=1e-12)
    for one, other in zip(kept.partitions_, forgotten.partitions_, strict=True):
        assert [block.tolist() for block in one] == [block.tolist() for block in other]


@pytest.mark.parametrize("accept", ["all", "component"])
def test_only_the_counts_of_the_latest_blocks_are_kept(accept, monkeypatch):
    rng = np.random.default_rng(4)
    X = rng.random((600, 60)) < rng.uniform(0.05, 0.6, 60)
    held, best = [], InMemory.best

    def watched(self, *arguments):
        found = best(self, *arguments)
        held.append(len(self.memo[COUNTS]))
        return found

    monkeypatch.setattr(InMemory, "best", watched)
    ExchangeableMixture(3, blocks=Blocks("evidence", accept=accept), random_state=0).fit(X)
    assert len(held) > 3
    assert max(held) == 1


def test_rows_without_shares_in_a_class_are_passed_over():
    """Most rows belong to one class alone."""
    rng, X, partitions = make(density=0.4, n_variables=40)
    weights = rng.random(len(X))
    examples = Examples(rows_of(X), weights)
    posterior = np.eye(3)[rng.integers(0, 3, len(X))]
    posterior[::50] = 1 / 3
    found = passes.soft_histograms(examples, posterior, np.arange(3), partitions, 1)
    for y, partition in enumerate(partitions):
        expected = np.zeros(partition.table_size)
        for b, column in enumerate(counts(X, partition).T):
            np.add.at(expected, partition.starts[b] + column, weights * posterior[:, y])
        np.testing.assert_allclose(found[y], expected, atol=1e-10)


@pytest.mark.parametrize("share", [1e-3, 1e-12, 1e-18, 1e-60, 1e-149])
def test_small_posteriors_are_kept_as_long_as_their_squares_are_numbers(share):
    partitions = [Partition.from_labels([0, 0, 1])] * 2
    tables = Tables.layout(partitions)
    tables.values[:] = -1.0
    examples = Examples(rows_of(np.array([[1, 0, 1], [0, 0, 0]])), np.ones(2))
    log_prior = np.log([1 - share, share])
    found = passes.score(RowCounts.of(examples, partitions), tables, log_prior)
    np.testing.assert_allclose(found.posterior, [[1 - share, share]] * 2, rtol=1e-9)


def candidates_of(examples, rng, n_variables, scales, n_classes=3):
    """Return blocks with random look-ups, of which some are likelier than others."""
    found = []
    for scale in scales:
        labels = rng.integers(0, 12, (n_classes, n_variables))
        partitions = [
            Partition.from_labels(np.unique(line, return_inverse=True)[1]) for line in labels
        ]
        tables = Tables.layout(partitions)
        tables.values[:] = -scale * rng.random(tables.values.size)
        found.append((RowCounts.of(examples, partitions), tables))
    return found


@pytest.mark.parametrize("scale", [0.1, 3.0, 200.0])
def test_estimates_in_single_precision_are_as_wrong_as_is_said(scale):
    rng, X, _ = make(density=0.3, n_variables=40)
    examples, _ = merge_equal_rows(Observed(rows_of(X)), rng.random(len(X)) * 5)
    [(counted, tables)] = candidates_of(examples, rng, 40, [scale])
    log_prior = np.log(rng.dirichlet(np.ones(3)))
    table = counted.counter.bundles.spread(tables)
    limit = passes._limiting(counted, table, tables, log_prior).run(1)
    exact = passes.score(counted, tables, log_prior).log_likelihood
    error = examples.total * passes.single_error(tables, log_prior)
    assert 0 < error < 1e-4 * examples.total * (1 + scale)
    assert exact <= limit <= exact + 2 * error


@pytest.mark.parametrize("guess", [0, 1, 2])
@pytest.mark.parametrize("scales", [(1.0, 2.0, 3.0), (3.0, 1.0, 2.0), (2.0, 3.0, 1.0)])
def test_the_likeliest_candidate_is_found_whatever_the_guess(guess, scales):
    rng, X, _ = make(density=0.3, n_variables=40)
    examples, _ = merge_equal_rows(Observed(rows_of(X)), np.ones(len(X)))
    candidates = candidates_of(examples, rng, 40, scales)
    log_prior = np.log(np.full(3, 1 / 3))
    scored = [passes.score(*each, log_prior) for each in candidates]
    best = int(np.argmax([each.log_likelihood for each in scored]))
    winner, found = passes.likeliest(candidates, log_prior, guess, 1)
    assert winner == best
    assert found.log_likelihood == scored[best].log_likelihood
    np.testing.assert_array_equal(found.posterior, scored[best].posterior)


@pytest.mark.parametrize("guess", [0, 1])
@pytest.mark.parametrize("known", [False, True])
def test_candidates_that_no_estimate_can_tell_apart_are_scored(guess, known):
    """Equal ones, and those under which something is impossible or whose rows have labels."""
    rng, X, _ = make(density=0.3, n_variables=40)
    clamp = np.where(np.arange(len(X)) % 3, -1, 0) if known else np.empty(0, dtype=np.int64)
    examples = Examples(rows_of(X), np.ones(len(X)), clamp)
    [same] = candidates_of(examples, rng, 40, [2.0])
    log_prior = np.log(np.full(3, 1 / 3))
    assert passes.likeliest([same, same], log_prior, guess, 1)[0] == 0
    counted, tables = same
    impossible = Tables.layout(counted.partitions, np.full(tables.values.size, -np.inf))
    assert passes.likeliest([(counted, impossible), same], log_prior, guess, 1)[0] == 1
    assert passes.likeliest([same, (counted, impossible)], log_prior, guess, 1)[0] == 0
