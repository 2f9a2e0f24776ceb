"""Binary rows stored with eight variables per byte, in memory or in a file."""

import mmap
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import check_count
from exchangeable.data.observed import Observed
from exchangeable.data.rows import NO_INDICES, NO_POINTERS, Rows, as_rows

CHUNK_BYTES = 1 << 25
"""A chunk's dense form, with one byte per entry, has about this many bytes."""
MOST_CHUNK_ROWS, FEWEST_CHUNK_ROWS = 1 << 17, 1 << 8


def rows_per_chunk(n_variables: int) -> int:
    """Return how many rows are read at a time."""
    return int(np.clip(CHUNK_BYTES // max(n_variables, 1), FEWEST_CHUNK_ROWS, MOST_CHUNK_ROWS))


def release(array: Any) -> None:
    """Free the memory behind a read-only memory map; it is read again when needed."""
    mapped: Any = getattr(array, "_mmap", None)
    if getattr(array, "mode", "") == "r" and hasattr(mapped, "madvise"):
        mapped.madvise(mmap.MADV_DONTNEED)


class PackedBits:
    """A binary matrix stored as bits, which every estimator reads without unpacking it.

    Variable j of a row is bit ``j % 8`` of its byte ``j // 8``, as in ``np.packbits(X, axis=1,
    bitorder="little")``.

    Parameters
    ----------
    bits : array of shape (n_rows, (n_variables + 7) // 8) and type uint8, or path
        The bytes, or the ``.npy`` file that contains them, which is memory-mapped. A Dask array
        stays where it is.
    n_variables : int
        Number of variables; the remaining bits of the last byte must be zero.

    Examples
    --------
    >>> import numpy as np
    >>> from exchangeable import ExchangeableClassifier, PackedBits
    >>> X = np.random.default_rng(0).integers(0, 2, size=(1000, 10))
    >>> packed = PackedBits.pack(X)
    >>> packed.shape, packed.bits.nbytes
    ((1000, 10), 2000)
    >>> parity = X.sum(axis=1) % 2
    >>> classifier = ExchangeableClassifier().fit(packed, parity)
    >>> bool((classifier.predict(packed[:100]) == parity[:100]).all())
    True
    """

    def __init__(self, bits: Any, n_variables: int) -> None:
        if isinstance(bits, str | PathLike):
            bits = np.load(Path(bits), mmap_mode="r")
        self.bits: Any = bits if hasattr(bits, "dtype") else np.array(bits)
        self.n_variables = check_count(n_variables, "n_variables")
        if self.bits.dtype != np.uint8 or self.bits.ndim != 2:
            raise ValueError(
                f"bits must be a matrix of uint8, got {self.bits.dtype} of shape {self.bits.shape}"
            )
        width = (self.n_variables + 7) // 8
        if self.bits.shape[1] != width:
            raise ValueError(
                f"bits has {self.bits.shape[1]} bytes per row; {n_variables} variables take {width}"
            )

    @classmethod
    def pack(cls, X: Any, binarize: float | None = 0.0) -> "PackedBits":
        """Pack a matrix in memory: an entry greater than `binarize` is on."""
        dense = np.asarray(X)
        rows = as_rows(dense, binarize)
        return cls(bytes_of(rows), rows.n_variables)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of variables."""
        return self.bits.shape[0], self.n_variables

    def __len__(self) -> int:
        return int(self.bits.shape[0])

    def __getitem__(self, rows: Any) -> "PackedBits":
        part = self.bits[rows]
        if part.ndim != 2:
            raise TypeError(f"PackedBits are cut by rows, as in bits[10:20], got [{rows!r}]")
        return PackedBits(part, self.n_variables)

    def chunks(self) -> Iterator["PackedBits"]:
        """Yield the rows in parts of limited size."""
        size = rows_per_chunk(self.n_variables)
        for start in range(0, len(self), size):
            yield self[start : start + size]
            release(self.bits)

    def rows(self) -> Rows:
        """Return the rows in the form of the kernels, 64 variables per word."""
        n_rows, width = self.bits.shape
        if self.n_variables % 8 and n_rows:
            unused = int(self.bits[:, -1].max()) >> (self.n_variables % 8)
            if unused:
                raise ValueError(
                    f"the last byte of some row has bits beyond its {self.n_variables} variables; "
                    "was it packed with bitorder='little'?"
                )
        words = np.zeros((n_rows, (self.n_variables + 63) // 64), dtype="<u8")
        words.view(np.uint8)[:, :width] = self.bits
        return Rows(n_rows, self.n_variables, words, NO_POINTERS, NO_INDICES)

    def observed(self) -> Observed:
        """Return the rows; every entry is known."""
        return Observed(self.rows())


def bytes_of(rows: Rows) -> npt.NDArray[np.uint8]:
    """Return packed rows as bytes."""
    return rows.bits.view(np.uint8)[:, : (rows.n_variables + 7) // 8].copy()
