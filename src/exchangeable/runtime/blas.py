"""Matrix products on one thread, while threads of ours are at work."""

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _libraries() -> ThreadpoolController:
    """Return the libraries that are loaded, found once.

    To look for them is to read all that the process has mapped, which takes milliseconds, and more
    the more kernels are compiled: longer than a small fit.
    """
    import scipy.linalg  # noqa: F401  its BLAS is another one than NumPy's

    return ThreadpoolController()


def blas_threads(limit: int = 1) -> AbstractContextManager[Any]:
    """Let BLAS have this many threads in a block of code.

    Idle threads of a matrix product keep ours from running.

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
