"""Tests of exchangeability: the three necessary conditions of Proposition 3.3.

Under exchangeability any order of the entries within a row is equally likely, whatever the row's
count. Given the counts, the sums over rows that the tests use have known means and covariances, so
their squared distance from equality, in units of that covariance, is asymptotically chi-square.
For the means this is Cochran's Q test.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import chdtrc, ndtr
from sklearn.utils import check_array

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.containers import as_matrix
from exchangeable.data.groups import NO_WEIGHTS
from exchangeable.partitions import check_partition
from exchangeable.structure.conditions import equal_means_p_value
from exchangeable.structure.pairs import below_bound, pair_covariances

MAX_PAIRWISE = 3000
"""In blocks larger than this, covariances are compared per variable instead of per pair."""


@dataclass(frozen=True)
class BlockTest:
    """The results for one block.

    Attributes
    ----------
    variables : ndarray
        The variables of the block.
    mean, variance, covariance : float
        Averages over the block's variables and pairs.
    covariance_bound : float
        The smallest possible covariance of exchangeable variables, −variance / (n − 1).
    p_bound : float
        p-value of no pair being below it, if pairs are compared.
    p_means, p_variances, p_covariances : float
        p-values of equal means, equal variances and equal covariances. A variance of 0/1 variables
        is mean·(1 − mean), so the second test differs from the first only for means on both sides
        of ½.
    """

    variables: IntArray
    mean: float
    variance: float
    covariance: float
    covariance_bound: float
    p_bound: float
    p_means: float
    p_variances: float
    p_covariances: float

    @property
    def p_value(self) -> float:
        """The block's p-value: that of its four tests together, by Bonferroni's correction."""
        each = (self.p_means, self.p_variances, self.p_covariances, self.p_bound)
        return min(1.0, len(each) * min(each))


@dataclass(frozen=True)
class ExchangeabilityReport:
    """The tests of all blocks, as returned by `exchangeability_report`.

    Attributes
    ----------
    tests : list of BlockTest
        One entry per block.
    """

    tests: list[BlockTest]

    @property
    def p_value(self) -> float:
        """The overall p-value, which holds under multiple testing (Bonferroni over the blocks)."""
        return min(1.0, len(self.tests) * min(test.p_value for test in self.tests))

    def __str__(self) -> str:
        head = "block  variables    mean  covariance  (bound)    p: means  variances  covariances"
        head += "     bound"
        lines = [
            f"{number:5d}  {test.variables.size:9d}  {test.mean:6.3f}  {test.covariance:10.4f}  "
            f"({test.covariance_bound:7.4f})  {test.p_means:8.3g}  {test.p_variances:9.3g}  "
            f"{test.p_covariances:11.3g}  {test.p_bound:8.3g}"
            for number, test in enumerate(self.tests)
        ]
        return "\n".join([head, *lines, f"overall p-value: {self.p_value:.3g}"])


def exchangeability_report(
    X: Any, blocks: Iterable[Sequence[int]] | None = None
) -> ExchangeabilityReport:
    """Test whether 0/1 variables are exchangeable, within each of some blocks.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_variables)
        Entries 0 and 1.
    blocks : sequence of sequences of int, optional
        A partition of the variables; by default all are one block.

    Returns
    -------
    ExchangeabilityReport
        Its ``p_value`` is small if the variables are not exchangeable; ``tests`` shows why.

    Examples
    --------
    >>> import numpy as np
    >>> from exchangeable import exchangeability_report
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((1000, 6)) < rng.random((1000, 1))
    >>> exchangeability_report(X).p_value > 0.05
    True
    >>> X[:, 0] |= rng.random(1000) < 0.2
    >>> report = exchangeability_report(X)
    >>> report.p_value < 0.001
    True
    >>> exchangeability_report(X, blocks=[[0], [1, 2, 3, 4, 5]]).p_value > 0.05
    True
    """
    X = check_array(as_matrix(X), accept_sparse="csc", dtype="numeric", ensure_min_samples=2)
    columns = sp.csc_matrix(X, dtype=np.float64)
    if not columns.has_canonical_format:  # entries stored twice add up
        columns = columns.copy()
        columns.sum_duplicates()
    wrong = columns.data[(columns.data != 0) & (columns.data != 1)]
    if wrong.size:
        raise ValueError(f"X contains {wrong[0]}; expected 0 and 1 only")
    n_variables = columns.shape[1]
    parts = check_partition([range(n_variables)] if blocks is None else blocks, n_variables)
    return ExchangeabilityReport([_test_block(columns[:, part], part) for part in parts])


def _test_block(X: Any, variables: IntArray) -> BlockTest:
    n, m = X.shape
    counts = np.asarray(X.sum(axis=1)).ravel()
    means = np.asarray(X.mean(axis=0)).ravel()
    variance = float((means * (1 - means)).mean())
    spread = float(counts.var())
    covariance = (spread - m * variance) / (m * (m - 1)) if m > 1 else 0.0
    bound = -variance / (m - 1) if m > 1 else 0.0
    p_means = p_variances = p_covariances = p_bound = 1.0
    if m > 1:
        p_means = equal_means_p_value(n * means, counts, NO_WEIGHTS)
        # Variances are equal where means are equally far from a half.
        p_variances = equal_means_p_value(n * np.abs(means - 0.5), counts, NO_WEIGHTS)
        p_covariances = _covariance_p_value(X, counts)
        p_bound = _bound_p_value(X) if 2 < m <= MAX_PAIRWISE else 1.0
    return BlockTest(
        variables,
        float(means.mean()),
        variance,
        covariance,
        bound,
        p_bound,
        p_means,
        p_variances,
        p_covariances,
    )


def _bound_p_value(X: Any) -> float:
    """Test that no pair covaries less than exchangeable variables can (Bonferroni over pairs)."""
    both = np.asarray((X.T @ X).todense())
    score = below_bound(pair_covariances(both, X.shape[0]))
    pairs = score[np.triu_indices(len(score), 1)]
    return min(1.0, pairs.size * float(ndtr(-pairs.max())))


def _scatter(sums: FloatArray) -> float:
    return float(((sums - sums.mean()) ** 2).sum())


def _exchangeable_variance(weights: FloatArray, counts: FloatArray, m: int) -> float:
    """Return the variance, per degree of freedom, of Σ_i weight_i·x_ij given the rows' counts."""
    return float((weights**2 * counts * (m - counts)).sum() / (m * (m - 1)))


def _covariance_p_value(X: Any, counts: FloatArray) -> float:
    """Test that every variable, and every pair, has the same covariance.

    The vector of pair counts splits into three parts that permutations of the variables keep
    apart: its total, one effect per variable, and the rest, which has m(m − 3)/2 dimensions. Given
    the counts the last two are uncorrelated, each with one variance per dimension.
    """
    m = X.shape[1]
    # Each variable's products with the rest, made uncorrelated with the test of means.
    spread = counts * (m - counts)
    centred = counts - (spread @ counts) / max(spread.sum(), 1e-300)
    unit = _exchangeable_variance(centred, counts, m)
    scatter, df = _scatter(X.T @ centred), m - 1
    statistic = scatter / unit if unit > 0 else 0.0
    df = df if unit > 0 else 0
    if 3 < m <= MAX_PAIRWISE:
        pairs = (X.T @ X).toarray()
        np.fill_diagonal(pairs, 0.0)
        per_variable = pairs.sum(axis=1)
        n_pairs = m * (m - 1) / 2
        rest = (
            (pairs**2).sum() / 2
            - (per_variable.sum() / 2) ** 2 / n_pairs
            - _scatter(per_variable) / (m - 2)
        )
        on = counts * (counts - 1) / 2
        one_row = on - on**2 / n_pairs - (counts - 1) ** 2 * spread / (m * (m - 2))
        dimensions = m * (m - 3) / 2
        unit = float(one_row.sum()) / dimensions
        if unit > 1e-12:
            statistic += rest / unit
            df += dimensions
    # If nothing can vary, there is nothing to reject.
    return float(chdtrc(df, statistic)) if df > 0 else 1.0
