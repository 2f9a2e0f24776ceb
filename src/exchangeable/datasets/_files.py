"""The data folder: where files live, how they arrive whole or not at all, how they are checked.

A file is downloaded under a temporary name beside its final place, checked, and only then
renamed, which the operating system does in one step. So an interrupted download never looks
complete, and two processes that fetch the same file at once each put the same whole file there.
A process that is killed leaves at most a hidden file whose name ends in ``.part``.
"""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pooch

from exchangeable.datasets._registry import RegisteredFile

Progress = Callable[[str], Any]
"""Given a file's name, makes a progress bar with tqdm's `total`, `update`, `reset`, `close`."""


class AlteredFileError(OSError):
    """A file's hash is not the registered one: the file is truncated or altered."""


class DownloadError(OSError):
    """A file could not be downloaded."""


def get_data_home(data_home: str | os.PathLike[str] | None = None) -> Path:
    """Return the data folder, without creating it.

    Parameters
    ----------
    data_home : path-like, optional
        The folder to use. By default the one named by the environment variable
        ``EXCHANGEABLE_DATA``, else a folder in the user's cache.

    Returns
    -------
    path : Path
        The data folder.

    Examples
    --------
    >>> from exchangeable.datasets import get_data_home
    >>> get_data_home("my-data").as_posix()
    'my-data'
    """
    chosen = data_home or os.environ.get("EXCHANGEABLE_DATA") or pooch.os_cache("exchangeable")
    return Path(chosen).expanduser()


def check_hash(path: Path, expected: str, origin: str | None = None) -> None:
    """Refuse a file that does not hash to what is expected of it."""
    actual = pooch.file_hash(str(path))
    if actual != expected:
        raise AlteredFileError(
            f"{origin or path} is truncated or altered and is not used: its sha256 should be "
            f"{expected} but is {actual}" + ("" if origin else "; delete it to fetch it again")
        )


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Offer a temporary path that becomes `target` in one step if the block succeeds."""
    _refuse_read_only(target.parent)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    os.close(handle)
    partial = Path(name)
    try:
        yield partial
        partial.chmod(0o666 & ~_umask())
        partial.replace(target)
    finally:
        with suppress(FileNotFoundError):
            partial.unlink()


def _refuse_read_only(folder: Path) -> None:
    """Leave a folder alone that is marked read-only, also where the user is allowed to override."""
    while not folder.exists():
        folder = folder.parent
    if not folder.stat().st_mode & 0o222:
        raise PermissionError(
            f"the folder {folder} is read-only; name another with EXCHANGEABLE_DATA"
        )


def _umask() -> int:
    """Return the permissions the user takes away from new files (temporary ones are private)."""
    current = os.umask(0o022)
    os.umask(current)
    return current


def download(
    url: str, target: Path, sha256: str | None = None, progress: Progress | None = None
) -> None:
    """Download a file, check its hash where one is known, and put it in place in one step."""
    fetch = pooch.HTTPDownloader(
        progressbar=progress(target.name) if progress else False,
        chunk_size=1 << 16,
        headers={"Accept-Encoding": "identity"},  # the very bytes, and a size that is the file's
    )
    with replacing(target) as partial:
        fetch(url, str(partial), None)
        if sha256:
            check_hash(partial, sha256, origin=url)


def obtain(
    file: RegisteredFile,
    url: str,
    data_home: Path,
    *,
    download_if_missing: bool = True,
    progress: Progress | None = None,
) -> Path:
    """Return the path of a registered file, checked, downloading it if it is not there."""
    path = data_home / file.path
    if path.exists():
        check_hash(path, file.sha256)
        return path
    if not download_if_missing:
        raise OSError(f"{path} is missing and download_if_missing is False")
    with explained(url, path, f"It must have the sha256 {file.sha256}."):
        download(url, path, file.sha256, progress)
    return path


@contextmanager
def explained(address: str, path: Path, note: str = "") -> Iterator[None]:
    """Say of any failure in the block which address was tried and where the file belongs."""
    try:
        yield
    except AlteredFileError:
        raise
    except OSError as error:
        raise DownloadError(
            f"could not download {address} ({error}). "
            f"Get the file another way and put it at {path}. {note}".rstrip()
        ) from error
