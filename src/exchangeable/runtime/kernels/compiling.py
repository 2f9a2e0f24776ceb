"""What is done while a kernel is compiled: the user is told, and the garbage collector waits.

Compiling makes objects by the million, nearly all of which stay: looking through them again and
again would take a sixth of the time.
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
"""Versions of Numba whose compiler `runtime.compiler` was written for; others do all of the work
themselves, and take longer."""
CLEAR = "\r\x1b[K"
"""What empties a line of a terminal."""


def is_known() -> bool:
    """Whether Numba is of a version whose compiler we may change."""
    return numba.__version__.rpartition(".")[0] in KNOWN


class CompilationListener(event.Listener):  # type: ignore[misc,unused-ignore]
    """Tells a terminal which kernel is being compiled, and the log, once, that one is.

    Numba calls it for every function that is not found in a cache, one at a time: compilation holds
    a lock. Functions of other packages are compiled as before.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._n_kernels = 0
        self._collects = False

    def on_start(self, event: Any) -> None:
        """Tell that a kernel is compiled, unless it is for another one."""
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
        """Let everything go on once the outermost kernel has been compiled."""
        if not self._depth:
            return
        self._depth -= 1
        if not self._depth:
            if self._collects:
                gc.enable()
            _show(CLEAR)


def _name(event: Any) -> str:
    """Return the name of the kernel, empty if it is not of this package."""
    function = event.data["dispatcher"].py_func
    package, _, path = (function.__module__ or "").partition(".")
    return f"{path}.{function.__name__}" if package == PACKAGE else ""


def _link_only(dispatcher: Any) -> None:
    """Let one of Numba's own functions be a part of the kernel, and not be made machine code."""
    from exchangeable.runtime.kernels.compiler import HelperCompiler

    dispatcher._compiler.pipeline_class = HelperCompiler


def _show(text: str) -> None:
    """Write to a terminal; elsewhere nothing is written."""
    if sys.stderr is not None and sys.stderr.isatty():
        sys.stderr.write(text)
        sys.stderr.flush()


def listen() -> None:
    """Listen to Numba from now on."""
    event.register("numba:compile", CompilationListener())  # type: ignore[no-untyped-call]
