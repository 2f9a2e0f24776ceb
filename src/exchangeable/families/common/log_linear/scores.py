"""Log-linear scores: linear terms, pairs along forests and look-ups, and EM's pass over them."""

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.examples import Examples
from exchangeable.data.rows import Rows
from exchangeable.families.common.log_linear import kernels as log_linear_kernels
from exchangeable.families.common.log_linear.kernels import LogLinearArrays, SumArrays
from exchangeable.families.common.posteriors import RowPriors
from exchangeable.families.common.tables import Tables
from exchangeable.families.sums import Sums
from exchangeable.runtime.threads import row_ranges, run

SCORE_CHUNK = 1 << 10
NO_PARENTS = np.empty((0, 0), dtype=np.int32)
NO_NUMBERS = np.empty((0, 0))


def _no_tables() -> Tables:
    nothing = np.empty(0, dtype=np.int64)
    return Tables(np.empty((0, 0), dtype=np.uint16), nothing, nothing, np.empty(0))


@dataclass(frozen=True)
class LogLinear:
    """The parameters of log-linear scores; see `log_linear_kernels` for the formula.

    Attributes
    ----------
    base : array of shape (n_classes,)
        Score of a row without ones, without look-ups.
    slope : array of shape (n_variables, n_classes)
        What a one adds.
    parent, pair : arrays of shape (n_variables, n_classes) or (0, 0)
        Each variable's parent (the number of variables for a root), and the term of the pair.
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
    def arrays(self) -> LogLinearArrays:
        """The parameters in the form of the kernels."""
        tables = self.tables.arrays
        slope = np.ascontiguousarray(self.slope)  # kernels are compiled for one layout
        return LogLinearArrays(self.base, slope, self.parent, self.pair, self.by_count, tables)

    @property
    def is_linear(self) -> bool:
        """Whether there is nothing but linear terms."""
        return not (self.pair.size or self.by_count.size or self.tables.values.size)

    def scaled(self, factor: float) -> "LogLinear":
        """Return the scores times a factor."""
        return replace(
            self,
            base=factor * self.base,
            slope=factor * self.slope,
            pair=factor * self.pair,
            by_count=factor * self.by_count,
            tables=replace(self.tables, values=factor * self.tables.values),
        )

    def plus(self, base: FloatArray, slope: FloatArray) -> "LogLinear":
        """Return the scores with linear terms added; those of one column go to all classes."""
        return replace(self, base=self.base + base, slope=self.slope + slope)


@dataclass(frozen=True)
class LinearSums(Sums):
    """The sums of a pass over the examples.

    Attributes
    ----------
    ones : array of shape (n_variables, n_classes)
        Posterior weight of the rows with a variable on.
    pairs : array of shape (n_variables, n_classes) or (0, 0)
        The same for the rows with a variable and its parent on.
    counts : array of shape (n_variables + 1, n_classes) or (0, 0)
        The same for the rows with each number of ones.
    blocks : list of arrays
        The same for the rows with each count in each block, for each class.
    """

    ones: FloatArray
    pairs: FloatArray
    counts: FloatArray
    blocks: list[FloatArray]


def score(rows: Rows, model: LogLinear, n_jobs: int | None = None) -> FloatArray:
    """Return the score of every row in every class."""
    out = np.empty((rows.n_rows, model.base.size))
    arrays = model.arrays

    def one(span: tuple[int, int]) -> None:
        log_linear_kernels.score_rows(rows.arrays, *span, arrays, out)

    run(one, row_ranges(rows.n_rows, SCORE_CHUNK), n_jobs)
    return out


def expect(
    examples: Examples,
    model: LogLinear,
    log_prior: FloatArray,
    n_jobs: int | None = None,
    posterior: FloatArray | None = None,
) -> LinearSums:
    """Compute the posteriors of all examples, and the sums for the next parameters.

    Given posteriors are used unchanged: nothing is scored, and the log-likelihood is 0.
    """
    rows, tables = examples.rows, model.tables
    n_classes, fixed = model.base.size, posterior is not None
    shares = np.empty((rows.n_rows, n_classes)) if posterior is None else posterior
    shapes = (model.slope.shape, model.pair.shape, model.by_count.shape, tables.values.shape)
    arrays = model.arrays._replace(base=model.base + log_prior)
    priors = RowPriors(examples.weights, examples.clamp, log_prior)

    def one(span: tuple[int, int]) -> tuple[float, SumArrays]:
        sums = SumArrays(*[np.zeros(shape) for shape in shapes])
        log_likelihood: float = log_linear_kernels.expect_rows(
            rows.arrays, *span, arrays, priors, fixed, shares, sums
        )
        return log_likelihood, sums

    steps = (examples.mean_ones * (2 if model.parent.size else 1) + 8) * n_classes
    partial = 8 * sum(int(np.prod(shape)) for shape in shapes)
    likelihoods, parts = zip(*run(one, examples.parts(steps, partial), n_jobs), strict=True)
    total = SumArrays(*[np.sum(arrays, axis=0) for arrays in zip(*parts, strict=True)])
    return LinearSums(
        float(sum(likelihoods)),
        shares,
        examples.weights @ shares,
        total.ones,
        total.pairs,
        total.counts,
        tables.split(total.histogram) if total.histogram.size else [],
    )


def pair_sums(rows: Rows, members: IntArray, mass: FloatArray) -> FloatArray:
    """Return the mass of the rows with both of two variables on, for all pairs.

    The result is symmetric; its diagonal is the mass of the rows with a variable on.
    """
    total = np.zeros((rows.n_variables, rows.n_variables))
    log_linear_kernels.add_pairs(rows.arrays, members, mass, total)
    upper = np.triu(total, 1)
    return total + upper.T
