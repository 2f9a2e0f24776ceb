"""Trees over variables in model files."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray
from exchangeable.families.trees.limits import MOST_VARIABLES
from exchangeable.families.trees.polynomials import LARGEST_PAIR, LARGEST_SLOPE
from exchangeable.storage.archive import ModelFileError
from exchangeable.storage.checks import CLOSE, check_forest, needed, numbers, probabilities

ARRAYS = ("base", "slope", "parent", "pair", "log_q")


def decode(
    arrays: Mapping[str, npt.NDArray[Any]],
) -> tuple[FloatArray, FloatArray, npt.NDArray[np.int32], FloatArray, FloatArray]:
    """Return the parameters from arrays of a file, in the order of `ARRAYS`."""
    base, slope, parent, pair, log_q = needed(arrays, ARRAYS)
    if slope.ndim != 2 or not slope.size:
        raise ModelFileError(f"slope has shape {slope.shape}")
    n, k = slope.shape
    bounded: dict[str, Any] = {"low": -1e300, "high": 1e300}
    by_slope, by_pair = bounded, bounded
    if log_q.size:
        if n > MOST_VARIABLES:
            raise ModelFileError(
                f"weighted trees have at most {MOST_VARIABLES:,} variables, this has {n:,}"
            )
        by_slope = {"low": -LARGEST_SLOPE, "high": LARGEST_SLOPE}
        by_pair = {"low": -LARGEST_PAIR, "high": LARGEST_PAIR}
        bounded = {"low": 0.0, "high": 0.0}
    edges = (n, k) if parent.size else (0, 0)
    if parent.dtype != np.int32 or parent.shape != edges:
        raise ModelFileError(f"parent is {parent.dtype} of shape {parent.shape}")
    check_forest(parent, n)
    log_q = numbers(log_q, "log_q", (n + 1, k) if log_q.size else (0, 0), low=-np.inf, high=CLOSE)
    for column in log_q.T:
        probabilities(column, "log_q")
    return (
        numbers(base, "base", (k,), **bounded),
        numbers(slope, "slope", (n, k), **by_slope),
        parent,
        numbers(pair, "pair", edges, **by_pair),
        log_q,
    )
