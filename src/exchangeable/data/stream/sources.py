"""Sources of chunks: files, memory maps, lists of parts, and objects that yield chunks.

All of these can be read several times, since every fit makes several passes.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from exchangeable.arrays import check_sparse
from exchangeable.data.columns.raw import library_of
from exchangeable.data.containers import arrow_column, arrow_matrix
from exchangeable.data.observed import Observed
from exchangeable.data.packed import PackedBits, release, rows_per_chunk

MAPPED_BYTES = 1 << 26
"""A memory map of fewer bytes than this is treated like any other array."""
ARROW_FILES = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "feather",
    ".feather": "feather",
    ".ipc": "feather",
    ".csv": "csv",
}
"""Arrow formats by the endings of files."""
FILES = (".npy", ".npz", ".zarr", *ARROW_FILES)


@dataclass(frozen=True)
class Source:
    """Rows in chunks, which can be read several times.

    Attributes
    ----------
    chunks : callable
        Starts a pass: returns an iterator over matrices, or over pairs of a matrix and labels.
    description : str
        Its name in messages.
    names : list of str, optional
        The names of the variables.
    tables : callable, optional
        Starts a pass over the parts before they are interpreted, with columns of any kind; if it is
        not given, these are the `chunks`.
    """

    chunks: Callable[[], Iterator[Any]]
    description: str
    names: Sequence[str] | None = None
    tables: Callable[[], Iterator[Any]] | None = None

    def parts(self) -> Iterator[Any]:
        """Start a pass over the parts before they are interpreted, without labels."""
        for part in (self.chunks if self.tables is None else self.tables)():
            yield part[0] if isinstance(part, tuple) else part


def as_source(
    X: Any, label: str | None = None, names: Sequence[str] | None = None
) -> Source | None:
    """Return X as a source of chunks, or None if it is an ordinary matrix.

    Parameters
    ----------
    X : object
        The X passed to an estimator: a path or a list of paths (``.npy``, ``.npz``, ``.zarr``,
        Parquet and Arrow files, folders of those), a list of matrices, a large memory map, a
        Zarr array, an Arrow table or dataset, `PackedBits`, or an object with ``chunks()``.
    label : str, optional
        The column with the labels, for tables.
    names : sequence of str, optional
        The columns to read, of an Arrow source; all others by default.
    """
    if isinstance(X, Source):
        return X
    if isinstance(X, Observed | np.ndarray) and not _is_large_map(X):
        return None
    if isinstance(X, str | PathLike):
        return _from_path(Path(X), label, names)
    if _is_arrow(X):
        return _from_arrow(X, label, names, f"the Arrow {type(X).__name__}")
    if isinstance(X, Iterator):
        raise TypeError(
            "X is an iterator, which can be read only once, and a fit makes several passes: pass a "
            "list of matrices or files, or an object whose chunks() starts a new pass"
        )
    if isinstance(X, list | tuple) and X and _are_parts(X):
        return _from_parts(X, label, names)
    if isinstance(X, np.ndarray) or _is_zarr(X):
        return Source(lambda: _slices(X), f"the {type(X).__name__}")
    if callable(getattr(X, "chunks", None)):
        return Source(lambda: _labelled(X.chunks(), label), f"the {type(X).__name__}")
    return None


def _labelled(parts: Iterable[Any], label: str | None) -> Iterator[Any]:
    """Yield parts of tables without the column of labels."""
    for part in parts:
        if label is None or isinstance(part, tuple) or library_of(part) is None:
            yield part
            continue
        names = [str(name) for name in getattr(part, "column_names", None) or part.columns]
        if label not in names:
            raise ValueError(f"a part of X has no column {label!r} to take the labels from")
        others = [name for name in names if name != label]
        if hasattr(part, "select") and hasattr(part, "column_names"):
            yield part.select(others), arrow_column(part.column(label))
        else:
            yield part[others], part[label].to_numpy()


def _is_large_map(X: Any) -> bool:
    return isinstance(X, np.memmap) and X.nbytes >= MAPPED_BYTES


def _is_arrow(X: Any) -> bool:
    module = type(X).__module__.split(".")[0]
    return module == "pyarrow" and hasattr(X, "schema") and hasattr(X, "to_batches")


def _is_zarr(X: Any) -> bool:
    return type(X).__module__.split(".")[0] == "zarr" and hasattr(X, "shape")


def _are_parts(parts: Sequence[Any]) -> bool:
    """Whether a list contains files or matrices, rather than the rows of one matrix."""
    first = parts[0]
    if isinstance(first, str):
        return first.endswith(FILES) or Path(first).exists()
    if isinstance(first, PathLike | PackedBits) or sp.issparse(first) or _is_arrow(first):
        return True
    return hasattr(first, "shape") and len(first.shape) == 2 and not isinstance(first, np.matrix)


def _from_parts(parts: Sequence[Any], label: str | None, names: Sequence[str] | None) -> Source:
    """Return the chunks of several files, or matrices, one after the other."""
    listed = [as_source(part, label, names) or part for part in parts]

    def read(raw: bool = False) -> Iterator[Any]:
        for part in listed:
            if isinstance(part, Source):
                yield from part.tables() if raw and part.tables is not None else part.chunks()
            else:
                yield from _labelled([part], label)

    column_names = [part.names for part in listed if isinstance(part, Source)]
    first_names = column_names[0] if column_names else None
    description = f"the list of {len(parts)} parts"
    return Source(read, description, first_names, partial(read, raw=True))


def _from_path(path: Path, label: str | None, names: Sequence[str] | None) -> Source:
    if not path.exists():
        raise FileNotFoundError(f"X names the file {str(path)!r}, which does not exist")
    kind, description = path.suffix, path.name
    if kind == ".npy":
        return Source(lambda: _slices(np.load(path, mmap_mode="r")), description)
    if kind == ".npz":
        return Source(lambda: _slices(_load_npz(path)), description)
    if kind == ".zarr" or (path / "zarr.json").exists() or (path / ".zarray").exists():
        import zarr

        return Source(lambda: _slices(zarr.open_array(path, mode="r")), description)
    if kind in ARROW_FILES or path.is_dir():
        from pyarrow import dataset

        form = ARROW_FILES.get(kind, "parquet")
        return _from_arrow(dataset.dataset(path, format=form), label, names, description)
    raise ValueError(f"X names the file {str(path)!r}; expected one of {', '.join(FILES)}")


def _load_npz(path: Path) -> Any:
    """Return a sparse matrix that scipy has saved, or the one array of a file."""
    with np.load(path, allow_pickle=False) as file:
        if "indptr" in file.files:
            matrix = sp.load_npz(path)
            check_sparse(matrix, path.name)
            return sp.csr_array(matrix)
        if len(file.files) != 1:
            raise ValueError(f"{path.name} holds {file.files}; expected one array, or scipy's CSR")
        return file[file.files[0]]


def _slices(matrix: Any) -> Iterator[Any]:
    """Yield the rows of a matrix, a few at a time."""
    if len(matrix.shape) != 2:
        raise ValueError(f"a matrix of rows must have two dimensions, got {len(matrix.shape)}")
    n_rows, n_variables = matrix.shape
    size = rows_per_chunk(n_variables * (1 if sp.issparse(matrix) else matrix.dtype.itemsize))
    stored = getattr(matrix, "chunks", None)
    if isinstance(stored, tuple) and stored[0] < size:  # whole chunks of a Zarr array
        size -= size % stored[0]
    for start in range(0, n_rows, size):
        part = matrix[start : start + size]
        yield part if sp.issparse(part) else np.asarray(part)
        release(matrix)


def _from_arrow(X: Any, label: str | None, names: Sequence[str] | None, description: str) -> Source:
    """Return the batches of an Arrow table or dataset as matrices, with labels if given."""
    known = list(X.schema.names)
    wanted = [name for name in known if name != label] if names is None else list(names)
    missing = [n for n in [*wanted, *([] if label is None else [label])] if n not in known]
    if missing:
        some = ", ".join(known[:10])
        raise ValueError(f"{description} has no column {missing[0]!r}; it has {some}, …")
    size = rows_per_chunk(len(wanted))

    def read(raw: bool = False) -> Iterator[Any]:
        columns = wanted if label is None else [*wanted, label]
        if hasattr(X, "to_table"):  # a dataset
            batches = X.to_batches(columns=columns, batch_size=size, batch_readahead=1)
        else:
            batches = X.select(columns).to_batches(max_chunksize=size)
        for batch in batches:
            if batch.num_rows:  # formats and filters leave empty ones
                rows = batch.select(wanted) if raw else arrow_matrix(batch, wanted)
                if label is None:
                    yield rows
                else:
                    yield rows, arrow_column(batch.column(len(wanted)))

    return Source(read, description, wanted, partial(read, raw=True))
