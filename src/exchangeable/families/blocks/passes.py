"""The passes of EM over complete rows: posteriors, histograms and moments."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.examples import Examples
from exchangeable.families.blocks import kernels
from exchangeable.families.blocks.row_counts import RowCounts
from exchangeable.families.common.log_linear import linear_kernels, on_device
from exchangeable.families.common.log_linear.scores import LogLinear
from exchangeable.families.common.moments import (
    add_parts,
    lines_per_row,
    moments_job,
    one_class_per_line,
    sum_moments,
)
from exchangeable.families.common.posteriors import RowPriors
from exchangeable.families.common.tables import Tables
from exchangeable.families.sums import NO_MOMENTS, RowsInMemory, Sums
from exchangeable.partitions import Partition
from exchangeable.runtime.threads import Job, run, run_together


@dataclass(frozen=True)
class Posteriors:
    """The posteriors of all examples under some parameters, and their log-likelihood.

    Attributes
    ----------
    log_likelihood : float
        Weighted log-likelihood of all examples.
    posterior : array of shape (n_rows, n_classes)
        P(y | x); the posteriors of a class are contiguous in memory.
    """

    log_likelihood: float
    posterior: FloatArray


@dataclass(frozen=True)
class BlockSums(Sums):
    """Sums for the next parameters and blocks.

    Attributes
    ----------
    histograms : list of arrays
        The posterior weight of the rows of each class by count in each of its blocks.
    """

    histograms: list[FloatArray]


def score(
    counts: RowCounts, tables: Tables, log_prior: FloatArray, n_jobs: int | None = None
) -> Posteriors:
    """Return the posteriors of all rows under some parameters, and their log-likelihood."""
    return _scoring(counts, counts.counter.bundles.spread(tables), log_prior).run(n_jobs)


def likeliest(
    candidates: Sequence[tuple[RowCounts, Tables]],
    log_prior: FloatArray,
    guess: int,
    n_jobs: int | None = None,
) -> tuple[int, Posteriors]:
    """Return the candidate with the highest likelihood, and the posteriors under it.

    The `guess` is scored; the others are first estimated in single precision, and scored only if
    that does not show that they are less likely. Among equally likely ones the last candidate has
    the lowest priority, and otherwise later ones come first.
    """
    tables = run(lambda each: each[0].counter.bundles.spread(each[1]), candidates, n_jobs)
    pairs = [(counts, table) for (counts, _), table in zip(candidates, tables, strict=True)]
    others = [number for number in range(len(pairs)) if number != guess]
    limits = [_limiting(*pairs[number], candidates[number][1], log_prior) for number in others]
    guessed, *at_most = run_together([_scoring(*pairs[guess], log_prior), *limits], n_jobs)
    left = [
        number
        for number, limit in zip(others, at_most, strict=True)
        if not limit < guessed.log_likelihood
    ]
    scored = run_together([_scoring(*pairs[number], log_prior) for number in left], n_jobs)
    found = {guess: guessed, **dict(zip(left, scored, strict=True))}
    last = len(pairs) - 1
    winner = max(found, key=lambda n: (found[n].log_likelihood, n if n < last else -1))
    return winner, found[winner]


def _scoring(
    counts: RowCounts, table: FloatArray, log_prior: FloatArray
) -> Job[Any, Any, Posteriors]:
    """Return the job of scores, given the tables of the bundles."""
    examples, bundles = counts.counter.examples, counts.counter.bundles
    posterior = np.empty((log_prior.size, examples.rows.n_rows))
    priors = RowPriors(examples.weights, examples.clamp, log_prior)

    def one(span: tuple[int, int]) -> float:
        log_likelihood = 0.0
        for piece in counts.pieces(span):
            log_likelihood += kernels.score_numbers(piece, priors, bundles, table, posterior)
        return log_likelihood

    parts = examples.parts(counts.steps + 2 * log_prior.size)
    return Job(one, parts, lambda likelihoods: Posteriors(sum(likelihoods), posterior.T))


def _limiting(
    counts: RowCounts, table: FloatArray, tables: Tables, log_prior: FloatArray
) -> Job[Any, Any, float]:
    """Return the job that computes an upper bound of the log-likelihood, or infinity."""
    examples, bundles = counts.counter.examples, counts.counter.bundles
    error = examples.total * single_error(tables, log_prior)
    parts = examples.parts(counts.steps + log_prior.size)
    if examples.clamp.size or not np.isfinite(error):
        parts, error = [], np.inf
    short, priors = table.astype(np.float32), log_prior.astype(np.float32)

    def one(span: tuple[int, int]) -> float:
        log_likelihood, weights = 0.0, examples.weights
        for piece in counts.pieces(span):
            log_likelihood += kernels.estimate_numbers(piece, weights, priors, bundles, short)
        return log_likelihood

    return Job(one, parts, lambda estimates: sum(estimates) + error)


def single_error(tables: Tables, log_prior: FloatArray) -> float:
    """Return the maximum error of log P of a row in single precision.

    Each look-up and sum has an error of at most one part in 2^24 of the largest possible score,
    each e^x of 1e-6. The bound is not finite if something is impossible.
    """
    return float(kernels.limit_single(tables.arrays, log_prior))


def histograms(
    counts: RowCounts,
    posterior: FloatArray,
    classes: IntArray,
    uncounted: IntArray | None = None,
    n_jobs: int | None = None,
) -> list[FloatArray]:
    """Return the histograms of all classes, zero except for `classes`, from posteriors of all.

    `uncounted` are the classes whose rows have not been counted yet, if there are any.
    """
    return _counting(counts, posterior, classes, classes, uncounted).run(n_jobs)


def soft_histograms(
    examples: Examples,
    posterior: FloatArray,
    classes: IntArray,
    partitions: Sequence[Partition],
    n_jobs: int | None = None,
) -> list[FloatArray]:
    """Return the histograms of some classes under some partitions, from posteriors of all."""
    counts = RowCounts.when_asked(examples, Tables.layout(partitions))
    return _counting(counts, posterior, classes, np.arange(classes.size)).run(n_jobs)


def _counting(
    counts: RowCounts,
    posterior: FloatArray,
    lines: IntArray,
    classes: IntArray,
    uncounted: IntArray | None = None,
) -> Job[Any, Any, list[FloatArray]]:
    """Return the job of histograms: the posteriors of ``classes[i]`` are in column ``lines[i]``."""
    examples, layout = counts.counter.examples, counts.counter.layout
    is_new = np.zeros(layout.labels.shape[1], dtype=np.bool_)
    if uncounted is not None:
        is_new[uncounted] = True
    bundles, by_class = counts.counter.bundles, one_class_per_line(posterior)
    if counts.kept is None:
        # Reading a bundle's sums once takes much less time than a step per number.
        parts = examples.parts(counts.steps, int(bundles.starts[-1]))
        shares = [(span, slice(None)) for span in parts]
    else:
        new = 0.0 if uncounted is None else counts.counter.steps
        shares = examples.shares(classes.size, 2 * counts.steps + new)
    spans = {span for span, _ in shares}
    room = {span: np.empty(bundles.starts[-1]) for span in spans}
    gathered = {span: np.zeros(layout.values.size) for span in sorted(spans)}

    def one(share: tuple[tuple[int, int], slice]) -> None:
        span, part = share
        some, sums = (classes[part], lines[part]), (room[span], gathered[span])
        counts.count(span, some[0][is_new[some[0]]])
        for piece in counts.pieces(span):
            kernels.add_by_number(
                piece, span, examples.weights, by_class, some, bundles, layout.starts, sums
            )

    def finish(_: list[None]) -> list[FloatArray]:
        return layout.split(add_parts(list(gathered.values())))

    return Job(one, shares, finish)


def complete(
    counts: RowCounts, posteriors: Posteriors, *, moments: bool = True, n_jobs: int | None = None
) -> BlockSums:
    """Return the sums for the next step, given the posteriors."""
    examples, posterior = counts.counter.examples, posteriors.posterior
    classes = np.arange(posterior.shape[1])
    jobs: list[Job[Any, Any, Any]] = [_counting(counts, posterior, classes, classes)]
    if moments:
        jobs.insert(0, moments_job(examples, posterior, 2))  # in larger parts, so they come first
    *summed, histograms = run_together(jobs, n_jobs)
    return BlockSums(
        posteriors.log_likelihood,
        posterior,
        examples.weights @ posterior,
        histograms,
        moments=summed[0] if summed else NO_MOMENTS,
    )


def expect(
    examples: Examples,
    partitions: Sequence[Partition],
    tables: Tables,
    log_prior: FloatArray,
    *,
    moments: bool = True,
    n_jobs: int | None = None,
) -> BlockSums:
    """Score every row, and compute the sums for the next parameters and blocks.

    Rows must be complete: see `holes` for other rows.
    """
    if not moments and is_linear(tables):
        return expect_linear(examples, tables, log_prior, n_jobs)
    counts = RowCounts.of(examples, partitions, n_jobs=n_jobs)
    posteriors = score(counts, tables, log_prior, n_jobs)
    return complete(counts, posteriors, moments=moments, n_jobs=n_jobs)


def all_single(tables: Tables) -> bool:
    """Whether every variable is a block."""
    return tables.starts.size == tables.labels.size


def is_linear(tables: Tables) -> bool:
    """Whether every variable is a block, and no value impossible, so that scores are linear."""
    return all_single(tables) and bool(np.isfinite(tables.values).all())


def expect_linear(
    examples: Examples, tables: Tables, log_prior: FloatArray, n_jobs: int | None
) -> BlockSums:
    """Do the same if every variable is a block: naive Bayes, a linear score."""
    scores = _score_singles(examples, tables, log_prior, n_jobs)
    return BlockSums(
        scores.log_likelihood,
        scores.posterior,
        examples.weights @ scores.posterior,
        single_histograms(examples, scores.posterior, tables, n_jobs),
    )


def expect_on(device: Any, data: RowsInMemory, tables: Tables, log_prior: FloatArray) -> BlockSums:
    """Do the same on a device."""
    nothing = np.zeros(tables.labels.shape)
    if is_linear(tables):
        off = 2 * tables.labels.astype(np.int64)
        low, high = tables.values[off], tables.values[off + 1]
        sums = on_device.expect(device, data, LogLinear(low.sum(axis=0), high - low), log_prior)
        histogram = np.empty(tables.values.size)
        histogram[off], histogram[off + 1] = np.maximum(sums.totals - sums.ones, 0.0), sums.ones
        histograms = tables.split(histogram)
    else:
        model = LogLinear(np.zeros(log_prior.size), nothing, tables=tables)
        sums = on_device.expect(device, data, model, log_prior)
        histograms = sums.blocks
    return BlockSums(sums.log_likelihood, sums.posterior, sums.totals, histograms)


def single_histograms(
    examples: Examples, posterior: FloatArray, tables: Tables, n_jobs: int | None = None
) -> list[FloatArray]:
    """Return the histograms of all classes if every variable is a block: sums over ones."""
    ones = sum_moments(examples, posterior, 1, n_jobs)[0]
    off = 2 * tables.labels.astype(np.int64)  # every block has two entries
    histogram = np.empty(tables.values.size)
    histogram[off], histogram[off + 1] = np.maximum(examples.weights @ posterior - ones, 0.0), ones
    return tables.split(histogram)


def rescore(
    examples: Examples, tables: Tables, log_prior: FloatArray, n_jobs: int | None = None
) -> Posteriors:
    """Return the posteriors of rows whose counts are not needed again."""
    if is_linear(tables):
        return _score_singles(examples, tables, log_prior, n_jobs)
    return score(RowCounts.when_asked(examples, tables), tables, log_prior, n_jobs)


def _score_singles(
    examples: Examples, tables: Tables, log_prior: FloatArray, n_jobs: int | None
) -> Posteriors:
    off = 2 * tables.labels.astype(np.int64)
    low, high = tables.values[off], tables.values[off + 1]
    return score_linear(examples, log_prior + low.sum(axis=0), high - low, log_prior, n_jobs)


def score_linear(
    examples: Examples,
    base: FloatArray,
    slope: FloatArray,
    log_prior: FloatArray,
    n_jobs: int | None,
) -> Posteriors:
    """Return the posteriors of rows whose scores are a base plus slopes over their ones."""
    codes = examples.codes
    posterior = np.empty((log_prior.size, examples.rows.n_rows))
    priors = RowPriors(examples.weights, examples.clamp, log_prior)
    lines = slope if codes is None else codes.expand(slope)

    def one(span: tuple[int, int]) -> float:
        if codes is not None:
            log_likelihood = linear_kernels.score_coded(
                codes.codes, *span, priors, base, lines, posterior
            )
        else:
            log_likelihood = linear_kernels.score_linear(
                examples.rows.arrays, *span, priors, base, lines, posterior
            )
        return float(log_likelihood)

    parts = examples.parts(log_prior.size * (2 + lines_per_row(examples) / 2))
    return Posteriors(sum(run(one, parts, n_jobs)), posterior.T)
