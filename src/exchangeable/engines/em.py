"""What one EM iteration asks of an engine: posteriors, histograms and moments in one pass."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.engines import em_kernels, kernels
from exchangeable.engines.cpu import Tables
from exchangeable.engines.rows import NO_BITS, Rows
from exchangeable.engines.threads import row_ranges, run
from exchangeable.partitions import Partition

MAX_PARTS = 16
MIN_PART_ROWS = 256
PARTIAL_BYTES = 1 << 28
MAX_LISTED_ONES = 1 << 28


@dataclass(frozen=True)
class Examples:
    """Distinct rows, how often each occurs, and the classes of those that have one.

    Attributes
    ----------
    rows : Rows
        The rows.
    weights : array of shape (n_rows,)
        How much each row counts.
    clamp : array of shape (n_rows,) or (0,)
        The known class of each row, −1 if it has none; empty if none has.
    """

    rows: Rows
    weights: FloatArray
    clamp: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @property
    def total(self) -> float:
        """The weight of all rows together."""
        return float(self.weights.sum())

    def parts(self, partial_bytes: int) -> list[tuple[int, int]]:
        """Cut the rows, by the shape of the data alone, for sums that take so many bytes a part."""
        n_parts = min(MAX_PARTS, max(1, PARTIAL_BYTES // max(partial_bytes, 1)))
        return row_ranges(self.rows.n_rows, max(MIN_PART_ROWS, -(-self.rows.n_rows // n_parts)))


@dataclass(frozen=True)
class Expectation:
    """What a pass over the examples found under some parameters.

    Attributes
    ----------
    log_likelihood : float
        Of all examples, each by its weight.
    posterior : array of shape (n_rows, n_classes)
        P(y | x).
    histograms : list of arrays
        For each class the posterior weight of the rows by count in each of its blocks.
    moments : array of shape (2, n_variables, n_classes)
        Sums of the posteriors, and of their squares, over the rows with a variable on; may be
        empty.
    totals : array of shape (n_classes,)
        Posterior weight of each class.
    """

    log_likelihood: float
    posterior: FloatArray
    histograms: list[FloatArray]
    moments: FloatArray
    totals: FloatArray


def merge_equal_rows(
    rows: Rows, weights: FloatArray, clamp: IntArray | None = None
) -> tuple[Examples, IntArray]:
    """Return the distinct rows with their weights, and which of them each row is.

    Rows are compared by 128 bits of hash; rows whose classes are known and different stay apart.
    """
    keys = np.random.default_rng(0).integers(0, 2**64, (rows.n_variables, 2), dtype=np.uint64)
    hashes = np.zeros((rows.n_rows, 2), dtype=np.uint64)
    em_kernels.hash_rows(*rows.arrays, keys, hashes)
    if clamp is not None:
        hashes[:, 0] += clamp.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    whole = hashes.view([("", np.uint64), ("", np.uint64)]).ravel()
    _, first, inverse = np.unique(whole, return_index=True, return_inverse=True)
    # Keep the order of first occurrence, so that nothing depends on the hashes' order.
    order = np.argsort(first, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    member = place[inverse]
    distinct: FloatArray = np.bincount(member, weights, minlength=order.size).astype(np.float64)
    kept = first[order]
    examples = Examples(
        listed(take_rows(rows, kept)),
        distinct,
        np.empty(0, dtype=np.int64) if clamp is None else clamp[kept],
    )
    return examples, member


def take_rows(rows: Rows, chosen: IntArray) -> Rows:
    """Return some of the rows."""
    if not rows.indptr.size:
        return Rows(chosen.size, rows.n_variables, rows.bits[chosen], rows.indptr, rows.indices)
    lengths = np.diff(rows.indptr)[chosen]
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    source = np.repeat(rows.indptr[chosen] - indptr[:-1], lengths) + np.arange(indptr[-1])
    return Rows(chosen.size, rows.n_variables, NO_BITS, indptr, rows.indices[source])


def listed(rows: Rows) -> Rows:
    """Return packed rows as lists of ones, which many passes read faster, unless they are many."""
    if rows.indptr.size or rows.n_rows == 0:
        return rows
    flags = np.unpackbits(
        rows.bits.view(np.uint8), axis=1, count=rows.n_variables, bitorder="little"
    )
    lengths = flags.sum(axis=1, dtype=np.int64)
    if lengths.sum() > MAX_LISTED_ONES:
        return rows
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    return Rows(
        rows.n_rows,
        rows.n_variables,
        NO_BITS,
        indptr,
        np.nonzero(flags)[1].astype(np.int32),
    )


def sum_moments(examples: Examples, posterior: FloatArray) -> FloatArray:
    """Return the moments of given posteriors, as in `Expectation`."""
    mass = examples.weights[:, None] * posterior
    sums = np.zeros((2, examples.rows.n_variables, posterior.shape[1]))
    everyone = np.arange(examples.rows.n_rows)
    for y in range(posterior.shape[1]):
        for power, weights in enumerate((mass[:, y], mass[:, y] * posterior[:, y])):
            column = np.zeros(examples.rows.n_variables)
            kernels.sum_ones(*examples.rows.arrays, everyone, weights, column)
            sums[power, :, y] = column
    return sums


def expect(
    examples: Examples,
    partitions: Sequence[Partition],
    tables: Tables,
    log_prior: FloatArray,
    *,
    moments: bool = True,
    n_jobs: int | None = None,
) -> Expectation:
    """Score every row and sum what the next parameters and blocks are made of."""
    single = all(partition.n_blocks == partition.labels.size for partition in partitions)
    if single and not moments and np.isfinite(tables.values).all():
        return _expect_singles(examples, partitions, tables, log_prior, n_jobs)
    rows = examples.rows
    n_classes = len(partitions)
    shape = (2, rows.n_variables, n_classes) if moments else (0, 0, 0)
    posterior = np.empty((rows.n_rows, n_classes))

    def one(span: tuple[int, int]) -> tuple[float, FloatArray, FloatArray]:
        histogram, sums = np.zeros(tables.values.size), np.zeros(shape)
        log_likelihood = em_kernels.expect_blocks(
            *rows.arrays,
            *span,
            examples.weights,
            examples.clamp,
            tables.labels,
            tables.first_block,
            tables.starts,
            tables.values,
            log_prior,
            posterior,
            histogram,
            sums,
        )
        return log_likelihood, histogram, sums

    parts = run(one, examples.parts(8 * (tables.values.size + int(np.prod(shape)))), n_jobs)
    log_likelihoods, histograms, sums = zip(*parts, strict=True)
    return Expectation(
        float(sum(log_likelihoods)),
        posterior,
        tables.split(np.sum(histograms, axis=0)),
        np.sum(sums, axis=0),
        examples.weights @ posterior,
    )


def _expect_singles(
    examples: Examples,
    partitions: Sequence[Partition],
    tables: Tables,
    log_prior: FloatArray,
    n_jobs: int | None,
) -> Expectation:
    """Do the same where every variable is a block: naive Bayes, a linear score."""
    rows = examples.rows
    n_variables, n_classes = rows.n_variables, len(partitions)
    off, on = np.empty((2, n_variables, n_classes))
    for y, partition in enumerate(partitions):
        pairs = tables.of_class(y).reshape(n_variables, 2)[partition.labels]
        off[:, y], on[:, y] = pairs[:, 0], pairs[:, 1]
    base, slope = log_prior + off.sum(axis=0), np.ascontiguousarray(on - off)
    posterior = np.empty((rows.n_rows, n_classes))

    def one(span: tuple[int, int]) -> tuple[float, FloatArray]:
        ones = np.zeros((n_variables, n_classes))
        log_likelihood = em_kernels.expect_singles(
            *rows.arrays,
            *span,
            examples.weights,
            examples.clamp,
            base,
            slope,
            log_prior,
            posterior,
            ones,
        )
        return log_likelihood, ones

    parts = run(one, examples.parts(8 * n_variables * n_classes), n_jobs)
    ones = np.sum([part[1] for part in parts], axis=0)
    totals = examples.weights @ posterior
    histograms = []
    for y, partition in enumerate(partitions):
        pair = np.empty((n_variables, 2))
        pair[partition.labels, 1] = ones[:, y]
        pair[:, 0] = np.maximum(totals[y] - pair[:, 1], 0.0)
        histograms.append(pair.ravel())
    log_likelihood = float(sum(part[0] for part in parts))
    return Expectation(log_likelihood, posterior, histograms, np.empty((0, 0, 0)), totals)


def log_likelihood(
    examples: Examples,
    partitions: Sequence[Partition],
    tables: Tables,
    log_prior: FloatArray,
    n_jobs: int | None = None,
) -> float:
    """Return the log-likelihood of all examples, and nothing else."""
    nothing = np.empty(0)

    def one(span: tuple[int, int]) -> float:
        scratch = np.empty((examples.rows.n_rows, len(partitions)))
        return float(
            em_kernels.expect_blocks(
                *examples.rows.arrays,
                *span,
                examples.weights,
                examples.clamp,
                tables.labels,
                tables.first_block,
                tables.starts,
                tables.values,
                log_prior,
                scratch,
                nothing,
                nothing.reshape(0, 0, 0),
            )
        )

    return sum(run(one, examples.parts(1), n_jobs))


def soft_histograms(
    examples: Examples,
    posterior: FloatArray,
    classes: IntArray,
    partitions: Sequence[Partition],
    n_jobs: int | None = None,
) -> list[FloatArray]:
    """Return the histograms of some classes under other partitions, given the posteriors."""
    layout = Tables.layout(partitions)

    def one(span: tuple[int, int]) -> FloatArray:
        histogram = np.zeros(layout.values.size)
        em_kernels.add_soft_histograms(
            *examples.rows.arrays,
            *span,
            examples.weights,
            posterior,
            classes,
            layout.labels,
            layout.first_block,
            layout.starts,
            histogram,
        )
        return histogram

    parts: list[npt.NDArray[np.float64]] = run(one, examples.parts(layout.values.nbytes), n_jobs)
    return layout.split(np.sum(parts, axis=0))
