"""Points of the latent space: Sobol sequences, evenly spread over the unit cube."""

import numpy as np
import numpy.typing as npt
from scipy.stats import qmc


def even_points(n_points: int, dimension: int, rng: np.random.Generator) -> npt.NDArray[np.float32]:
    """Return the first points of a scrambled Sobol sequence in the unit cube.

    >>> even_points(4, 2, np.random.default_rng(0)).shape
    (4, 2)
    """
    exponent = max(n_points - 1, 0).bit_length()
    seed = np.random.default_rng(rng.integers(2**63))
    sequence = qmc.Sobol(dimension, scramble=True, rng=seed)
    return np.asarray(sequence.random_base2(exponent)[:n_points], dtype=np.float32)
