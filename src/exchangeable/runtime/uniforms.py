"""Uniform random numbers that are read again and again, in every iteration of EM."""

from threading import Lock

import numpy as np

from exchangeable.arrays import FloatArray


class Uniforms:
    """The numbers of a seed's generator, the first of which are kept.

    Parameters
    ----------
    seed : int
        Of the generator.
    most : int
        How many numbers may be kept.

    Examples
    --------
    >>> uniforms = Uniforms(3, most=100)
    >>> bool((uniforms.first(10)[:10] == uniforms.generator().random(10)).all())
    True
    """

    def __init__(self, seed: int, most: int) -> None:
        self.seed, self.most = seed, most
        self._kept: FloatArray = np.empty(0)
        self._lock = Lock()

    def generator(self) -> np.random.Generator:
        """Return a new generator, which begins with the first number."""
        return np.random.default_rng(self.seed)

    def first(self, size: int) -> FloatArray:
        """Return the first numbers, at least as many as are asked for."""
        if size > self.most:
            return self.generator().random(size)
        with self._lock:
            if self._kept.size < size:
                self._kept = self.generator().random(min(self.most, size + size // 8))
            return self._kept
