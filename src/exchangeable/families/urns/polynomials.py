"""The polynomials of weighted urns, and the expectations of variables."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families.urns import kernels
from exchangeable.partitions import Partition
from exchangeable.runtime.threads import run


class UrnPolynomials(NamedTuple):
    """The weights of one class's urns and their polynomials, which do not depend on the rows.

    Attributes
    ----------
    order : array of shape (n_variables,)
        The variables by block, those of a block by weight.
    weights : array of shape (n_variables,)
        Their weights, in this order.
    log_e : array
        log e_l of each block and count, in the layout of the partition; +inf where not known.
    """

    order: IntArray
    weights: FloatArray
    log_e: FloatArray


def urn_polynomials(
    partitions: Sequence[Partition],
    log_weights: FloatArray,
    reach: Sequence[IntArray],
    near: Sequence[IntArray] = (),
    n_jobs: int | None = None,
) -> list[UrnPolynomials]:
    """Return the polynomials of each class, for counts up to the reach of each block.

    `log_weights` has one column per class; `near` are orders in which they are nearly sorted, if
    known.
    """
    columns = np.exp(np.ascontiguousarray(log_weights.T))

    def one(y: int) -> UrnPolynomials:
        partition = partitions[y]
        if near:  # a stable sort of nearly sorted weights takes a third of the time
            order = near[y][np.argsort(columns[y][near[y]], kind="stable")]
        else:
            order = np.argsort(columns[y])
        if partition.n_blocks > 1:
            order = order[np.argsort(partition.labels[order], kind="stable")]
        weights, table = columns[y][order], np.empty(partition.table_size)
        sizes, starts = partition.sizes, partition.starts
        kernels.fill_polynomials(sizes, starts, weights, reach[y], table)
        return UrnPolynomials(order, weights, table)

    return run(one, range(columns.shape[0]), n_jobs)


def expected_ones(
    partitions: Sequence[Partition],
    polynomials: Sequence[UrnPolynomials],
    histograms: Sequence[FloatArray],
    n_jobs: int | None = None,
) -> FloatArray:
    """Return E[x_j], shape (n_variables, n_classes), given the mass of each count in each block.

    Each class consists of weighted urns, one per block, with polynomials from `urn_polynomials`.
    """
    out = np.empty((len(polynomials), polynomials[0].order.size))

    def one(y: int) -> None:
        sizes, starts = partitions[y].sizes, partitions[y].starts
        histogram = np.ascontiguousarray(histograms[y])
        kernels.expected_in_blocks(polynomials[y], sizes, starts, histogram, out[y])

    run(one, range(len(polynomials)), n_jobs)
    return np.ascontiguousarray(out.T)
