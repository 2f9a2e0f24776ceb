"""Passes over rows with holes: scores, expected histograms, marginals, completions and draws.

All operations but the first two answer for one class, whose blocks and table are its own.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray, SymbolArray, normalize_log
from exchangeable.data.examples import Examples
from exchangeable.data.observed import Observed
from exchangeable.data.rows import NO_BITS, NO_INDICES
from exchangeable.families.blocks import hole_kernels, query_kernels
from exchangeable.families.blocks.passes import BlockSums, is_linear
from exchangeable.families.common import linear_kernels
from exchangeable.families.common.tables import Tables
from exchangeable.partitions import Partition, log_factorials
from exchangeable.runtime.threads import n_threads, row_ranges, run

NOTHING = np.empty(0)
NO_CLASSES = np.empty(0, dtype=np.int64)
MEMO_BYTES = 1 << 25
"""What a part of the rows takes by way of memory: it cuts them into few parts."""
STEPS_A_WORD = 4
"""Counting the ones of a word is so much cheaper than walking them one by one."""


def score(observed: Observed, tables: Tables, n_jobs: int | None = None) -> FloatArray:
    """Return log P(e | y) for every row and class."""
    assert observed.holes is not None
    scores = np.empty((observed.n_rows, tables.labels.shape[1]))
    arrays = observed.ones.arrays, observed.holes.arrays
    # Each thread has a memo of its own, so few long parts are better than many short ones.
    spans = row_ranges(observed.n_rows, max(1, -(-observed.n_rows // n_threads(n_jobs))))
    if is_linear(tables):
        base, on, hole = _linear(tables)
        run(
            lambda span: hole_kernels.score_singles(*arrays, *span, base, on, hole, scores),
            spans,
            n_jobs,
        )
    else:
        run(lambda span: _pass(arrays, span, tables, scores), spans, n_jobs)
    return scores


def _linear(tables: Tables) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return a row of known zeros' worth, and what a one and a hole of each variable add to it."""
    place = tables.starts[tables.labels]
    off, on = tables.values[place], tables.values[place + 1]
    return off.sum(axis=0), on - off, -off


def expect(
    examples: Examples, tables: Tables, log_prior: FloatArray, n_jobs: int | None = None
) -> BlockSums:
    """Score every row, and sum the counts that are expected in every block."""
    assert examples.holes is not None
    if is_linear(tables):
        return _expect_singles(examples, tables, log_prior, n_jobs)
    posterior = np.empty((examples.rows.n_rows, log_prior.size))
    arrays = examples.rows.arrays, examples.holes.arrays
    # Cut by the shape of the data alone: the sums are the same for any number of threads.
    steps = (examples.mean_ones + examples.mean_holes) * log_prior.size

    def one(span: tuple[int, int]) -> tuple[float, FloatArray]:
        histogram = np.zeros(tables.values.size)
        given = examples.weights, examples.clamp, log_prior
        likelihood = _pass(arrays, span, tables, posterior, *given, histogram)
        return likelihood, histogram

    parts = run(one, examples.parts(2 * steps, MEMO_BYTES), n_jobs)
    totals = examples.weights @ posterior
    histogram = np.sum([part[1] for part in parts], axis=0)
    # The kernel moves mass away from the counts of zero; here is what was there.
    zero = histogram[tables.starts] + np.repeat(totals, np.diff(tables.first_block))
    histogram[tables.starts] = np.where(zero > 1e-13 * totals.sum(), zero, 0.0)
    likelihood = float(sum(part[0] for part in parts))
    return BlockSums(likelihood, posterior, totals, tables.split(histogram))


def _expect_singles(
    examples: Examples, tables: Tables, log_prior: FloatArray, n_jobs: int | None
) -> BlockSums:
    """Do the same where every variable is a block: holes are variables of their own.

    What a row of known zeros is worth loses the variable's share where it has a hole.
    """
    rows = examples.ones_and_holes
    base, on, hole = _linear(tables)
    base, slope = base + log_prior, np.concatenate([on, hole])
    by_class = np.empty((log_prior.size, rows.n_rows))

    def one(span: tuple[int, int]) -> tuple[float, FloatArray]:
        given, sums = (*rows.arrays, *span, examples.weights), np.zeros(slope.shape)
        found = linear_kernels.score_linear(
            *given, examples.clamp, base, slope, log_prior, by_class
        )
        linear_kernels.add_moments(*given, by_class, sums)
        return found, sums

    steps = rows.indices.size / max(rows.n_rows, 1) * log_prior.size
    parts = run(one, examples.parts(steps, slope.nbytes), n_jobs)
    seen_on, hidden = np.split(np.sum([part[1] for part in parts], axis=0), 2)
    posterior = by_class.T
    totals = examples.weights @ posterior
    place = tables.starts[tables.labels]
    expected = seen_on + hidden * np.exp(tables.values[place + 1])
    histogram = np.empty(tables.values.size)
    histogram[place + 1] = expected
    histogram[place] = np.maximum(totals - expected, 0.0)
    likelihood = float(sum(part[0] for part in parts))
    return BlockSums(likelihood, posterior, totals, tables.split(histogram))


def log_likelihood(
    examples: Examples, tables: Tables, log_prior: FloatArray, n_jobs: int | None = None
) -> float:
    """Return the log-likelihood of what is known of all examples, and of their known classes."""
    joint = score(examples.observed, tables, n_jobs) + log_prior
    each = normalize_log(joint, log_prior)[1]
    if examples.clamp.size:
        known = np.flatnonzero(examples.clamp >= 0)
        each[known] = joint[known, examples.clamp[known]]
    return float(examples.weights @ each)


def _pass(
    arrays: tuple[tuple[Any, ...], tuple[Any, ...]],
    span: tuple[int, int],
    tables: Tables,
    out: FloatArray,
    weights: FloatArray = NOTHING,
    clamp: IntArray = NO_CLASSES,
    log_prior: FloatArray = NOTHING,
    histogram: FloatArray = NOTHING,
) -> float:
    ends = np.append(tables.starts[1:], tables.values.size)
    masks = _masks(arrays, tables.labels, tables.starts.size)
    log_likelihood: float = hole_kernels.expect_with_holes(
        *arrays,
        *span,
        weights,
        clamp,
        masks,
        tables.labels,
        tables.first_block,
        tables.starts,
        ends - tables.starts - 1,
        tables.values,
        log_prior,
        log_factorials(tables.labels.shape[0]),
        out,
        histogram,
    )
    return log_likelihood


def _masks(
    arrays: tuple[tuple[Any, ...], tuple[Any, ...]], labels: npt.NDArray[Any], n_blocks: int
) -> npt.NDArray[np.uint64]:
    """Return the blocks' masks where rows are packed and blocks are few, otherwise nothing."""
    n_variables, n_classes = labels.shape
    packed = all(not rows[1].size for rows in arrays)
    n_words = (n_variables + 63) // 64
    if not packed or n_words * n_blocks > STEPS_A_WORD * n_variables * n_classes:
        return NO_BITS
    masks = np.zeros((n_words, n_blocks), dtype=np.uint64)
    hole_kernels.make_masks(labels, masks)
    return masks


def rows_and_labels(observed: Observed, partition: Partition) -> tuple[Any, ...]:
    """Return known ones, holes, masks and labels as kernels that answer for one class take them."""
    gaps = (NO_BITS, np.zeros(observed.n_rows + 1, dtype=np.int64), NO_INDICES)
    arrays = observed.ones.arrays, observed.holes.arrays if observed.holes else gaps
    labels = np.ascontiguousarray(partition.labels[:, None])
    return *arrays, _masks(arrays, labels, partition.n_blocks), labels


def _of_class(observed: Observed, partition: Partition) -> tuple[Any, ...]:
    """Return what the kernels that answer for one class take first."""
    return *rows_and_labels(observed, partition), partition.starts


def marginals(observed: Observed, partition: Partition, table: FloatArray) -> FloatArray:
    """Return P(x_j = 1 | e) for every row and variable."""
    chances = np.empty((observed.n_rows, observed.n_variables))
    log_factorial = log_factorials(observed.n_variables)
    given = *_of_class(observed, partition), partition.sizes, table, log_factorial
    query_kernels.hidden_chances(*given, chances)  # type: ignore[call-arg]
    return chances


def complete(
    observed: Observed, partition: Partition, table: FloatArray
) -> tuple[SymbolArray, FloatArray]:
    """Return the most probable completion of every row, and its log-probability."""
    rows = np.empty((observed.n_rows, observed.n_variables), dtype=np.uint8)
    scores = np.empty(observed.n_rows)
    given = _of_class(observed, partition)
    query_kernels.complete_rows(*given, table, rows, scores)  # type: ignore[call-arg]
    return rows, scores


def draw(
    observed: Observed, partition: Partition, table: FloatArray, rng: np.random.Generator
) -> SymbolArray:
    """Return a completion of every row, drawn from its probabilities."""
    rows = np.empty((observed.n_rows, observed.n_variables), dtype=np.uint8)
    for place, part in observed.chunks():
        query_kernels.draw_rows(  # type: ignore[call-arg]
            *_of_class(part, partition),
            table,
            log_factorials(observed.n_variables),
            rng.random((part.n_rows, partition.n_blocks)),
            rng.random((part.n_rows, observed.n_variables)),
            rows[place],
        )
    return rows
