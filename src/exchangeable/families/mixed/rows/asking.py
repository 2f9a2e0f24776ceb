"""Questions about rows whose answers add up over chunks."""

from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray

Ask = Callable[[Any, FloatArray], Any]
"""A question about rows whose answers add up: a function of a part's own columns, and of the weight
of each row in each class."""


class Highest:
    """The largest numbers of some rows; the union of two sets has the larger ones.

    >>> (Highest(np.array([3, 1])) + Highest(np.array([2, 4]))).numbers.tolist()
    [3, 4]
    """

    def __init__(self, numbers: npt.NDArray[Any]) -> None:
        self.numbers = numbers

    def __add__(self, other: "Highest") -> "Highest":
        return Highest(np.maximum(self.numbers, other.numbers))


def answered(steps: Generator[Ask, Any, Any], values: Any, mass: FloatArray) -> Any:
    """Return the result of questions that are answered by rows in memory."""
    ask = next(steps)
    while True:
        try:
            ask = steps.send(ask(values, mass))
        except StopIteration as end:
            return end.value
