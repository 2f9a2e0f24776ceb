"""EM's pass over incomplete rows for weighted urns of one block."""

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.data.examples import Examples, row_lengths
from exchangeable.families.common.log_linear.scores import NO_NUMBERS, LinearSums
from exchangeable.families.common.posteriors import RowPriors
from exchangeable.families.urns import hole_kernels
from exchangeable.families.urns.hole_kernels import HoleRoom, HoleUrns, tile_lines
from exchangeable.runtime.threads import run

MOST_HOLES = 256
"""Rows with more missing entries are left to the general pass: the work is quadratic in their
number."""
WIDEST = 600.0
"""Maximum difference of two logarithms of a class's ratios, so that none underflows."""
LARGEST_SCALE, HALVINGS = 120.0, 40
"""Bounds of the logarithm of the weights' scale, and the number of bisection steps for it."""


def expect(
    examples: Examples,
    log_weights: FloatArray,
    by_count: FloatArray,
    log_q: FloatArray,
    log_prior: FloatArray,
    n_jobs: int | None = None,
    given: FloatArray | None = None,
) -> LinearSums | None:
    """Return the sums of a pass, None if only the general pass can compute them.

    `log_q` and `by_count` are log q(l) and log q(l) − log e_l(θ) of every count and class; `given`
    are posteriors, if they are known.
    """
    holes = examples.holes
    assert holes is not None
    counts = row_lengths(holes)
    most = int(counts.max(initial=0))
    urns = _hole_urns(log_weights, by_count, log_q, log_prior)
    if most > MOST_HOLES or urns is None:
        return None
    n_variables, n_classes = log_weights.shape
    posterior = np.empty((examples.rows.n_rows, n_classes)) if given is None else given
    priors = RowPriors(examples.weights, examples.clamp, log_prior)

    def one(span: tuple[int, int]) -> tuple[float, tuple[FloatArray, FloatArray]]:
        sums = np.zeros((n_variables, n_classes)), np.zeros((n_variables + 1, n_classes))
        room = HoleRoom.of(n_variables, n_classes, most)
        likelihood: float = hole_kernels.expect_urns(
            examples.rows.arrays,
            holes.arrays,
            span,
            urns,
            priors,
            given is not None,
            posterior,
            room,
            sums,
        )
        return likelihood, sums

    work = float((counts * (counts + 1.0)).sum()) / max(counts.size, 1)
    steps = n_classes * (examples.mean_ones + work)
    likelihoods, sums = zip(*run(one, examples.parts(steps), n_jobs), strict=True)
    if np.isnan(likelihoods).any():
        return None
    ones, by_size = (np.sum(parts, axis=0) for parts in zip(*sums, strict=True))
    totals = examples.weights @ posterior
    return LinearSums(float(sum(likelihoods)), posterior, totals, ones, NO_NUMBERS, by_size, [])


def _hole_urns(
    log_weights: FloatArray, by_count: FloatArray, log_q: FloatArray, log_prior: FloatArray
) -> HoleUrns | None:
    """Return the urns with their weights scaled, None if ratios would underflow.

    With the scaled weights, independent variables have as many ones on average as the urn.
    """
    number = np.arange(log_weights.shape[0] + 1.0)[:, None]
    scale = _scale(log_weights, (number * np.exp(log_q)).sum(axis=0))
    scaled, ratio = log_weights + scale, by_count - number * scale
    highest = ratio.max(axis=0)
    lowest = np.where(ratio > -np.inf, ratio, np.inf).min(axis=0)
    if not (highest - lowest).max() <= WIDEST:
        return None
    tiled = (1, tile_lines(scaled.shape[1]))
    return HoleUrns(
        log_prior + highest,
        scaled,
        np.logaddexp(0.0, scaled),
        np.tile(1.0 / (1.0 + np.exp(-scaled)), tiled),
        np.tile(1.0 / (1.0 + np.exp(scaled)), tiled),
        np.exp(ratio - highest),
    )


def _scale(log_weights: FloatArray, mean: FloatArray) -> FloatArray:
    """Return the log-scale of each class's weights for which this many ones are expected."""
    n_variables, n_classes = log_weights.shape
    wanted = np.clip(mean, 0.5, n_variables - 0.5) if n_variables > 1 else mean
    low, high = np.full((2, n_classes), 0.0)
    low -= LARGEST_SCALE
    high += LARGEST_SCALE
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        few = (1.0 / (1.0 + np.exp(-(log_weights + middle)))).sum(axis=0) < wanted
        low, high = np.where(few, middle, low), np.where(few, high, middle)
    return np.asarray((low + high) / 2)
