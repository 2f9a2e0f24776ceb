"""Kernels, and the cache of compiled kernels.

Numba caches compiled functions next to their files or in the user's cache folder, and looks for a
folder when a function is *declared*: importing a module would write, or fail if nothing is
writable. Here the folder is looked for when the first kernel is needed. Damaged files are replaced
after compiling again. If nothing can be written, because there is no folder or the disk is full,
every process compiles for itself, and a warning says so once.
"""

import atexit
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numba
from numba import njit
from numba.core.caching import FunctionCache
from numba.core.dispatcher import Dispatcher
from numba.core.registry import CPUDispatcher
from numba.misc.appdirs import user_cache_dir

from exchangeable.runtime.kernels.compiling import is_known, listen

OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
"""Options of all kernels: without the interpreter's lock, and division as in NumPy."""
_told: list[str] = []
_looked: list[bool] = []
listen()


class DeferredCache:
    """The cache of one function, which is looked for when the function is first needed.

    It is given up if it cannot be read or written.

    Parameters
    ----------
    function : callable
        The Python function.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._found: Any = None
        self._enabled = True

    def _cache(self) -> Any:
        if self._found is None:
            find_room()
            self._found = FunctionCache(self._function)  # type: ignore[no-untyped-call]
        return self._found

    @property
    def cache_path(self) -> str:
        """The folder."""
        return str(self._cache().cache_path)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return what is cached for a signature, None if there is nothing or it cannot be read.

        What cannot be read is damaged, or from another version of this library, and is deleted.
        """
        return self._try(lambda: self._load(sig, target_context))

    def _load(self, sig: Any, target_context: Any) -> Any:
        cache = self._cache()
        try:
            return cache.load_overload(sig, target_context)
        except Exception:  # a damaged pickle may raise anything
            cache.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Cache the compiled function for a signature, if possible."""
        self._try(lambda: self._cache().save_overload(sig, data))

    def _try(self, work: Callable[[], Any]) -> Any:
        if not self._enabled:
            return None
        try:
            return work()
        except Exception as error:  # a damaged pickle may raise anything
            self._enabled = False
            where = "a cache" if self._found is None else self._found.cache_path
            tell(f"{where} ({type(error).__name__}: {error})")
            return None

    def enable(self) -> None:
        """Enable the cache."""
        self._enabled = True

    def disable(self) -> None:
        """Disable the cache."""
        self._enabled = False

    def flush(self) -> None:
        """Delete what is cached."""
        self._try(lambda: self._cache().flush())


def _compiler(name: str) -> dict[str, Any]:
    """Return the option of `numba.njit` that selects one of our compilers, none if it may fail."""
    if not is_known():
        return {}
    from exchangeable.runtime.kernels import compiler

    return {"pipeline_class": getattr(compiler, name)}


def compiled(**options: Any) -> Any:
    """Return a decorator like `numba.njit` for kernels: cached, and without the interpreter's lock.

    Division by zero gives infinity or NaN, as in NumPy.

    Parameters
    ----------
    **options : optional
        Further options of `numba.njit`.
    """
    compiler: Any = njit(**OPTIONS, **_compiler("KernelCompiler"), **options)

    def declare(function: Callable[..., Any]) -> Any:
        kernel: Any = compiler(function)
        if isinstance(kernel, Dispatcher):  # else NUMBA_DISABLE_JIT is set
            kernel._cache = DeferredCache(function)  # type: ignore[attr-defined]
        return kernel

    return declare


class Helper(CPUDispatcher):
    """A function that kernels are linked with; called from Python, it is a kernel itself."""

    @cached_property
    def alone(self) -> Any:
        """The function as a kernel."""
        options = self.targetoptions.items()
        every = {"nopython", *OPTIONS}
        return compiled(**{key: value for key, value in options if key not in every})(self.py_func)

    def __call__(self, *arguments: Any) -> Any:
        """Call the function from Python."""
        return self.alone(*arguments)


def for_kernels(**options: Any) -> Any:
    """Return a decorator for functions that kernels call, and that they are linked with.

    They are not cached: kernels that have been compiled do not need them any more.

    Parameters
    ----------
    **options : optional
        Further options of `numba.njit`.
    """
    compiler: Any = njit(**OPTIONS, **_compiler("HelperCompiler"), **options)

    def declare(function: Callable[..., Any]) -> Any:
        helper: Any = compiler(function)
        if isinstance(helper, Dispatcher):
            helper.__class__ = Helper
        return helper

    return declare


def tell(where: str) -> None:
    """Warn once about what cannot be used."""
    if not _told:
        _told.append(where)
        warnings.warn(
            f"compiled kernels cannot be kept in {where}; they are compiled anew each time. Delete "
            "the *.nbi and *.nbc files there, or set NUMBA_CACHE_DIR to a folder with some room",
            RuntimeWarning,
            stacklevel=3,
        )


def find_room() -> None:
    """Let Numba cache in a temporary folder if there is no other."""
    if _looked:
        return
    _looked.append(True)
    config: Any = numba.config
    if config.CACHE_DIR:
        places = [Path(config.CACHE_DIR)]
    else:
        own = user_cache_dir("numba", appauthor=False)  # type: ignore[no-untyped-call]
        places = [Path(__file__).parent / "__pycache__", Path(own)]
    if not any(_can_write(place) for place in places):
        folder = tempfile.mkdtemp(prefix="exchangeable-kernels-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        config.CACHE_DIR = folder
        tell(" or ".join(map(str, places)))


def _can_write(folder: Path) -> bool:
    """Whether files can be created in a folder, which is created if necessary."""
    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def where_kept() -> str:
    """Return the folder in which compiled kernels are kept."""
    return DeferredCache(find_room).cache_path
