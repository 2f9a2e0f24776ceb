"""Timing for the benchmarks: the best of several calls, because single ones are noisy."""

import time
from collections.abc import Callable
from typing import Any


def best_of(function: Callable[[], Any], repeats: int = 5) -> float:
    """Return the seconds of the fastest call."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return min(seconds)
