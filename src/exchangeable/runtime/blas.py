"""Matrix products on one thread while our own threads are working."""

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _libraries() -> ThreadpoolController:
    """Return the loaded libraries, found once.

    Looking for them means reading the list of everything mapped by the process, which takes
    milliseconds, and longer the more kernels are compiled: more than a small fit.
    """
    import scipy.linalg  # noqa: F401  its BLAS is another one than NumPy's

    return ThreadpoolController()


def blas_threads(limit: int = 1) -> AbstractContextManager[Any]:
    """Set the number of BLAS threads in a block of code.

    Idle threads of a matrix product would take cores from ours.

    Parameters
    ----------
    limit : int
        Number of threads.

    Examples
    --------
    >>> import numpy as np
    >>> with blas_threads(1):
    ...     float((np.ones((2, 3)) @ np.ones((3, 2)))[0, 0])
    3.0
    """
    limited: AbstractContextManager[Any] = _libraries().limit(limits=limit, user_api="blas")
    return limited
