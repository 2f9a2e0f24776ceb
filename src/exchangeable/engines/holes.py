"""Passes over rows with holes: scores, expected histograms, marginals, completions and draws.

All operations but the first two answer for one class, whose blocks and table are its own.
"""

import numpy as np

from exchangeable.arrays import FloatArray, IntArray, SymbolArray, normalize_log
from exchangeable.engines import hole_kernels
from exchangeable.engines.cpu import Tables
from exchangeable.engines.em import Expectation
from exchangeable.engines.examples import Examples
from exchangeable.engines.observed import Observed, flags
from exchangeable.engines.threads import n_threads, row_ranges, run
from exchangeable.partitions import Partition, log_factorials

NOTHING = np.empty(0)
NO_CLASSES = np.empty(0, dtype=np.int64)


def score(observed: Observed, tables: Tables, n_jobs: int | None = None) -> FloatArray:
    """Return log P(e | y) for every row and class."""
    assert observed.holes is not None
    scores = np.empty((observed.n_rows, tables.labels.shape[1]))
    arrays = observed.ones.arrays, observed.holes.arrays
    # Each thread has a memo of its own, so few long parts are better than many short ones.
    chunk = max(1, -(-observed.n_rows // n_threads(n_jobs)))
    run(
        lambda span: _pass(arrays, span, tables, scores),
        row_ranges(observed.n_rows, chunk),
        n_jobs,
    )
    return scores


def expect(
    examples: Examples, tables: Tables, log_prior: FloatArray, n_jobs: int | None = None
) -> Expectation:
    """Score every row, and sum the counts that are expected in every block."""
    assert examples.holes is not None
    posterior = np.empty((examples.rows.n_rows, log_prior.size))
    arrays = examples.rows.arrays, examples.holes.arrays
    # Cut by the shape of the data alone: the sums are the same for any number of threads.
    steps = (examples.mean_ones + examples.mean_holes) * log_prior.size

    def one(span: tuple[int, int]) -> tuple[float, FloatArray]:
        histogram = np.zeros(tables.values.size)
        given = examples.weights, examples.clamp, log_prior
        likelihood = _pass(arrays, span, tables, posterior, *given, histogram)
        return likelihood, histogram

    parts = run(one, examples.parts(2 * steps, tables.values.nbytes), n_jobs)
    totals = examples.weights @ posterior
    histogram = np.sum([part[1] for part in parts], axis=0)
    # The kernel moves mass away from the counts of zero; here is what was there.
    zero = histogram[tables.starts] + np.repeat(totals, np.diff(tables.first_block))
    histogram[tables.starts] = np.where(zero > 1e-13 * totals.sum(), zero, 0.0)
    likelihood = float(sum(part[0] for part in parts))
    moments = np.empty((0, 0, 0))
    return Expectation(likelihood, posterior, tables.split(histogram), moments, totals)


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
    arrays: tuple[tuple[object, ...], tuple[object, ...]],
    span: tuple[int, int],
    tables: Tables,
    out: FloatArray,
    weights: FloatArray = NOTHING,
    clamp: IntArray = NO_CLASSES,
    log_prior: FloatArray = NOTHING,
    histogram: FloatArray = NOTHING,
) -> float:
    ends = np.append(tables.starts[1:], tables.values.size)
    log_likelihood: float = hole_kernels.expect_with_holes(
        *arrays,
        *span,
        weights,
        clamp,
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


def marginals(observed: Observed, partition: Partition, table: FloatArray) -> FloatArray:
    """Return P(x_j = 1 | e) for every row and variable."""
    chances = np.empty((observed.n_rows, observed.n_variables))
    for place, part in observed.chunks():
        hole_kernels.hidden_chances(
            flags(part.ones),
            part.hole_flags(),
            partition.labels,
            partition.starts,
            table,
            log_factorials(observed.n_variables),
            chances[place],
        )
    return chances


def complete(
    observed: Observed, partition: Partition, table: FloatArray
) -> tuple[SymbolArray, FloatArray]:
    """Return the most probable completion of every row, and its log-probability."""
    rows = np.empty((observed.n_rows, observed.n_variables), dtype=np.uint8)
    scores = np.empty(observed.n_rows)
    for place, part in observed.chunks():
        hole_kernels.complete_rows(
            flags(part.ones),
            part.hole_flags(),
            partition.labels,
            partition.starts,
            table,
            rows[place],
            scores[place],
        )
    return rows, scores


def draw(
    observed: Observed, partition: Partition, table: FloatArray, rng: np.random.Generator
) -> SymbolArray:
    """Return a completion of every row, drawn from its probabilities."""
    rows = np.empty((observed.n_rows, observed.n_variables), dtype=np.uint8)
    for place, part in observed.chunks():
        hole_kernels.draw_rows(
            flags(part.ones),
            part.hole_flags(),
            partition.labels,
            partition.starts,
            table,
            log_factorials(observed.n_variables),
            rng.random((part.n_rows, partition.n_blocks)),
            rng.random((part.n_rows, observed.n_variables)),
            rows[place],
        )
    return rows
