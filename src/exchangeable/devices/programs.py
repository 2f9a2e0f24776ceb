"""How programs are compiled for a device: quickly, without a search for the fastest products."""

from collections.abc import Callable
from functools import cache
from typing import Any

import jax

QUICK: dict[str, int | bool] = {"xla_gpu_autotune_level": 0, "xla_gpu_enable_triton_gemm": False}
"""On a GPU products are made by its library, as that sees fit. To try others takes XLA 11 s of a
fit that trains for less than one. Other devices do not read these options."""


@cache
def quick_options() -> dict[str, int | bool]:
    """Return those of the options that the installed JAX knows."""
    known = dict[str, int | bool]()
    for name, value in QUICK.items():
        try:
            jax.jit(lambda: 0, compiler_options={name: value}).lower().compile()
        except RuntimeError:
            continue
        known[name] = value
    return known


def program(*static: str) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a function; the arguments named are part of the program.

    Examples
    --------
    >>> @program("times")
    ... def repeated(x, times):
    ...     return times * x
    >>> float(repeated(2.0, times=3))
    6.0
    """

    def compiled(function: Callable[..., Any]) -> Any:
        return jax.jit(function, static_argnames=static, compiler_options=quick_options())

    return compiled
