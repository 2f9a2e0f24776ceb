"""Compilation of programs for a device: quickly, without a search for the fastest products."""

import os
import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import jax

QUICK: dict[str, int | bool] = {"xla_gpu_autotune_level": 0, "xla_gpu_enable_triton_gemm": False}
"""On a GPU, products are left to its library. Autotuning takes XLA 11 s in a fit that trains for
less than one. Other devices ignore these options."""

Begin = Callable[[Callable[[], None]], object]
"""Begins some work in a thread of its own."""
CORES_EACH = 4
"""A compiler running beside others has this many cores to itself."""


@cache
def quick_options() -> dict[str, int | bool]:
    """Return those of the options that the installed JAX supports."""
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


def compile_ahead(programs: Sequence[tuple[Any, ...]], device: Any, begin: Begin) -> None:
    """Compile some programs, each with what it will be called with, while other work goes on.

    `begin` begins such work in a thread of its own. A process that ends meanwhile should wait for
    it, unless a signal ends it: to end in the middle of the compiler would abort it. Programs that
    were not begun by then are left out.
    """
    left = iter(programs)

    def compile_some() -> None:
        with jax.default_device(device):
            for function, *arguments in left:
                if not threading.main_thread().is_alive():
                    return
                function.lower(*arguments).compile()

    for _ in range(min(len(programs), max(1, (os.cpu_count() or 1) // CORES_EACH))):
        begin(compile_some)
