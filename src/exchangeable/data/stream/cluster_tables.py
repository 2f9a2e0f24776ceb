"""Dask collections whose columns have not been interpreted yet."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from exchangeable.arrays import is_sparse
from exchangeable.data.packed import PackedBits
from exchangeable.data.stream.cluster import FAN_IN, current_client, partitions
from exchangeable.data.stream.passes import ChunkError, add
from exchangeable.data.stream.waiting import cluster_error, result_of


def _apply(
    function: Callable[[Any, int], Any], part: Any, number: int, begin: int
) -> tuple[dict[int, int], Any]:
    """Return a function of a partition, and the partition's number of rows; runs on a worker."""
    try:
        return {number: int(part.shape[0])}, function(part, begin)
    except (ValueError, TypeError) as error:
        raise ChunkError(f"partition {number} of X: {error}") from error


def _add_all(results: list[Any]) -> Any:
    lengths, total = results[0]
    for more, part in results[1:]:
        lengths, total = {**lengths, **more}, add(total, part)
    return lengths, total


class CollectionTable:
    """The partitions of a Dask array or data frame.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame
        The rows.
    label : str, optional
        A column with labels, which is not a variable.
    """

    def __init__(self, X: Any, label: str | None = None) -> None:
        named = label is not None and hasattr(X, "columns") and label in X.columns
        self._table = X.drop(columns=label) if named else X
        self._parts = partitions(self._table, "X")
        self._begins = np.zeros(len(self._parts), dtype=np.int64)

    @property
    def first(self) -> Any:
        """A table or matrix of the same types without rows."""
        table = self._table
        if isinstance(table, PackedBits):
            return np.zeros((0, table.n_variables))
        meta = table._meta
        if hasattr(table, "columns"):
            return meta.iloc[:0]
        empty = np.zeros((0, table.shape[1]), dtype=table.dtype)
        return sp.csr_array(empty) if is_sparse(meta) else empty

    def total(self, function: Callable[[Any, int], Any]) -> Any:
        """Return the sum of a function of every partition, and of the number of rows before it.

        In the first pass this number is not known.
        """
        import dask

        apply, combine = dask.delayed(_apply), dask.delayed(_add_all)
        shared = dask.delayed(function)
        level = [
            apply(shared, part, number, int(self._begins[number]))
            for number, part in enumerate(self._parts)
        ]
        while len(level) > 1:
            level = [combine(level[i : i + FAN_IN]) for i in range(0, len(level), FAN_IN)]
        lengths, result = self._compute(level[0])
        sizes = [lengths[number] for number in range(len(self._parts))]
        self._begins = np.concatenate([[0], np.cumsum(sizes)])[:-1]
        return result

    def _compute(self, graph: Any) -> Any:
        client = current_client()
        try:
            return graph.compute() if client is None else result_of(client, graph)
        except ChunkError:
            raise
        except Exception as error:
            lost = None if client is None else cluster_error(client, error)
            made = ChunkError(f"a partition of X could not be computed: {error!r}")
            raise lost or made from error
