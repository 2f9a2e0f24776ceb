"""The forms in which EM reads rows, each against the plain definition."""

import multiprocessing
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from exchangeable.fitting.structural_em import InMemory

from exchangeable import ExchangeableMixture
from exchangeable.data.examples import Examples, merge_equal_rows
from exchangeable.data.forms import Codes, Columns
from exchangeable.data.observed import Observed
from exchangeable.data.rows import as_rows
from exchangeable.families.blocks import passes
from exchangeable.families.blocks.bundles import MOST_ENTRIES, Bundles
from exchangeable.families.blocks.row_counts import RowCounts
from exchangeable.families.common.tables import Tables
from exchangeable.partitions import Partition
from exchangeable.runtime.threads import run
from exchangeable.runtime.vectors import TILE, exponential, logarithm
from exchangeable.structure.sweep import sweep, sweep_each


def rows_of(X):
    return as_rows(sp.csr_matrix(X), None)


def make(seed=0, n=700, n_variables=150, k=3, density=0.4):
    rng = np.random.default_rng(seed)
    X = (rng.random((n, n_variables)) < density).astype(np.int64)
    labels = [np.unique(rng.integers(0, 12, n_variables), return_inverse=True)[1] for _ in range(k)]
    return rng, X, [Partition.from_labels(one) for one in labels]


def counts(X, partition):
    return np.stack([X[:, block].sum(axis=1) for block in partition.blocks], axis=1)


def test_logarithm_is_exact_to_the_last_bits():
    halves = [1.0, 2.0, 20.0, 0.5, np.sqrt(0.5), np.sqrt(2.0)]
    x = np.append(np.exp(np.linspace(-690, 690, 20_001)), halves)
    np.testing.assert_allclose([logarithm(v) for v in x], np.log(x), rtol=1e-15, atol=1e-16)


def test_exponential_is_exact_to_the_last_bits():
    x = np.linspace(-40.0, 0.0, 2001)
    assert max(abs(exponential(v) / np.exp(v) - 1) for v in x) < 1e-15


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
        for b in own:
            number = number * lengths[b] + digits[b]
        at = bundles.starts[g] + number
        assert np.isclose(spread[at], sum(tables.values[tables.starts[b] + digits[b]] for b in own))
        histogram[at] += 2.5
    expected = np.zeros(tables.values.size)
    expected[tables.starts + digits] = 2.5
    gathered = np.zeros(tables.values.size)
    bundles.gather(histogram, np.arange(len(partitions)), tables, gathered)
    np.testing.assert_array_equal(gathered, expected)


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


def test_codes_expand_and_fold():
    rng, X, _ = make()
    codes = Codes.of(rows_of(X))
    lines = rng.random((X.shape[1], 4))
    expanded = codes.expand(lines)
    found = sum(expanded[g][codes.codes[g]] for g in range(len(codes.codes)))
    np.testing.assert_allclose(found, X @ lines)
    mass = rng.random((len(X), 4))
    sums = np.zeros(codes.sums_shape(4))
    for g, code in enumerate(codes.codes):
        np.add.at(sums[g], code, mass)
    np.testing.assert_allclose(codes.fold(sums), X.T @ mass)


def test_columns_list_the_ones_of_each_variable():
    _, X, _ = make(density=0.1)
    columns = Columns.of(rows_of(X))
    for tile, first in enumerate(columns.first_one):
        for j in range(X.shape[1]):
            rows = columns.row[first[j] : first[j + 1]]
            np.testing.assert_array_equal(rows, np.flatnonzero(X[tile * TILE :][:TILE, j]))


def test_partitions_of_lines_are_those_of_each():
    _, _, partitions = make()
    found = Partition.from_lines(np.stack([partition.labels for partition in partitions]))
    for one, expected in zip(found, partitions, strict=True):
        np.testing.assert_array_equal(one.labels, expected.labels)
        np.testing.assert_array_equal(one.sizes, expected.sizes)
        np.testing.assert_array_equal(one.starts, expected.starts)


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


@pytest.mark.parametrize("n_variables", [1, 7, 300, 5000])
@pytest.mark.parametrize("scale", [1.0, 1e-7, 1e-200])
def test_sweeping_together_is_sweeping_one_by_one(n_variables, scale):
    rng = np.random.default_rng(1)
    n, shape = 500.0, (5, n_variables)
    values = np.round(rng.beta(0.5, 2.0, shape), 2) * scale ** rng.random((5, 1))  # many are equal
    values[1] = 0.3 + 1e-9 * rng.random(n_variables)  # all in one bucket
    values[2] *= rng.random(n_variables) ** 30  # over very many
    values[3] = 0.0
    moments = np.stack([n * values.T, n * values.T**2 * (1 + rng.random(shape).T)])
    levels = (0.1, 0.5)
    together = sweep_each(moments, n, levels, 2)
    mean = moments[0].T / n
    variance = np.maximum(moments[1].T - n * mean**2, 0.0) / (n - 1)
    for found, level in zip(together, levels, strict=True):
        for y in range(5):
            np.testing.assert_array_equal(found[y], sweep(mean[y], variance[y], n, level))


def test_tasks_may_run_tasks_and_errors_arrive():
    assert run(lambda i: sum(run(lambda j: i * j, range(4), 4)), range(8), 4) == [
        6 * i for i in range(8)
    ]
    with pytest.raises(ZeroDivisionError):
        run(lambda i: 1 // i, [1, 2, 0, 3], 2)


def _in_child(queue):
    queue.put(run(lambda i: i + 1, range(6), 3))


@pytest.mark.skipif(sys.platform != "linux", reason="forking is safe on Linux only")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own():
    run(lambda i: i, range(4), 2)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=60) == [1, 2, 3, 4, 5, 6]
    child.join(60)


@pytest.mark.parametrize("n_variables", [150, 2500])
@pytest.mark.filterwarnings("ignore:EM did not converge")
def test_counts_that_are_kept_and_counts_that_are_not_give_the_same_fit(n_variables, monkeypatch):
    """Few variables are counted by masks, many by walking; neither depends on what is kept."""
    rng = np.random.default_rng(3)
    kind = rng.integers(0, 2, 3000)
    X = rng.random((3000, n_variables)) < np.where(kind, 0.04, 0.1)[:, None]

    def fit():
        return ExchangeableMixture(3, structure="welch", max_iter=6, random_state=0).fit(X)

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
        held.append(len(self._counted))
        return found

    monkeypatch.setattr(InMemory, "best", watched)
    ExchangeableMixture(3, structure="evidence", accept=accept, random_state=0).fit(X)
    assert len(held) > 3
    assert max(held) == 1
