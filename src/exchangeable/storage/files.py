"""Writing files atomically, so that nobody ever sees a partial one."""

import errno
import os
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:  # Windows, where an open file cannot be removed anyway
    fcntl = None  # type: ignore[assignment]

PART = re.compile(r"[a-z0-9_]{8}")
"""Separates the name of a file and ``.part`` while it is written."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of writing that do not say which file could not be written."""
STALE_SECONDS = 60.0
"""A partial file that nobody has written to for this many seconds, and nobody holds, is removed."""


@contextmanager
def replacing(path: str | os.PathLike[str], mode: str = "wb") -> Iterator[IO[Any]]:
    """Open a new file next to `path` that replaces it when the block ends without an error.

    A process that is killed leaves a partial file named ``.NAME.xxxxxxxx.part``. The next process
    that writes the same file removes it, unless a living process holds it.

    Parameters
    ----------
    path : path-like
        The file to write or replace; its folder must exist.
    mode : {"wb", "w"}, default="wb"
        Bytes, or text in UTF-8.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from exchangeable.storage.files import replacing
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "note.txt")
    ...     with replacing(path, "w") as file:
    ...         _ = file.write("whole")
    ...     path.read_text()
    'whole'
    """
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; give the name of a file")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target}: the folder {target.parent} does not exist")
    _sweep(target)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    text: dict[str, Any] = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
    try:
        with os.fdopen(handle, mode, **text) as file:
            _hold(handle)
            yield file
            file.flush()
            os.fsync(file.fileno())
            if fcntl is not None:  # while the file is still locked, so that nobody removes it
                _take_place(name, target)
        if fcntl is None:
            _take_place(name, target)
    except OSError as error:
        if error.filename is None and error.errno in FULL:
            raise OSError(error.errno, error.strerror, os.fspath(target)) from error
        raise
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)


def _take_place(name: str, target: Path) -> None:
    """Give the new file the usual permissions, and the name of the old one."""
    os.chmod(name, 0o666 & ~_umask())
    os.replace(name, target)


def _hold(handle: int) -> bool:
    """Lock a file for as long as it is open; the lock also ends with the process."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _sweep(target: Path) -> None:
    """Remove what killed processes have left of this file."""
    before, after = f".{target.name}.", ".part"
    for entry in os.scandir(target.parent):
        middle = entry.name[len(before) : -len(after)]
        if entry.name != f"{before}{middle}{after}" or not PART.fullmatch(middle):
            continue
        with suppress(OSError):  # another process may have removed it, or we may not
            if time.time() - entry.stat(follow_symlinks=False).st_mtime < STALE_SECONDS:
                continue
            handle = os.open(entry.path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
            try:
                if _hold(handle) and fcntl is not None:
                    os.unlink(entry.path)
            finally:
                os.close(handle)
            if fcntl is None:
                os.unlink(entry.path)


def _umask() -> int:
    """Return the permissions that new files do not get."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
