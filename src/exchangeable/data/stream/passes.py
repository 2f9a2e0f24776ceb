"""Passes over rows in chunks: sums of a function of each chunk.

A pass is ``data.total(function)``. The function takes a `Chunk` and returns numbers, arrays, or
lists, tuples, dicts and data classes of those, which `add` sums. If it does not depend on how the
rows are divided, then neither does the total, up to rounding. `cluster.ClusterRows` makes the same
passes on a cluster.
"""

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_array

from exchangeable.arrays import FloatArray
from exchangeable.data.columns.schema import Schema
from exchangeable.data.containers import as_matrix
from exchangeable.data.groups import NO_WEIGHTS
from exchangeable.data.observed import Observed, as_observed, flags
from exchangeable.data.packed import PackedBits, bytes_of
from exchangeable.data.rows import as_rows
from exchangeable.data.stream.chunk import Chunk
from exchangeable.data.stream.sources import Source, as_source
from exchangeable.storage.files import replacing


class ChunkError(ValueError):
    """A chunk that cannot be used, or that differs from an earlier pass."""


class Passes(Protocol):
    """Rows over which sums can be computed, wherever they are."""

    n_jobs: int | None
    n_variables: int
    names: Sequence[str] | None
    schema: Schema | None

    @property
    def fingerprint(self) -> int:
        """A checksum of the rows, once a pass has been made."""

    def total(self, function: Callable[[Chunk], Any]) -> Any:
        """Return the sum of the results of the function for every chunk."""


def add(one: Any, other: Any) -> Any:
    """Return the sum of two results of a pass: dicts key by key, data classes field by field."""
    if one is None:
        return None
    if isinstance(one, dict):
        both = {key: add(one[key], other[key]) for key in one.keys() & other.keys()}
        return {**one, **other, **both}
    if isinstance(one, list | tuple):
        return type(one)(add(a, b) for a, b in zip(one, other, strict=True))
    if is_dataclass(one) and not isinstance(one, type):
        names = [field.name for field in fields(one)]
        return type(one)(**{name: add(getattr(one, name), getattr(other, name)) for name in names})
    return one + other


def observe(
    X: Any, binarize: float | None, n_jobs: int | None = None, schema: Schema | None = None
) -> Observed:
    """Return a chunk as rows, rejecting what no estimator would accept.

    With a schema its columns are of any kind; otherwise they are binary.
    """
    if isinstance(X, Observed):
        return X
    if schema is not None:
        return schema.observed(X)
    if isinstance(X, PackedBits):
        return X.observed()
    matrix = check_array(
        as_matrix(X),
        accept_sparse="csr",
        dtype="numeric",
        ensure_all_finite="allow-nan",
        ensure_min_samples=0,
    )
    return as_observed(matrix, binarize, n_jobs)


def check_complete(observed: Observed, names: Sequence[Any] | None = None) -> None:
    """Reject rows with missing entries, which packed bits cannot represent."""
    if observed.holes is not None:
        row, number = np.argwhere(flags(observed.holes))[0]
        column = number if names is None else repr(names[number])
        raise ValueError(
            f"it contains NaN or another missing value, the first in row {row}, column {column}; a "
            "bit per entry cannot say so: fit to the chunks themselves, or impute what is missing"
        )


class ChunkedRows:
    """The chunks of a source, checked on every pass to be the same as on the first.

    Parameters
    ----------
    source : Source
        The rows.
    labels : array of shape (n_rows,), optional
        Their classes, unless the chunks contain them.
    weights : array of shape (n_rows,), optional
        The weight of each row, 1 by default.
    binarize : float or None
        Entries greater than this are on.
    n_jobs : int, optional
        Number of threads.
    complete : bool
        Whether missing entries are rejected.
    schema : Schema, optional
        The schema of the columns, if they are not all binary.
    """

    def __init__(
        self,
        source: Source,
        labels: npt.NDArray[Any] | None = None,
        weights: FloatArray | None = None,
        binarize: float | None = 0.0,
        n_jobs: int | None = None,
        complete: bool = False,
        schema: Schema | None = None,
    ) -> None:
        self.schema = schema
        self.source, self.labels, self.weights = source, labels, weights
        self.binarize, self.n_jobs, self.complete = binarize, n_jobs, complete
        self.n_variables, self.names = 0, source.names
        self._seen: list[tuple[int, int, int]] | None = None

    @property
    def fingerprint(self) -> int:
        """A checksum of the rows, once a pass has been made."""
        return zlib.crc32(repr(self._seen).encode())

    def read(self) -> Iterator[Chunk]:
        """Make a pass over the chunks, checking each."""
        signatures: list[tuple[int, int, int]] = []
        n_rows, first, width = 0, 0, 0
        source = self.source
        raw = self.schema is not None and source.tables is not None
        for number, part in enumerate((source.tables if raw else source.chunks)()):  # type: ignore[misc]
            try:
                chunk = self._chunk(part, n_rows, first)
            except (ValueError, TypeError) as error:
                raise ChunkError(f"chunk {number} of {self.source.description}: {error}") from error
            if number and chunk.rows.n_variables != width:
                raise ChunkError(
                    f"chunk {number} of {self.source.description} has {chunk.rows.n_variables} "
                    f"columns, those before it have {width}"
                )
            self.n_variables = width = chunk.rows.n_variables
            signatures.append(chunk.signature)
            self._compare(number, signatures[-1])
            yield chunk
            n_rows, first = n_rows + chunk.rows.n_rows, first + chunk.n_counting
        self._end(signatures, n_rows)

    def total(self, function: Callable[[Chunk], Any]) -> Any:
        """Return the sum of the results of the function for every chunk."""
        result = None
        for chunk in self.read():
            part = function(chunk)
            result = part if result is None else add(result, part)
        return result

    def _chunk(self, part: Any, begin: int, first: int) -> Chunk:
        """Return a part of the source whose rows are numbered from `begin` on."""
        labels = None
        if isinstance(part, tuple):
            part, labels = part
            labels = np.asarray(labels)
        names = getattr(part, "columns", self.names)
        observed = observe(part, self.binarize, self.n_jobs, self.schema)
        if self.complete:
            check_complete(observed, names)
        rows = observed.ones
        if not rows.n_rows:
            raise ValueError("it has no rows; leave empty chunks out")
        span = slice(begin, begin + rows.n_rows)
        for name, all_rows in (("y", self.labels), ("sample_weight", self.weights)):
            if all_rows is not None and len(all_rows) < span.stop:
                raise ValueError(f"X has more rows than the {len(all_rows)} entries of {name}")
        if self.labels is not None:
            labels = np.asarray(self.labels[span])
        if labels is not None and labels.shape != (rows.n_rows,):
            raise ValueError(f"it has {rows.n_rows} rows and labels of shape {labels.shape}")
        weights = NO_WEIGHTS if self.weights is None else np.asarray(self.weights[span])
        return Chunk(rows, labels, weights, first, observed.holes)

    def _compare(self, number: int, signature: tuple[int, int, int]) -> None:
        """Reject a chunk that differs from the first pass."""
        if self._seen is None:
            return
        if number >= len(self._seen):
            raise ChunkError(
                f"{self.source.description} has more than the {len(self._seen)} chunks it had on "
                "the first pass; every pass must yield the same rows"
            )
        if signature != self._seen[number]:
            before, now = self._seen[number][0], signature[0]
            how = f"{now} rows instead of {before}" if now != before else "other entries"
            raise ChunkError(
                f"chunk {number} of {self.source.description} has changed since the first pass: it "
                f"has {how}; every pass must yield the same rows"
            )

    def _end(self, signatures: list[tuple[int, int, int]], n_rows: int) -> None:
        """Check the number of chunks and of rows at the end of a pass."""
        if not signatures:
            raise ChunkError(f"{self.source.description} has no chunks" + self._once(self._seen))
        if self._seen is not None and len(signatures) < len(self._seen):
            raise ChunkError(
                f"{self.source.description} ended after {len(signatures)} of the "
                f"{len(self._seen)} chunks it had on the first pass" + self._once(self._seen)
            )
        for name, all_rows in (("y", self.labels), ("sample_weight", self.weights)):
            if all_rows is not None and len(all_rows) != n_rows:
                raise ChunkError(f"{name} has {len(all_rows)} entries, X has {n_rows} rows")
        self._seen = signatures

    @staticmethod
    def _once(seen: list[tuple[int, int, int]] | None) -> str:
        return "" if seen is None else "; can it be read only once? chunks() must start anew"


def write_packed(
    source: Any, path: str | PathLike[str], binarize: float | None = 0.0
) -> PackedBits:
    """Write the rows of a source of chunks to a ``.npy`` file, eight variables per byte.

    Parameters
    ----------
    source : object with ``chunks()``, or anything the estimators' ``fit`` reads in chunks
        The rows, whose number need not be known in advance.
    path : path
        The file to write.
    binarize : float or None, default=0.0
        Entries greater than this are on.

    Returns
    -------
    PackedBits
        The rows, memory-mapped.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from exchangeable import write_packed
    >>> parts = [np.eye(3), np.ones((2, 3))]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_packed(parts, f"{folder}/rows.npy").shape
    (5, 3)
    """
    chunks = as_source(source)
    if chunks is None:
        raise TypeError(f"expected a source of chunks, got {type(source).__name__}")
    if _is_file(source, path):
        raise ValueError(f"{path} is the file being read; give another name to write to")
    data = ChunkedRows(chunks, binarize=binarize, complete=True)
    n_rows, width = 0, 0
    for chunk in data.read():
        n_rows, width = n_rows + chunk.rows.n_rows, chunk.rows.n_variables
    shape = {"descr": "|u1", "fortran_order": False, "shape": (n_rows, (width + 7) // 8)}
    with replacing(path) as file:
        np.lib.format.write_array_header_1_0(file, shape)
        for chunk in data.read():
            rows = chunk.rows if chunk.rows.bits.size else as_rows(flags(chunk.rows), None)
            file.write(np.ascontiguousarray(bytes_of(rows)).data)
    return PackedBits(path, width)


def _is_file(source: Any, path: str | PathLike[str]) -> bool:
    """Whether rows are read from the same file that is to be written."""
    if isinstance(source, list | tuple):
        return any(_is_file(part, path) for part in source)
    held = source.bits if isinstance(source, PackedBits) else source
    name = held if isinstance(held, str | PathLike) else getattr(held, "filename", None)
    return name is not None and Path(path).exists() and Path(name).samefile(path)
