"""Compiled kernels that cannot be kept on disk are compiled anew instead of failing.

Numba writes them beside their files, or into the user's cache folder. If neither can be written, if
the disk is full or an index is damaged, an error from inside Numba would end the fit.
"""

import atexit
import os
import shutil
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache
from numba.core.dispatcher import Dispatcher
from numba.misc.appdirs import user_cache_dir

PACKAGE = __name__.partition(".")[0]
_told: list[str] = []


class GuardedCache(FunctionCache):
    """A cache of one function that is given up when it cannot be read or written."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return what is cached for a signature, None if there is nothing or it cannot be read."""
        try:
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except Exception as error:  # a damaged pickle may raise anything
            self._give_up(error)
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Cache what was compiled for a signature, if that is possible."""
        try:
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
        except Exception as error:  # as above: the index is read first
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self._enabled = False
        tell(f"{self.cache_path} ({type(error).__name__}: {error})")


def tell(where: str) -> None:
    """Say once what cannot be used."""
    if not _told:
        _told.append(where)
        warnings.warn(
            f"compiled kernels cannot be kept in {where}; they are compiled anew each time. Delete "
            "the *.nbi and *.nbc files there, or set NUMBA_CACHE_DIR to a folder with some room",
            RuntimeWarning,
            stacklevel=3,
        )


def find_room() -> None:
    """Let Numba cache in a folder of this process if it could not anywhere else."""
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
    """Whether files can be made in a folder, which is made if need be."""
    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def guard_caches() -> None:
    """Guard the caches of all kernels of this package that have been imported so far."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == PACKAGE:
            for kernel in vars(module).values():
                cache = getattr(kernel, "_cache", None) if isinstance(kernel, Dispatcher) else None
                if type(cache) is FunctionCache:
                    cache.__class__ = GuardedCache
