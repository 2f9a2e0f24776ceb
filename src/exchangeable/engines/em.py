"""What one EM iteration asks of an engine: posteriors, histograms and moments in one pass."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.engines import em_kernels, kernels
from exchangeable.engines.cpu import Tables
from exchangeable.engines.examples import Examples
from exchangeable.engines.rows import NO_BITS
from exchangeable.engines.threads import run
from exchangeable.partitions import Partition


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


def _masks(
    examples: Examples, tables: Tables
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Return the rows as bits and the blocks' masks, or nothing where walking the ones is less."""
    n_words, n_blocks = examples.packed.shape[1], tables.starts.size
    steps = examples.mean_ones * tables.labels.shape[1]
    if not examples.packed.size or n_words * n_blocks > 3 * steps:
        return NO_BITS, NO_BITS
    masks = np.zeros((n_words, n_blocks), dtype=np.uint64)
    em_kernels.make_masks(tables.labels, masks)
    return examples.packed, masks


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
    """Score every row and sum what the next parameters and blocks are made of.

    Rows must have no holes: see `exchangeable.engines.holes` for those that do.
    """
    single = all(partition.n_blocks == partition.labels.size for partition in partitions)
    if single and not moments and np.isfinite(tables.values).all():
        return _expect_singles(examples, partitions, tables, log_prior, n_jobs)
    rows = examples.rows
    n_classes = len(partitions)
    shape = (2, rows.n_variables, n_classes) if moments else (0, 0, 0)
    posterior = np.empty((rows.n_rows, n_classes))
    masks = _masks(examples, tables)

    def one(span: tuple[int, int]) -> tuple[float, FloatArray, FloatArray]:
        histogram, sums = np.zeros(tables.values.size), np.zeros(shape)
        log_likelihood = em_kernels.expect_blocks(
            *rows.arrays,
            *span,
            examples.weights,
            examples.clamp,
            *masks,
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

    steps = examples.mean_ones * n_classes + 3 * tables.starts.size
    partial = 8 * (tables.values.size + int(np.prod(shape)))
    parts = run(one, examples.parts(steps, partial), n_jobs)
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
    labels = np.stack([partition.labels for partition in partitions])
    pairs = tables.values.reshape(n_classes, n_variables, 2)
    pairs = np.take_along_axis(pairs, labels[:, :, None], axis=1)
    off, on = pairs[:, :, 0].T, pairs[:, :, 1].T
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

    steps = examples.mean_ones * n_classes
    parts = run(one, examples.parts(steps, 8 * n_variables * n_classes), n_jobs)
    ones = np.sum([part[1] for part in parts], axis=0)
    totals = examples.weights @ posterior
    counted = np.empty((n_classes, n_variables, 2))
    np.put_along_axis(counted[:, :, 1], labels, ones.T, axis=1)
    counted[:, :, 0] = np.maximum(totals[:, None] - counted[:, :, 1], 0.0)
    histograms = list(counted.reshape(n_classes, -1))
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
    scratch = np.empty((examples.rows.n_rows, len(partitions)))
    masks = _masks(examples, tables)

    def one(span: tuple[int, int]) -> float:
        return float(
            em_kernels.expect_blocks(
                *examples.rows.arrays,
                *span,
                examples.weights,
                examples.clamp,
                *masks,
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

    steps = examples.mean_ones * len(partitions) + 2 * tables.starts.size
    return sum(run(one, examples.parts(steps), n_jobs))


def soft_histograms(
    examples: Examples,
    posterior: FloatArray,
    classes: IntArray,
    partitions: Sequence[Partition],
    n_jobs: int | None = None,
) -> list[FloatArray]:
    """Return the histograms of some classes under other partitions, given the posteriors."""
    layout = Tables.layout(partitions)
    masks = _masks(examples, layout)

    def one(span: tuple[int, int]) -> FloatArray:
        histogram = np.zeros(layout.values.size)
        em_kernels.add_soft_histograms(
            *examples.rows.arrays,
            *span,
            examples.weights,
            posterior,
            classes,
            *masks,
            layout.labels,
            layout.first_block,
            layout.starts,
            histogram,
        )
        return histogram

    parts: list[npt.NDArray[np.float64]] = run(
        one,
        examples.parts(
            examples.mean_ones * len(partitions) + layout.starts.size, layout.values.nbytes
        ),
        n_jobs,
    )
    return layout.split(np.sum(parts, axis=0))
