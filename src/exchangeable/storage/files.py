"""Writing files so that nobody ever sees half of one."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any


@contextmanager
def replacing(path: str | os.PathLike[str], mode: str = "wb") -> Iterator[IO[Any]]:
    """Open a new file beside `path` that takes its place when the block ends without an error.

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
    >>> from exchangeable.files import replacing
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
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    text: dict[str, Any] = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
    try:
        with os.fdopen(handle, mode, **text) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)


def _umask() -> int:
    """Return the permissions that new files do not get."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
