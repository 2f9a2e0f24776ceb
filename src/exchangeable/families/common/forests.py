"""Forests of maximum gain."""

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray
from exchangeable.families.common import forest_kernels


def best_tree(gains: FloatArray) -> npt.NDArray[np.int32]:
    """Return each variable's parent in the forest with the greatest total gain.

    Gains are symmetric; edges whose gain is not positive are left out. A root's parent is n.

    >>> gains = np.array([[0, 3, 1], [3, 0, 2], [1, 2, 0.0]])
    >>> best_tree(gains).tolist()
    [3, 0, 1]
    """
    parent = np.empty(gains.shape[0], dtype=np.int32)
    forest_kernels.prim(np.ascontiguousarray(gains), parent)
    return parent
