"""Passes over a Dask collection: sums are computed where the rows are, and reduced in a tree.

Only parameters and sums are sent. The rows of each partition are converted to bits (or lists of
ones) once and stay on the workers between passes; if a worker dies, Dask computes its share again.
"""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import check_sizes_of_weights
from exchangeable.data.columns.schema import Schema
from exchangeable.data.groups import NO_WEIGHTS
from exchangeable.data.packed import PackedBits
from exchangeable.data.stream.chunk import Chunk
from exchangeable.data.stream.passes import ChunkError, add, observe
from exchangeable.data.stream.waiting import cluster_error, result_of

FAN_IN = 8
"""Number of sums that are added by one task of the tree."""


def is_collection(X: Any) -> bool:
    """Whether X is a Dask array or data frame; does not import Dask unless it is imported."""
    X = X.bits if isinstance(X, PackedBits) else X
    return type(X).__module__.split(".")[0] in ("dask", "dask_expr") and hasattr(
        X, "__dask_graph__"
    )


def open_collection(
    X: Any,
    y: Any,
    sample_weight: Any,
    binarize: float | None,
    n_jobs: int | None,
    schema: Schema | None = None,
) -> "ClusterRows":
    """Return the rows of a Dask array or data frame.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame
        The rows.
    y : array-like, Dask array or series, name of a column of X, or None
        The labels, partitioned like X if they are a collection.
    sample_weight : array-like, Dask array or series, optional
        The weight of each row.
    binarize : float or None
        Entries greater than this are on.
    n_jobs : int, optional
        Threads of each task; 1 by default, since tasks run in parallel.
    schema : Schema, optional
        The schema of the columns, if they are not all binary.
    """
    names = None
    if hasattr(X, "columns"):
        if isinstance(y, str):
            if y not in X.columns:
                raise ValueError(f"X has no column {y!r} to take the labels from")
            X, y = X.drop(columns=y), X[y]
        names = [str(name) for name in X.columns]
    elif isinstance(y, str):
        raise ValueError(f"y={y!r} names a column, but X is a Dask array, which has no names")
    n_variables = X.shape[1] if names is None else len(names)
    if schema is not None:
        n_variables = len(schema.columns)
    parts = partitions(X, "X")
    return ClusterRows(
        parts,
        _aligned(y, X, parts, "y"),
        _aligned(sample_weight, X, parts, "sample_weight"),
        int(n_variables),
        names,
        binarize,
        1 if n_jobs is None else n_jobs,
        schema,
    )


def partitions(X: Any, name: str) -> list[Any]:
    """Return the partitions of a collection as delayed objects, whole rows in each."""
    if isinstance(X, PackedBits):
        import dask

        pack = dask.delayed(PackedBits)
        return [pack(part, X.n_variables) for part in partitions(X.bits, name)]
    if hasattr(X, "columns") or not hasattr(X, "chunks"):  # a data frame or series
        return list(X.to_delayed())
    if X.ndim not in (1, 2):
        raise ValueError(f"{name} must have one or two dimensions, got {X.ndim}")
    if X.ndim == 2 and X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    return list(X.to_delayed().ravel())


def _aligned(values: Any, X: Any, parts: list[Any], name: str) -> list[Any] | None:
    """Return labels or weights divided like the partitions of X."""
    if values is None:
        return None
    if is_collection(values):
        cuts = partitions(values, name)
        if len(cuts) != len(parts):
            raise ValueError(
                f"{name} has {len(cuts)} partitions, X has {len(parts)}; cut both alike"
            )
        return cuts
    array = np.asarray(values)
    lengths = _lengths(X, parts)
    if array.shape != (sum(lengths),):
        raise ValueError(f"{name} has shape {array.shape}, expected ({sum(lengths)},), one per row")
    return np.split(array, np.cumsum(lengths)[:-1])


def _lengths(X: Any, parts: list[Any]) -> list[int]:
    known = getattr(X.bits if isinstance(X, PackedBits) else X, "chunks", None)
    if known is not None and not np.isnan(known[0]).any():
        return [int(length) for length in known[0]]
    import dask

    return list(dask.compute(*[dask.delayed(len)(part) for part in parts]))


def _prepare(
    part: Any,
    labels: Any,
    weights: Any,
    binarize: float | None,
    number: int,
    schema: Schema | None,
) -> Chunk:
    """Return a partition in the form of the passes; runs on a worker."""
    try:
        observed = observe(part, binarize, 1, schema)
        rows = observed.ones
        label = None if labels is None else np.asarray(labels)
        weight = NO_WEIGHTS if weights is None else np.asarray(weights, dtype=np.float64)
        for name, values in (("labels", label), ("weights", weight)):
            if values is not None and values.size and values.shape != (rows.n_rows,):
                raise ValueError(f"it has {rows.n_rows} rows and {name} of shape {values.shape}")
        check_sizes_of_weights(weight)
        return Chunk(rows, label, weight, holes=observed.holes)
    except (ValueError, TypeError) as error:
        raise ChunkError(f"partition {number} of X: {error}") from error


def _apply(
    function: Callable[[Chunk], Any], chunk: Chunk, number: int, first: int
) -> tuple[dict[int, tuple[int, int, int]], Any]:
    """Return a function of a partition, and the partition's signature."""
    here = replace(chunk, first=first)
    return {number: here.signature}, function(here)


def _add_all(results: list[Any]) -> Any:
    signatures, total = results[0]
    for more, part in results[1:]:
        signatures, total = {**signatures, **more}, add(total, part)
    return signatures, total


class ClusterRows:
    """The partitions of a collection, persisted on the workers between passes."""

    def __init__(
        self,
        parts: Sequence[Any],
        labels: Sequence[Any] | None,
        weights: Sequence[Any] | None,
        n_variables: int,
        names: Sequence[str] | None,
        binarize: float | None,
        n_jobs: int | None,
        schema: Schema | None = None,
    ) -> None:
        import dask

        self.schema = schema

        self.n_variables, self.names, self.n_jobs = n_variables, names, n_jobs
        self._client = current_client()
        nothing = [None] * len(parts)
        prepare = dask.delayed(_prepare)
        self._parts = list(parts)
        chunks = [
            prepare(part, label, weight, binarize, number, schema)
            for number, (part, label, weight) in enumerate(
                zip(parts, labels or nothing, weights or nothing, strict=True)
            )
        ]
        self._chunks = chunks if self._client is None else list(self._client.persist(chunks))
        self._seen: dict[int, tuple[int, int, int]] | None = None
        if self._client is None:
            self._chunks = self._persist_here(chunks)

    def _persist_here(self, chunks: list[Any]) -> list[Any]:
        """Without a cluster the rows stay in this process, as bits."""
        import dask

        try:
            return list(dask.persist(*chunks))
        except Exception as error:
            raise self._named(error) from error

    @property
    def fingerprint(self) -> int:
        """A checksum of the rows."""
        return zlib.crc32(repr(sorted((self._seen or {}).items())).encode())

    def total(self, function: Callable[[Chunk], Any]) -> Any:
        """Return the sum of the results of a function for every partition."""
        import dask

        apply, combine = dask.delayed(_apply), dask.delayed(_add_all)
        shared = dask.delayed(function)  # one node of the graph, sent once to each worker
        firsts = self._firsts()
        level = [
            apply(shared, chunk, number, firsts[number])
            for number, chunk in enumerate(self._chunks)
        ]
        while len(level) > 1:
            level = [combine(level[i : i + FAN_IN]) for i in range(0, len(level), FAN_IN)]
        signatures, result = self._compute(level[0])
        self._check(signatures)
        return result

    def _firsts(self) -> npt.NDArray[np.int64]:
        """Return the number of rows of positive weight before each partition, once known."""
        if self._seen is None:
            return np.zeros(len(self._chunks), dtype=np.int64)
        counts = [self._seen[number][1] for number in range(len(self._chunks))]
        return np.concatenate([[0], np.cumsum(counts)])[:-1]

    def _check(self, signatures: dict[int, tuple[int, int, int]]) -> None:
        """Reject partitions that have changed: computed again, they must be the same."""
        if self._seen is None:
            self._seen = signatures
        changed = [n for n in sorted(signatures) if signatures[n] != self._seen[n]]
        if changed:
            raise ChunkError(
                f"partition {changed[0]} of X has changed since the first pass; what it is "
                "computed from must give the same rows every time"
            )

    def _compute(self, graph: Any) -> Any:
        try:
            if self._client is None:
                return graph.compute()
            return result_of(self._client, graph)
        except Exception as error:
            raise self._named(error) from error

    def _named(self, error: BaseException) -> BaseException:
        """Return an error that says which partition failed, or what happened to the cluster."""
        if isinstance(error, ChunkError):
            return error
        lost = None if self._client is None else cluster_error(self._client, error)
        if lost is not None:
            return lost
        number = self._failed()
        if number is None:
            return error
        return ChunkError(f"partition {number} of X could not be computed: {error!r}")

    def _failed(self) -> int | None:
        """Return the first partition that cannot be computed."""
        import dask

        if self._client is not None:
            futures = self._client.futures_of(self._chunks)
            for number, future in enumerate(futures):
                if future.status == "error":
                    return number
            return None
        for number, part in enumerate(self._parts):
            try:
                dask.compute(part)
            except Exception:
                return number
        return None


def current_client() -> Any:
    """Return the client that Dask would use, None if it works in this process."""
    try:
        from distributed import default_client
    except ImportError:
        return None
    try:
        return default_client()
    except ValueError:
        return None


def _call(function: Callable[[Any], Any], part: Any) -> Any:
    """Call a function; it is a node of the graph itself, sent once to each worker."""
    return function(part)


def map_rows(X: Any, function: Callable[[Any], npt.NDArray[Any]], typed: bool = False) -> Any:
    """Return a Dask array of a function's results for the rows of each partition.

    Shape and type of results are found with a row of zeros, or of missing values for columns of any
    kind.
    """
    import dask
    import dask.array as da

    parts = partitions(X, "X")
    if hasattr(X, "columns"):
        blank = X._meta.reindex([0]).astype(object)  # whatever its columns contain
        blank.iloc[:] = None if typed else 0
        probe, lengths = function(blank), (np.nan,) * len(parts)
    elif isinstance(X, PackedBits):
        empty = PackedBits(np.zeros((1, X.bits.shape[1]), np.uint8), X.n_variables)
        probe, lengths = function(empty), X.bits.chunks[0]
    else:
        row = np.zeros((1, X.shape[1]), dtype=X.dtype)
        probe, lengths = function(np.full(row.shape, None) if typed else row), X.chunks[0]
    answer, shared = dask.delayed(_call), dask.delayed(function)
    blocks = [
        da.from_delayed(
            answer(shared, part),
            shape=(length, *probe.shape[1:]),
            dtype=probe.dtype,
        )
        for part, length in zip(parts, lengths, strict=True)
    ]
    return da.concatenate(blocks, allow_unknown_chunksizes=True)
