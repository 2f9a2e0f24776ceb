"""The data folder: its location, complete downloads, and checks of files.

A file is downloaded under a temporary name in the target folder, checked, and only then renamed,
which is atomic. So an interrupted download never looks complete, and two processes that fetch the
same file at the same time both end with the same complete file. A process that is killed leaves at
most a hidden file whose name ends in ``.part``.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from exchangeable.datasets._registry import RegisteredFile

Progress = Callable[[str], Any]
"""Makes a progress bar with tqdm's `total`, `update`, `reset` and `close` from a file's name."""


class AlteredFileError(OSError):
    """A file is truncated or altered: its hash is not the registered one."""


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
    chosen = data_home or os.environ.get("EXCHANGEABLE_DATA") or user_cache()
    return Path(chosen).expanduser()


def user_cache() -> Path:
    """Return the library's folder in the user's cache; pooch, which knows it, is imported here."""
    import pooch

    return Path(pooch.os_cache("exchangeable"))


def check_hash(path: Path, expected: str, origin: str | None = None) -> None:
    """Refuse a file whose hash is not the expected one."""
    with path.open("rb") as file:
        actual = hashlib.file_digest(file, "sha256").hexdigest()
    if actual != expected:
        raise AlteredFileError(
            f"{origin or path} is truncated or altered and is not used: its sha256 should be "
            f"{expected} but is {actual}" + ("" if origin else "; delete it to fetch it again")
        )


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Provide a temporary path that is renamed to `target` if the block succeeds."""
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
    """Refuse to write to a folder marked read-only, even if the user could (as root can)."""
    while not folder.exists():
        folder = folder.parent
    if not folder.stat().st_mode & 0o222:
        raise PermissionError(
            f"the folder {folder} is read-only; set EXCHANGEABLE_DATA to another folder"
        )


def _umask() -> int:
    """Return the process's umask, since temporary files are created without it."""
    current = os.umask(0o022)
    os.umask(current)
    return current


def download(
    url: str, target: Path, sha256: str | None = None, progress: Progress | None = None
) -> None:
    """Download a file, check its hash if one is known, and rename it to `target`."""
    import pooch  # what is in the data folder can be read without it

    fetch = pooch.HTTPDownloader(
        progressbar=progress(target.name) if progress else False,
        chunk_size=1 << 16,
        headers={"Accept-Encoding": "identity"},  # exact bytes, and the true size of the file
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
    """Return the path of a registered file after checking it, downloading it if necessary."""
    path = data_home / file.path
    if path.exists():
        check_hash(path, file.sha256)
        return path
    if not download_if_missing:
        raise OSError(
            f"{path} is missing and download_if_missing is False; put the file there, or allow the "
            "download"
        )
    with explained(url, path, f"It must have the sha256 {file.sha256}."):
        download(url, path, file.sha256, progress)
    return path


@contextmanager
def explained(address: str, path: Path, note: str = "") -> Iterator[None]:
    """Add to any failure in the block the address that was tried and where to put the file."""
    try:
        yield
    except AlteredFileError:
        raise
    except OSError as error:
        raise DownloadError(
            f"could not download {address} ({error}). "
            f"Get the file in another way and save it as {path}. {note}".rstrip()
        ) from error
