"""Side effects of compiling: the user is informed, and the garbage collector pauses.

Compiling creates millions of objects, nearly all of which stay: scanning them again and again would
take a sixth of the time.
"""

import gc
import logging
import sys
from typing import Any

import numba
from numba.core import event

PACKAGE = __name__.partition(".")[0]
MESSAGE = "compiling, first use only"
LOGGER = logging.getLogger(PACKAGE)
KNOWN = ("0.68",)
"""Versions of Numba for which `runtime.compiler` was written; with others, Numba does all of the
work itself, which takes longer."""
CLEAR = "\r\x1b[K"
"""What empties a line of a terminal."""


def is_known() -> bool:
    """Whether we support changing the compiler of this version of Numba."""
    return numba.__version__.rpartition(".")[0] in KNOWN


class CompilationListener(event.Listener):  # type: ignore[misc,unused-ignore]
    """Shows on a terminal which kernel is being compiled, and logs once that one is.

    Numba calls it for every function that is not found in a cache, one at a time: compilation holds
    a lock. Functions of other packages are compiled as usual.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._n_kernels = 0
        self._collects = False

    def on_start(self, event: Any) -> None:
        """Report that a kernel is compiled, unless it is part of another one."""
        name = _name(event)
        if not self._depth and not name:
            return
        self._depth += 1
        if self._depth > 1:
            if not name and is_known():
                _link_only(event.data["dispatcher"])
            return
        if not self._n_kernels:
            LOGGER.info("%s; `exchangeable warmup` compiles everything ahead", MESSAGE)
        self._n_kernels += 1
        _show(f"{CLEAR}{MESSAGE}: {self._n_kernels} ({name})")
        self._collects = gc.isenabled()
        gc.disable()

    def on_end(self, event: Any) -> None:
        """End the side effects once the outermost kernel has been compiled."""
        if not self._depth:
            return
        self._depth -= 1
        if not self._depth:
            if self._collects:
                gc.enable()
            _show(CLEAR)


def _name(event: Any) -> str:
    """Return the name of the kernel, empty if it does not belong to this package."""
    function = event.data["dispatcher"].py_func
    package, _, path = (function.__module__ or "").partition(".")
    return f"{path}.{function.__name__}" if package == PACKAGE else ""


def _link_only(dispatcher: Any) -> None:
    """Let one of Numba's own functions be part of the kernel, without machine code of its own."""
    from exchangeable.runtime.kernels.compiler import HelperCompiler

    dispatcher._compiler.pipeline_class = HelperCompiler


def _show(text: str) -> None:
    """Write to a terminal, and nowhere else."""
    if sys.stderr is not None and sys.stderr.isatty():
        sys.stderr.write(text)
        sys.stderr.flush()


def listen() -> None:
    """Listen to Numba's compiler from now on."""
    event.register("numba:compile", CompilationListener())  # type: ignore[no-untyped-call]
