"""Scores that are linear terms, pairs along forests and look-ups, and EM's pass over them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.examples import Examples
from exchangeable.data.rows import Rows
from exchangeable.families.common import log_linear_kernels
from exchangeable.families.common.tables import Tables
from exchangeable.runtime.threads import row_ranges, run

SCORE_CHUNK = 1 << 10
ACTIVE = 1e-6
"""Rows of less posterior than this do not count when pairs are summed to choose a tree."""
SCORE: Callable[..., None] = log_linear_kernels.score_forest
EXPECT: Callable[..., float] = log_linear_kernels.expect_forest
NO_PARENTS = np.empty((0, 0), dtype=np.int32)
NO_NUMBERS = np.empty((0, 0))


def _no_tables() -> Tables:
    nothing = np.empty(0, dtype=np.int64)
    return Tables(np.empty((0, 0), dtype=np.uint16), nothing, nothing, np.empty(0))


@dataclass(frozen=True)
class Scores:
    """What scoring reads; see `forest_em_kernels` for the formula.

    Attributes
    ----------
    base : array of shape (n_classes,)
        Score of a row without ones, but for look-ups.
    slope : array of shape (n_variables, n_classes)
        What a one adds.
    parent, pair : arrays of shape (n_variables, n_classes) or (0, 0)
        Each variable's parent (the number of variables for a root), and what the two add together.
    by_count : array of shape (n_variables + 1, n_classes) or (0, 0)
        Look-ups by the row's number of ones.
    tables : Tables
        Look-ups by the number of ones in each block.
    """

    base: FloatArray
    slope: FloatArray
    parent: npt.NDArray[np.int32] = field(default_factory=lambda: NO_PARENTS)
    pair: FloatArray = field(default_factory=lambda: NO_NUMBERS)
    by_count: FloatArray = field(default_factory=lambda: NO_NUMBERS)
    tables: Tables = field(default_factory=_no_tables)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What a kernel takes after `base`."""
        t = self.tables
        blocks = (t.labels, t.first_block, t.starts, t.values)
        return (self.slope, self.parent, self.pair, self.by_count, *blocks)


@dataclass(frozen=True)
class Sums:
    """What a pass over the examples found: sums of posteriors, and the posteriors.

    Attributes
    ----------
    log_likelihood : float
        Of all examples, each by its weight.
    posterior : array of shape (n_rows, n_classes)
        P(y | x).
    totals : array of shape (n_classes,)
        Posterior weight of each class.
    ones : array of shape (n_variables, n_classes)
        That of the rows with a variable on.
    pairs : array of shape (n_variables, n_classes) or (0, 0)
        That of the rows with a variable and its parent on.
    counts : array of shape (n_variables + 1, n_classes) or (0, 0)
        That of the rows with each number of ones.
    blocks : list of arrays
        For each class, that of the rows with each count in each block.
    """

    log_likelihood: float
    posterior: FloatArray
    totals: FloatArray
    ones: FloatArray
    pairs: FloatArray
    counts: FloatArray
    blocks: list[FloatArray]


def score(rows: Rows, scores: Scores, n_jobs: int | None = None) -> FloatArray:
    """Return the score of every row in every class."""
    out = np.empty((rows.n_rows, scores.base.size))

    def one(span: tuple[int, int]) -> None:
        SCORE(rows.arrays, *span, scores.base, *scores.arrays, out)

    run(one, row_ranges(rows.n_rows, SCORE_CHUNK), n_jobs)
    return out


def expect(
    examples: Examples,
    scores: Scores,
    log_prior: FloatArray,
    n_jobs: int | None = None,
    given: FloatArray | None = None,
) -> Sums:
    """Find the posteriors of all examples and sum what the next parameters are made of.

    With posteriors that are `given` nothing is scored, and the log-likelihood is 0.
    """
    rows, tables = examples.rows, scores.tables
    n_classes = scores.base.size
    posterior = np.empty((rows.n_rows, n_classes)) if given is None else given
    shapes = (scores.slope.shape, scores.pair.shape, scores.by_count.shape, tables.values.shape)

    def one(span: tuple[int, int]) -> tuple[float, list[FloatArray]]:
        sums = [np.zeros(shape) for shape in shapes]
        log_likelihood = EXPECT(
            rows.arrays,
            *span,
            examples.weights,
            examples.clamp,
            log_prior,
            scores.base + log_prior,
            *scores.arrays,
            given is not None,
            posterior,
            *sums,
        )
        return log_likelihood, sums

    steps = (examples.mean_ones * (2 if scores.parent.size else 1) + 8) * n_classes
    partial = 8 * sum(int(np.prod(shape)) for shape in shapes)
    parts = run(one, examples.parts(steps, partial), n_jobs)
    ones, pairs, counts, blocks = (
        np.sum([part[1][i] for part in parts], axis=0) for i in range(len(shapes))
    )
    return Sums(
        float(sum(part[0] for part in parts)),
        posterior,
        examples.weights @ posterior,
        ones,
        pairs,
        counts,
        tables.split(blocks) if blocks.size else [],
    )


def pair_sums(rows: Rows, members: IntArray, mass: FloatArray) -> FloatArray:
    """Return the mass of the rows with both of two variables on, for all pairs.

    The result is symmetric; its diagonal is the mass of the rows with a variable on.
    """
    total = np.zeros((rows.n_variables, rows.n_variables))
    log_linear_kernels.add_pairs(rows.arrays, members, mass, total)
    upper = np.triu(total, 1)
    return total + upper.T
