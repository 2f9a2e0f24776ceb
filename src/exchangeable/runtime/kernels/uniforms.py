"""Cached uniform random numbers, which are read again in every iteration of EM."""

from threading import Lock

import numpy as np

from exchangeable.arrays import FloatArray


class Uniforms:
    """The random numbers of several generators, the first of which are cached.

    Parameters
    ----------
    most : int
        Maximum number of cached values.

    Examples
    --------
    >>> uniforms = Uniforms(most=100)
    >>> bool((uniforms.first(3, 10)[:10] == np.random.default_rng(3).random(10)).all())
    True
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._kept: dict[int, FloatArray] = {}
        self._lock = Lock()

    def first(self, seed: int, size: int) -> FloatArray:
        """Return the first numbers of a seed, at least as many as requested."""
        with self._lock:
            kept = self._kept.get(seed)
            others = sum(each.size for other, each in self._kept.items() if other != seed)
        wanted = size + size // 8
        if kept is not None and size <= kept.size <= 2 * wanted:
            return kept
        # The number of rows varies: cache slightly more than is needed now.
        if kept is not None and kept.size >= wanted:
            numbers = kept[:wanted].copy()
        else:
            numbers = np.random.default_rng(seed).random(wanted)
        if others + numbers.size <= self.most:
            with self._lock:
                self._kept[seed] = numbers
        return numbers
