"""A partition of the variables into blocks, as arrays for the kernels."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from exchangeable.arrays import FloatArray, IntArray

Labels = npt.NDArray[np.int32]


@lru_cache(maxsize=8)
def log_factorials(n: int) -> FloatArray:
    """Return ln l! for l = 0..n, as a read-only array.

    >>> np.exp(log_factorials(4)).round().tolist()
    [1.0, 1.0, 2.0, 6.0, 24.0]
    """
    return gammaln(np.arange(1.0, n + 2))


@dataclass(frozen=True)
class Partition:
    """Blocks of variables, and the places of each block's counts in a flat table.

    Block b with m variables has the m + 1 entries from ``starts[b]`` on, one for each count, so
    that a table over all blocks has n_variables + n_blocks entries.

    Examples
    --------
    >>> partition = Partition.from_labels([0, 1, 0])
    >>> [block.tolist() for block in partition.blocks]
    [[0, 2], [1]]
    >>> partition.starts.tolist(), partition.table_size
    ([0, 3], 5)
    """

    labels: Labels
    sizes: IntArray
    starts: IntArray

    @classmethod
    def from_labels(cls, labels: npt.ArrayLike) -> Self:
        """Make a partition of the block number of each variable, 0..n_blocks − 1, none empty."""
        block = np.asarray(labels, dtype=np.int32)
        return cls._of(block, np.bincount(block).astype(np.int64, copy=False))

    @classmethod
    def whole(cls, n_variables: int) -> Self:
        """Create one block of all variables.

        >>> Partition.whole(3).labels.tolist()
        [0, 0, 0]
        """
        return cls._of(np.zeros(n_variables, dtype=np.int32), np.array([n_variables]))

    @classmethod
    def of_sizes(cls, labels: Labels, sizes: IntArray) -> Self:
        """Create a partition from block numbers, given the blocks' numbers of variables."""
        return cls._of(labels, sizes)

    @classmethod
    def _of(cls, labels: Labels, sizes: IntArray) -> Self:
        lengths = sizes + 1
        return cls(labels, sizes, np.cumsum(lengths) - lengths)

    def merged(self, into: Labels) -> Self:
        """Return the partition in which block b is part of the block ``into[b]``."""
        sizes = np.bincount(into, weights=self.sizes).astype(np.int64)
        return self._of(into.take(self.labels), sizes)

    @classmethod
    def from_blocks(
        cls,
        blocks: Iterable[Sequence[Any]],
        n_variables: int,
        names: Sequence[str] | None = None,
    ) -> Self:
        """Create a partition from the variables of each block, checking that it is one."""
        labels = np.empty(n_variables, dtype=np.int32)
        for number, block in enumerate(check_partition(blocks, n_variables, names)):
            labels[block] = number
        return cls.from_labels(labels)

    def same_as(self, other: "Partition") -> bool:
        """Whether the blocks, and their numbers, are the same.

        >>> Partition.from_labels([0, 1]).same_as(Partition.from_labels([0, 0]))
        False
        """
        alike = self.sizes.size == other.sizes.size
        return alike and self.labels.tobytes() == other.labels.tobytes()

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return len(self.sizes)

    @property
    def table_size(self) -> int:
        """Number of entries of a table over all blocks and counts."""
        return self.labels.size + self.n_blocks

    @property
    def blocks(self) -> list[IntArray]:
        """The variables of each block."""
        order = np.argsort(self.labels, kind="stable")
        return np.split(order, np.cumsum(self.sizes)[:-1])


def check_partition(
    blocks: Iterable[Sequence[Any]],
    n_variables: int | None = None,
    names: Sequence[str] | None = None,
) -> list[IntArray]:
    """Return blocks as index arrays, rejecting anything but a partition of 0..n − 1.

    Messages name the variables if they have names.
    """
    if not isinstance(blocks, Iterable):
        raise TypeError(f"a partition must be a list of blocks of variables, got {blocks!r}")
    arrays = [np.asarray(block) for block in blocks]
    if not arrays:
        raise ValueError("a partition needs at least one block, got none")
    for b, array in enumerate(arrays):
        if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
            raise ValueError(
                f"block {b} is {array.tolist()!r}; expected a non-empty list of variable numbers"
            )
    members = np.concatenate(arrays)
    n = members.size if n_variables is None else n_variables
    outside = members[(members < 0) | (members >= n)]
    if outside.size:
        raise ValueError(f"variable {outside[0]} is outside 0..{n - 1}, the blocks' {n} variables")
    times = np.bincount(members, minlength=n)
    if (times != 1).any():
        wrong = int(np.flatnonzero(times != 1)[0])
        name = str(wrong) if names is None else repr(str(names[wrong]))
        fix = f"add the block [{name}]" if times[wrong] == 0 else "leave it in one"
        raise ValueError(
            f"variable {name} is in {times[wrong]} blocks; expected exactly one: {fix}"
        )
    return [array.astype(np.int64) for array in arrays]
