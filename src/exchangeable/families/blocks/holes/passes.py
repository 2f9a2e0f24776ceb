"""Passes over rows with missing entries: scores, histograms, marginals, completions and draws.

All operations except the first two answer for one class, given its blocks and table.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, SymbolArray, normalize_log
from exchangeable.data.examples import MAX_PACKED, Examples
from exchangeable.data.observed import Observed, flags
from exchangeable.data.rows import NO_BITS, NO_INDICES, NO_POINTERS, RowArrays, Rows
from exchangeable.families.blocks import query_kernels
from exchangeable.families.blocks.holes import counters as hole_counters
from exchangeable.families.blocks.holes import kernels as hole_kernels
from exchangeable.families.blocks.holes.counters import Counters, HoledRows
from exchangeable.families.blocks.holes.kernels import HoleScores, HoleTables, Memo
from exchangeable.families.blocks.holes.states import HoleStates, n_states, sizes_of
from exchangeable.families.blocks.passes import (
    BlockSums,
    Posteriors,
    histograms,
    is_linear,
    score_linear,
)
from exchangeable.families.blocks.query_kernels import DrawWorkspace
from exchangeable.families.blocks.row_counts import MOST_MASKS, RowCounts
from exchangeable.families.common.moments import sum_moments
from exchangeable.families.common.posteriors import RowPriors
from exchangeable.families.common.tables import Tables, label_type
from exchangeable.partitions import Partition, log_factorials
from exchangeable.runtime.threads import n_threads, row_ranges, run

MEMO_BYTES = 1 << 25
"""Memory of each part of the rows, which limits the number of parts."""
FEW_STATES, MOST_STATES, STATES_PER_ROW = 1 << 14, 1 << 21, 32
"""Missing entries are summed out for all states of the blocks, used or not, if there are at most
this many states in all, or per row and class."""
STEPS_PER_WORD = 4
"""Counting the ones of a word is this much cheaper than listing them one by one."""


def score(observed: Observed, tables: Tables, n_jobs: int | None = None) -> FloatArray:
    """Return log P(e | y) for every row and class."""
    scores = np.empty((observed.n_rows, tables.labels.shape[1]))
    # Each thread has its own memo, so a few long parts are better than many short ones.
    spans = row_ranges(observed.n_rows, max(1, -(-observed.n_rows // n_threads(n_jobs))))
    rows = _holed_rows(observed, tables.labels, tables.starts.size)
    if is_linear(tables):
        base, on, hole = _linear(tables)
        run(
            lambda span: hole_kernels.score_singles(rows, *span, base, on, hole, scores),
            spans,
            n_jobs,
        )
        return scores
    arrays = _hole_tables(tables)

    def one(span: tuple[int, int]) -> None:
        kept = HoleScores.of(rows, span[1] - span[0], arrays)
        hole_kernels.score_with_holes(rows, *span, arrays, kept, scores)

    run(one, spans, n_jobs)
    return scores


def _linear(tables: Tables) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the score of a row of known zeros, and what a one and a hole of a variable add."""
    entry = tables.starts[tables.labels]
    off, on = tables.values[entry], tables.values[entry + 1]
    return off.sum(axis=0), on - off, -off


def states_of(examples: Examples, tables: Tables) -> HoleStates | None:
    """Return the tables with missing entries summed out, unless there are too many states."""
    total, n_classes = int(n_states(sizes_of(tables)).sum()), tables.labels.shape[1]
    enough = max(FEW_STATES, STATES_PER_ROW * n_classes * examples.rows.n_rows)
    return HoleStates.of(tables) if total <= enough and few_states(tables) else None


def few_states(tables: Tables) -> bool:
    """Whether the states of all blocks can be numbered, however many rows there are."""
    n_words = (tables.labels.shape[0] + 63) // 64
    if tables.labels.shape[0] > MAX_PACKED or tables.starts.size * n_words > MOST_MASKS:
        return False
    return int(n_states(sizes_of(tables)).sum()) <= MOST_STATES


def complete_sums(
    counts: RowCounts,
    posteriors: Posteriors,
    tables: Tables,
    states: HoleStates,
    n_jobs: int | None = None,
) -> BlockSums:
    """Return the sums for the next step, given the posteriors."""
    posterior, weights = posteriors.posterior, counts.counter.examples.weights
    every = np.arange(posterior.shape[1])
    by_state = np.concatenate(histograms(counts, posterior, every, n_jobs=n_jobs))
    expected = tables.split(states.expected_counts(tables, by_state))
    return BlockSums(posteriors.log_likelihood, posterior, weights @ posterior, expected)


def expect(
    examples: Examples, tables: Tables, log_prior: FloatArray, n_jobs: int | None = None
) -> BlockSums:
    """Score every row, and sum the expected counts in every block."""
    if is_linear(tables):
        return _expect_singles(examples, tables, log_prior, n_jobs)
    posterior = np.empty((examples.rows.n_rows, log_prior.size))
    rows = _holed_rows(examples.observed, tables.labels, tables.starts.size)
    arrays, priors = _hole_tables(tables), RowPriors(examples.weights, examples.clamp, log_prior)
    # Divided by the shape of the data alone: the sums are the same for any number of threads.
    steps = (examples.mean_ones + examples.mean_holes) * log_prior.size

    def one(span: tuple[int, int]) -> tuple[float, FloatArray]:
        histogram = np.zeros(tables.values.size)
        kept, mass = HoleScores.of(rows, span[1] - span[0], arrays), np.empty(log_prior.size)
        likelihood: float = hole_kernels.expect_with_holes(
            rows, *span, arrays, priors, kept, posterior, mass, histogram
        )
        return likelihood, histogram

    parts = run(one, examples.parts(2 * steps, MEMO_BYTES), n_jobs)
    totals = examples.weights @ posterior
    histogram = np.sum([part[1] for part in parts], axis=0)
    # The kernel moves mass away from the counts of zero; these are the counts before.
    zero = histogram[tables.starts] + np.repeat(totals, np.diff(tables.first_block))
    histogram[tables.starts] = np.where(zero > 1e-13 * totals.sum(), zero, 0.0)
    likelihood = float(sum(part[0] for part in parts))
    return BlockSums(likelihood, posterior, totals, tables.split(histogram))


def _expect_singles(
    examples: Examples, tables: Tables, log_prior: FloatArray, n_jobs: int | None
) -> BlockSums:
    """Do the same if every variable is a block: missing entries are variables of their own.

    From the score of a row of known zeros, the share of each missing variable is subtracted.
    """
    base, on, hole = _linear(tables)
    slope = np.concatenate([on, hole])
    scores = score_linear(examples.ones_and_holes, base + log_prior, slope, log_prior, n_jobs)
    posterior = scores.posterior
    seen_on, hidden = np.split(entry_moments(examples, posterior, n_jobs)[0], 2)
    totals = examples.weights @ posterior
    entry = tables.starts[tables.labels]
    expected = seen_on + hidden * np.exp(tables.values[entry + 1])
    histogram = np.empty(tables.values.size)
    histogram[entry + 1] = expected
    histogram[entry] = np.maximum(totals - expected, 0.0)
    return BlockSums(scores.log_likelihood, posterior, totals, tables.split(histogram))


def entry_moments(
    examples: Examples, posterior: FloatArray, n_jobs: int | None = None
) -> FloatArray:
    """Return the moments of given posteriors, as in `Sums`, by variable that is on or missing.

    Those of missing entries come after those of ones, if there are any.
    """
    if examples.holes is not None:
        examples = examples.ones_and_holes
    return sum_moments(examples, posterior, n_jobs=n_jobs)


def single_moments(
    examples: Examples, posterior: FloatArray, tables: Tables, n_jobs: int | None = None
) -> FloatArray:
    """Return the moments of rows, as in `Sums`, if every variable is a block."""
    seen = entry_moments(examples, posterior, n_jobs)
    if examples.holes is None:
        return seen
    chance = np.exp(tables.values[tables.starts[tables.labels] + 1])
    on, hidden = np.split(seen, 2, axis=1)
    moments: FloatArray = on + chance * hidden
    return moments


def log_likelihood(
    examples: Examples, tables: Tables, log_prior: FloatArray, n_jobs: int | None = None
) -> float:
    """Return the log-likelihood of the known entries and the known classes of all examples."""
    joint = score(examples.observed, tables, n_jobs) + log_prior
    each = normalize_log(joint, log_prior)[1]
    if examples.clamp.size:
        known = np.flatnonzero(examples.clamp >= 0)
        each[known] = joint[known, examples.clamp[known]]
    return float(examples.weights @ each)


def _holed_rows(observed: Observed, labels: npt.NDArray[np.integer], n_blocks: int) -> HoledRows:
    """Return rows in the form of the kernels.

    Blocks have masks if rows are packed and blocks are few.
    """
    ones = observed.ones.arrays
    if observed.holes is None:
        holes = RowArrays(NO_BITS, np.zeros(observed.n_rows + 1, dtype=np.int64), NO_INDICES)
    else:
        holes = observed.holes.arrays
    n_variables, n_classes = labels.shape
    packed = not ones.indptr.size and not holes.indptr.size
    n_words = (n_variables + 63) // 64
    masks = NO_BITS
    if packed and n_words * n_blocks <= STEPS_PER_WORD * n_variables * n_classes:
        masks = np.zeros((n_words, n_blocks), dtype=np.uint64)
        hole_counters.make_masks(labels, masks)
    return HoledRows(ones, holes, masks, labels)


def _hole_tables(tables: Tables) -> HoleTables:
    ends = np.append(tables.starts[1:], tables.values.size)
    return HoleTables(
        tables.first_block,
        tables.starts,
        ends - tables.starts - 1,
        tables.values,
        log_factorials(tables.labels.shape[0]),
    )


def holed_rows(observed: Observed, partition: Partition) -> HoledRows:
    """Return rows in the form of the kernels for one class."""
    labels = partition.labels[:, None].astype(label_type(partition.n_blocks), order="C")
    return _holed_rows(observed, labels, partition.n_blocks)


def _class_tables(partition: Partition, table: FloatArray) -> HoleTables:
    first_block = np.array([0, partition.n_blocks])
    log_factorial = log_factorials(partition.labels.size)
    return HoleTables(first_block, partition.starts, partition.sizes, table, log_factorial)


def marginals(observed: Observed, partition: Partition, table: FloatArray) -> FloatArray:
    """Return P(x_j = 1 | e) for every row and variable."""
    chances = flags(observed.ones).astype(np.float64)
    rows, tables = holed_rows(observed, partition), _class_tables(partition, table)
    counters, memo = Counters.of(rows, tables.starts), Memo.of(observed.n_rows, tables.sizes)
    query_kernels.hidden_chances(
        rows, tables, counters, memo, np.empty(partition.n_blocks), chances
    )
    return chances


def complete(
    observed: Observed, partition: Partition, table: FloatArray
) -> tuple[SymbolArray, FloatArray]:
    """Return the most probable completion of every row, and its log-probability."""
    completions = flags(observed.ones).astype(np.uint8)
    scores = np.empty(observed.n_rows)
    rows, tables = holed_rows(observed, partition), _class_tables(partition, table)
    wanted = np.empty(partition.n_blocks, dtype=np.int64)
    counters = Counters.of(rows, tables.starts)
    query_kernels.complete_rows(rows, tables, counters, wanted, completions, scores)
    return completions, scores


def draw(
    observed: Observed, partition: Partition, table: FloatArray, rng: np.random.Generator
) -> SymbolArray:
    """Return a completion of every row, drawn from its probabilities."""
    draws = flags(observed.ones).astype(np.uint8)
    tables, workspace = _class_tables(partition, table), DrawWorkspace.of(partition.sizes)
    for span, part in observed.chunks():
        of_block = rng.random((part.n_rows, partition.n_blocks))
        of_entry = rng.random((part.n_rows, observed.n_variables))
        rows = holed_rows(part, partition)
        counters = Counters.of(rows, tables.starts)
        query_kernels.draw_rows(rows, tables, counters, workspace, of_block, of_entry, draws[span])
    return draws


def draw_packed(
    observed: Observed,
    partition: Partition,
    table: FloatArray,
    uniforms: Callable[[int], FloatArray],
) -> Rows | None:
    """Return the same completions as packed rows; None if the rows are not packed.

    `uniforms` returns at least this many numbers of the generator.
    """
    rows = holed_rows(observed, partition)
    if not observed.n_rows or not rows.masks.size:
        return None
    draws = np.empty_like(observed.ones.bits)
    tables, workspace = _class_tables(partition, table), DrawWorkspace.of(partition.sizes)
    counters, width = Counters.of(rows, tables.starts), partition.n_blocks + observed.n_variables
    numbers = uniforms(observed.n_rows * width)
    for start, stop in observed.spans():
        of_block, of_entry = np.split(
            numbers[start * width : stop * width], [(stop - start) * partition.n_blocks]
        )
        query_kernels.draw_bits(
            rows,
            (start, stop),
            tables,
            counters,
            workspace,
            of_block.reshape(stop - start, -1),
            of_entry.reshape(stop - start, -1),
            draws,
        )
    return Rows(observed.n_rows, observed.n_variables, draws, NO_POINTERS, NO_INDICES)
