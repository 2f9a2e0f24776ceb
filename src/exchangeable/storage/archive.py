"""The container: a zip with a JSON header and plain arrays, none of it compressed.

Without compression a file cannot expand beyond its own size. Every member is checked against that
size, and every array against its own length, before memory is allocated; then its numbers are read
into the array directly.
"""

import json
import os
import re
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from exchangeable.storage.files import replacing

HEADER = "header.json"
MEMBER = re.compile(r"arrays/([0-9a-z_.]{1,200})\.npy")
KINDS = "biuf"
MOST_MEMBERS = 10_000
LONGEST_REASON = 200
"""Maximum length of a reason, which may quote a hostile file."""
AT_ONCE = 1 << 17
"""Bytes of a member that are read at once."""
LONG_AGO = (1980, 1, 1, 0, 0, 0)
"""The date of every member, so that equal models make equal files."""


DAMAGE = (
    ArithmeticError,
    EOFError,
    LookupError,
    MemoryError,
    NotImplementedError,
    RecursionError,
    SyntaxError,
    TokenError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)
"""Exceptions that decoding a damaged file may raise, besides those of the checks."""


class ModelFileError(ValueError):
    """A file that is not a valid model file of this library."""


@contextmanager
def refusing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Convert whatever decoding a damaged file raises to a `ModelFileError`.

    Exceptions that the checks did not foresee are kept as the cause. Interrupts and programming
    errors, such as an unknown name or attribute, pass through.
    """
    try:
        yield
    except ModelFileError as error:
        raise ModelFileError(f"{Path(path)}: {str(error)[:LONGEST_REASON]}") from None
    except DAMAGE as error:
        problem = (str(error) or type(error).__name__)[:LONGEST_REASON]
        raise ModelFileError(f"{Path(path)} is not a model file: {problem}") from error


def write(
    path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
) -> None:
    """Write header and arrays, replacing the file atomically."""
    text = json.dumps(header, ensure_ascii=False, allow_nan=False, indent=1)
    with replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(HEADER, LONG_AGO), text.encode("utf-8", "surrogatepass"))
        for name, array in arrays.items():
            buffer = BytesIO()
            np.lib.format.write_array(buffer, _little(array), version=(1, 0), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"arrays/{name}.npy", LONG_AGO), buffer.getbuffer())


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Return header and arrays of a file, or raise an error."""
    with Path(path).open("rb") as file, refusing(path):
        try:
            with zipfile.ZipFile(file) as archive:
                members = _members(archive, os.fstat(file.fileno()).st_size)
                header = _header(archive)
                arrays = {name: _array(archive, info, name) for name, info in members.items()}
        except (OSError, RuntimeError, EOFError, UnicodeDecodeError) as error:
            # Exceptions of `zipfile` about archives with damaged directories.
            raise zipfile.BadZipFile(str(error) or type(error).__name__) from None
    return header, arrays


def _members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """Return the archive's member of each array, rejecting anything a model file never contains."""
    infos = archive.infolist()
    if len(infos) > MOST_MEMBERS:
        raise ModelFileError(f"holds {len(infos):,} members, more than a model has")
    names = [info.filename for info in infos]
    if HEADER not in names:
        raise ModelFileError(f"is a zip without {HEADER}, so not a model file")
    if len(set(names)) < len(names):
        raise ModelFileError("holds two members of the same name")
    for info in infos:
        if info.filename != HEADER and not MEMBER.fullmatch(info.filename):
            raise ModelFileError(f"holds {info.filename!r}, which is no part of a model")
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            raise ModelFileError(f"holds {info.filename!r} compressed; a model file never is")
    if sum(info.file_size for info in infos) > size:
        raise ModelFileError("claims to hold more than its own size")
    found = [(MEMBER.fullmatch(info.filename), info) for info in infos]
    return {match[1]: info for match, info in found if match}


def _header(archive: zipfile.ZipFile) -> dict[str, Any]:
    try:
        text = archive.read(HEADER).decode("utf-8", "surrogatepass")
        header = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"has a header that cannot be read: {error}") from None
    if not isinstance(header, dict):
        raise ModelFileError("has a header that is not an object")
    return header


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> npt.NDArray[Any]:
    """Return the array in a member, which is an ``.npy`` file."""
    with archive.open(info) as file:
        shape, dtype = _layout(file, name)
        expected = dtype.itemsize
        for length in shape:
            if isinstance(length, bool) or length < 0:
                raise ModelFileError(f"array {name!r} has shape {shape}")
            expected *= length
        left = info.file_size - file.tell()
        if expected != left:
            raise ModelFileError(
                f"array {name!r} says {shape} of {dtype}, {expected:,} bytes, but holds {left:,}"
            )
        array = np.empty(shape, dtype=dtype)
        content, at = array.reshape(-1).view(np.uint8), 0
        while part := file.read(AT_ONCE):  # until the end, so that the checksum is verified
            if at + len(part) > left:
                raise EOFError(f"{name} is longer than it says")
            content[at : at + len(part)] = np.frombuffer(part, dtype=np.uint8)
            at += len(part)
    if at < left:
        raise EOFError(f"{name} ends too early")
    return array


def _layout(file: IO[bytes], name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return shape and type of the numbers that follow in an ``.npy`` file."""
    try:
        if np.lib.format.read_magic(file) != (1, 0):
            raise ValueError("unknown version of the array format")
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # headers of Python 2, which never wrote a model
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
    except (*DAMAGE, UserWarning) as error:
        raise ModelFileError(f"array {name!r} cannot be read: {error}") from None
    if dtype.kind not in KINDS or dtype.hasobject or dtype.byteorder == ">":
        raise ModelFileError(
            f"array {name!r} is of type {dtype}; a model holds plain numbers only, never objects"
        )
    if fortran:
        raise ModelFileError(f"array {name!r} is written column by column")
    return shape, dtype


def _little(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an array as it is stored: contiguous, little-endian."""
    if array.dtype.kind not in KINDS:
        raise TypeError(f"cannot store an array of {array.dtype}")
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).reshape(array.shape)
