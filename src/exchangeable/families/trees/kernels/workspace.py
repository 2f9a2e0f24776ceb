"""Memory for the polynomials of forests."""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families.trees.kernels.bundles import SCRATCH
from exchangeable.families.trees.kernels.merges import PAD, Merges


class Workspace(NamedTuple):
    """Memory for the polynomials of a forest of n nodes; everything is written before it is read.

    Factors are numbered as in `Merges`.

    Attributes
    ----------
    off, on : arrays
        The polynomials of all factors, for the parent off and on.
    d_off, d_on : arrays
        Derivatives with respect to them, and at the end `SCRATCH` numbers for `bundles`.
    factors : array of shape (2·n, 2)
        The start of each factor's polynomials, and their degree.
    sums : array of shape (2·n + 2, 2)
        The sums of the coefficients, of `off` and of `on`.
    nodes : array of shape (3, n)
        The factors of a node's subtrees if the node is off, and if it is on, and the additional
        factor if its parent is on too.
    scales : array of shape (n,)
        The divisor of the product of each merge.
    coefficients : array of shape (top + 1,)
        Those of the whole forest.
    """

    off: FloatArray
    on: FloatArray
    d_off: FloatArray
    d_on: FloatArray
    factors: IntArray
    sums: FloatArray
    nodes: FloatArray
    scales: FloatArray
    coefficients: FloatArray

    @classmethod
    def of(cls, merges: Sequence[Merges], top: int) -> Self:
        """Return a workspace for any of some forests, and polynomials up to degree `top`."""
        n = merges[0].left.size
        lengths = int(np.minimum([each.sizes for each in merges], top).sum(axis=1).max())
        off, on, d_off, d_on = np.empty((4, lengths + 2 * n * (1 + PAD) + PAD + SCRATCH))
        return cls(
            off,
            on,
            d_off,
            d_on,
            factors=np.empty((2 * n, 2), dtype=np.int64),
            sums=np.empty((2 * n + 2, 2)),
            nodes=np.empty((3, n)),
            scales=np.empty(n),
            coefficients=np.empty(top + 1),
        )
