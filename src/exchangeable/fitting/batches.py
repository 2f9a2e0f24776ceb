"""Splitting batches of rows into the parts between two steps."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.data.examples import Examples, merge_equal_rows
from exchangeable.data.observed import Observed
from exchangeable.runtime.threads import row_ranges

PART_ROWS = 256
"""Rows between two steps of stochastic EM."""


def parts_of(observed: Observed, weight: FloatArray, seed: Any) -> Iterator[Examples]:
    """Yield parts of a batch with its rows in random order, so that the parts are similar."""
    counting = np.flatnonzero(weight > 0)
    number = seed if isinstance(seed, int | np.integer) else 0
    order = np.random.default_rng(int(number)).permutation(counting)
    for begin, end in row_ranges(order.size, PART_ROWS):
        chosen = np.sort(order[begin:end])
        yield merge_equal_rows(observed.take(chosen), weight[chosen])[0]
