"""Sampling designs: clusters that were drawn within strata.

Respondents of a cluster, such as a school or a block of houses, are similar, so they carry less
information than the same number of independent respondents; different strata were sampled
independently. Standard errors take this into account by treating clusters as the *primary sampling
units*, drawn with replacement, as is usual if the sample contains a small share of all clusters.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class Sampling:
    """The clusters of the rows, and the strata of the clusters.

    Attributes
    ----------
    unit : array of shape (n_rows,)
        The cluster of each row.
    stratum : array of shape (n_units,)
        The stratum of each cluster.
    """

    unit: IntArray
    stratum: IntArray

    @classmethod
    def of(cls, strata: Any, clusters: Any, n_rows: int) -> "Sampling | None":
        """Return the design described by two columns, None if neither is given.

        Clusters of different strata are different even if they have the same name. Without clusters
        every row is a cluster.
        """
        if strata is None and clusters is None:
            return None
        names, stratum = _numbered(strata, "strata", n_rows)
        cluster = (
            np.arange(n_rows) if clusters is None else _numbered(clusters, "clusters", n_rows)[1]
        )
        pairs, unit = np.unique(np.stack([stratum, cluster]), axis=1, return_inverse=True)
        sizes = np.bincount(pairs[0], minlength=len(names))
        if (sizes < 2).any():
            lonely = [names[h] for h in np.flatnonzero(sizes < 2)]
            what = f"stratum {lonely[0]!r} has" if strata is not None else "there is"
            more = f" (so have {len(lonely) - 1} more strata)" if len(lonely) > 1 else ""
            raise ValueError(
                f"{what} only one cluster{more}, which tells nothing about how clusters differ; "
                "merge such strata with others that are like them"
            )
        return cls(unit.ravel().astype(np.int64), pairs[0].astype(np.int64))

    def multipliers(self, rng: np.random.Generator) -> FloatArray:
        """Return the factors of the rows' weights in one draw of the bootstrap.

        In each stratum of n clusters, n − 1 are drawn with replacement, and weights are scaled up
        accordingly, which makes variances unbiased (Rao and Wu 1988).
        """
        factor = np.empty(self.stratum.size)
        for h in range(int(self.stratum.max()) + 1):
            own = np.flatnonzero(self.stratum == h)
            counts = rng.multinomial(own.size - 1, np.full(own.size, 1 / own.size))
            factor[own] = counts * (own.size / (own.size - 1))
        return factor[self.unit]

    def squares(self, contributions: FloatArray) -> FloatArray:
        """Return the variance of the sum of the rows' contributions to an estimating equation.

        That is the sum over strata of n/(n − 1) Σ (z − z̄)(z − z̄)ᵀ, where z are sums of clusters.

        >>> Sampling(np.array([0, 0, 1, 2]), np.zeros(3, dtype=np.int64)).squares(
        ...     np.array([[1.0], [1.0], [-1.0], [-1.0]])
        ... )
        array([[9.]])
        """
        sums = np.zeros((self.stratum.size, contributions.shape[1]))
        np.add.at(sums, self.unit, contributions)
        sizes = np.bincount(self.stratum)
        means = np.zeros((sizes.size, sums.shape[1]))
        np.add.at(means, self.stratum, sums)
        means /= sizes[:, None]
        scaled = (sums - means[self.stratum]) * np.sqrt(sizes / (sizes - 1))[self.stratum, None]
        return np.asarray(scaled.T @ scaled)


def squares(
    contributions: FloatArray, sampling: Sampling | None, rows: IntArray | None = None
) -> FloatArray:
    """Return the variance of a sum over rows, which are independent without a sampling design.

    `rows` are the numbers of the contributing rows; the others are part of the sample and
    contribute zero.
    """
    if sampling is None:
        return np.asarray(contributions.T @ contributions)
    if rows is not None:
        whole = np.zeros((sampling.unit.size, contributions.shape[1]))
        whole[rows] = contributions
        contributions = whole
    return sampling.squares(contributions)


def row_multipliers(n_rows: int, sampling: Sampling | None, rng: np.random.Generator) -> FloatArray:
    """Return the factors of the rows' weights in one draw of the bootstrap."""
    if sampling is not None:
        return sampling.multipliers(rng)
    return rng.multinomial(n_rows, np.full(n_rows, 1 / n_rows)).astype(np.float64)


def check_replicates(given: Any, n_rows: int, sampling: Sampling | None) -> FloatArray:
    """Return replicate weights, one column per replicate, after checking them."""
    if given is None:
        raise ValueError("method='replicates' needs replicate_weights, one column per replicate")
    if sampling is not None:
        raise ValueError("replicate weights know strata and clusters already; leave these out")
    matrix = np.asarray(given, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != n_rows or matrix.shape[1] < 2:
        raise ValueError(
            f"replicate_weights has the shape {matrix.shape}; expected ({n_rows}, n_replicates) "
            "with at least two replicates"
        )
    if not np.isfinite(matrix).all() or matrix.min() < 0:
        raise ValueError("replicate_weights must be finite and not negative")
    return matrix


def _numbered(given: Any, name: str, n_rows: int) -> tuple[list[Any], IntArray]:
    """Return the values of a column, and the number of each row's among them."""
    if given is None:
        return [""], np.zeros(n_rows, dtype=np.int64)
    values: npt.NDArray[Any] = np.asarray(given)
    if values.shape != (n_rows,):
        raise ValueError(
            f"{name} has the shape {values.shape}; expected one entry per row, ({n_rows},)"
        )
    numbers: dict[Any, int] = {}
    found = np.empty(n_rows, dtype=np.int64)
    for row, value in enumerate(values.tolist()):
        if value is None or value != value or value == "":
            raise ValueError(
                f"{name} is empty in row {row}; every row needs one, or must be left out"
            )
        found[row] = numbers.setdefault(value, len(numbers))
    return list(numbers), found
