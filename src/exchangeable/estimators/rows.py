"""How estimators read rows: a matrix in memory, chunks, or a cluster."""

import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array, check_X_y

from exchangeable.arrays import FloatArray, check_sample_weight, is_sparse
from exchangeable.data.columns.raw import library_of
from exchangeable.data.columns.schema import Schema
from exchangeable.data.containers import as_matrix
from exchangeable.data.observed import Observed
from exchangeable.data.packed import PackedBits
from exchangeable.data.stream import cluster
from exchangeable.data.stream.cluster_tables import CollectionTable
from exchangeable.data.stream.passes import ChunkedRows, ChunkError, Passes, observe
from exchangeable.data.stream.raw_tables import ChunkedTable
from exchangeable.data.stream.sources import Source, as_source
from exchangeable.estimators.kinds import (
    COLUMNS,
    decide_kinds,
    decide_kinds_of_table,
    schema_of,
)
from exchangeable.estimators.names import check_columns, give_names
from exchangeable.families.contract import FamilySpec
from exchangeable.fitting.trainings import GENERATIVE, Generative, as_training
from exchangeable.runtime.threads import row_ranges, run

Method = TypeVar("Method", bound=Callable[..., Any])
NUMERIC: dict[str, Any] = {
    "accept_sparse": "csr",
    "dtype": "numeric",
    "ensure_all_finite": "allow-nan",
}
"""Matrix formats that scikit-learn's checks accept."""
PART = 1 << 17
"""Number of entries checked at a time, so that they stay in the processor's cache."""
COUNTED = 1 << 22
"""Number of entries among which distinct values are counted."""


def open_rows(
    estimator: Any,
    spec: FamilySpec,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    labelled: bool = False,
    fitted: bool = False,
) -> tuple[FamilySpec, Passes] | None:
    """Return the rows if they come in chunks or lie on a cluster, None for a matrix in memory.

    The family that suits their columns is returned with them: by the schema of an estimator that is
    `fitted`, or as decided by passes over the rows.
    """
    column = y if isinstance(y, str) else None
    on_cluster = cluster.is_collection(X)
    one_table = column is None and library_of(X) == "pyarrow" and not fitted
    if one_table and decide_kinds(estimator, spec, X)[1] is not None:
        return None
    training = as_training(getattr(estimator, "training", GENERATIVE))
    in_memory = training is not None and not isinstance(training, Generative)
    if not on_cluster and isinstance(X, np.memmap) and ("chunks" in spec.cannot or in_memory):
        return None
    source = None if on_cluster else as_source(X, column)
    if source is None and not on_cluster:
        return None
    table = None if source is None else ChunkedTable(source)
    if fitted:
        schema = schema_of(estimator)
    else:
        given = CollectionTable(X, column) if table is None else table
        spec, schema = decide_kinds_of_table(estimator, spec, given)
    spec.check("chunks", "X in chunks or on a cluster")
    if in_memory:
        raise ValueError(
            f"training={estimator.training!r} passes over the rows many times, which needs X in "
            "memory; use training='generative' for rows in chunks or on a cluster"
        )
    labels = None if column is not None else y
    if table is None:
        options = estimator.binarize, estimator.n_jobs, schema
        labels = y if labelled else None
        return spec, cluster.open_collection(X, labels, sample_weight, *options)
    return spec, ChunkedRows(
        table.source,
        None if labels is None else _one_column(labels, "y"),
        None if sample_weight is None else _weights(sample_weight),
        estimator.binarize,
        estimator.n_jobs,
        schema=schema,
    )


def _one_column(labels: Any, name: str) -> npt.NDArray[Any]:
    array: npt.NDArray[Any] = np.asanyarray(labels)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got an array of shape {array.shape}")
    return array


def _weights(sample_weight: Any) -> FloatArray:
    weights = _one_column(sample_weight, "sample_weight")
    return check_sample_weight(weights, weights.size)


def take_names(estimator: Any, data: Passes, feature_names: Any) -> None:
    """Store scikit-learn's attributes about the columns, and their schema."""
    schema, names = data.schema, data.names
    estimator.n_features_in_ = data.n_variables
    estimator.__dict__.pop(COLUMNS, None)
    if schema is not None:
        estimator.columns_, estimator.n_features_in_ = schema.to_plain(), schema.n_inputs
        names = schema.names
    if names is not None:
        estimator.feature_names_in_ = np.asarray(names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    give_names(estimator, feature_names)


def by_chunks(method: Method) -> Method:
    """Let a method with one answer per row of X accept rows in chunks or on a cluster.

    The answers for chunks are concatenated to one array; those for a Dask collection are a Dask
    array, which is computed where the rows are, on demand.
    """

    @functools.wraps(method)
    def over(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        if cluster.is_collection(X):
            self._fitted()
            answer = functools.partial(_answer, method, self, args, options)
            return cluster.map_rows(X, answer, typed=schema_of(self) is not None)
        source = as_source(X, names=getattr(self, "feature_names_in_", None))
        if source is None:
            return method(self, X, *args, **options)
        self._fitted()
        answers = [
            method(self, observed, *args, **options)
            for observed in _read(source, self.binarize, self.n_jobs, schema_of(self))
        ]
        if not answers:
            raise ChunkError(f"{source.description} has no chunks")
        return np.concatenate(answers)

    return over  # type: ignore[return-value]


def _answer(method: Any, estimator: Any, args: Any, options: Any, part: Any) -> Any:
    """Return the answers for one partition."""
    return method(estimator, part, *args, **options)


def _read(
    source: Source, binarize: float | None, n_jobs: int | None, schema: Schema | None
) -> Iterator[Observed]:
    raw = schema is not None and source.tables is not None
    for number, given in enumerate((source.tables if raw else source.chunks)()):  # type: ignore[misc]
        matrix = given[0] if isinstance(given, tuple) else given
        try:
            yield observe(matrix, binarize, n_jobs, schema)
        except (ValueError, TypeError) as error:
            raise ChunkError(f"chunk {number} of {source.description}: {error}") from error


def as_checked(estimator: Any, X: Any) -> Observed | None:
    """Return rows that were read from a chunk or packed; None for any other matrix."""
    if isinstance(X, PackedBits):
        X = X.observed()
    if not isinstance(X, Observed):
        return None
    check_width(estimator, X.n_variables)
    return X


def check_width(estimator: Any, n_variables: int) -> None:
    """Reject rows whose variables differ from those of the fit."""
    schema = schema_of(estimator)
    n_known = estimator.n_features_in_ if schema is None else len(schema.columns)
    if n_variables != n_known:
        raise ValueError(
            f"X has {n_variables} features, but {type(estimator).__name__} is expecting "
            f"{n_known} features as input"
        )


def validated(estimator: Any, X: Any, reset: bool) -> Any:
    """Return X as a numeric matrix with NaN for missing entries, after checking its columns.

    Parameters
    ----------
    estimator : estimator
        Its ``n_features_in_`` and ``feature_names_in_`` are set, or compared with X.
    X : array-like, sparse matrix, data frame or Arrow table
        Rows.
    reset : bool
        Whether to set them (or else compare).
    """
    matrix = check_array(as_matrix(X), input_name="X", estimator=estimator, **NUMERIC)
    check_columns(estimator, X, matrix.shape[1], reset)
    return matrix


def validated_with_labels(
    estimator: Any, X: Any, y: Any, reset: bool = True
) -> tuple[Any, npt.NDArray[Any]]:
    """Return X as `validated` does, and the labels of its rows."""
    matrix, labels = check_X_y(as_matrix(X), y, estimator=estimator, **NUMERIC)
    check_columns(estimator, X, matrix.shape[1], reset)
    return matrix, labels


def warn_if_cut(matrix: Any, binarize: float | None, X: Any, n_jobs: int | None = None) -> None:
    """Warn if numbers other than 0 and 1 are binarized and no threshold was given.

    Parameters
    ----------
    matrix : ndarray or sparse matrix
        Rows as numbers.
    binarize : float or None
        The threshold; there is no warning if it is not the default.
    X : object
        The rows as they were given; for tables, `decide_kinds` warns instead.
    n_jobs : int, optional
        Number of threads.
    """
    stored = matrix.data if is_sparse(matrix) else matrix
    if binarize != 0.0 or library_of(X) is not None or stored.dtype.kind == "b":
        return
    flat = stored.ravel()

    def is_cut(span: tuple[int, int]) -> bool:
        """Whether any of the entries is a number other than 0 and 1."""
        part = flat[slice(*span)]
        n_plain = np.count_nonzero(part == 0) + np.count_nonzero(part == 1)
        return bool(n_plain < part.size and n_plain + np.count_nonzero(part != part) < part.size)

    spans = row_ranges(flat.size, PART)
    first = next((i for i, cut in enumerate(run(is_cut, spans, n_jobs)) if cut), None)
    if first is not None:
        start = spans[first][0]
        part = flat[start : start + COUNTED]
        distinct = np.unique(part[(part != 0) & (part != 1) & (part == part)])
        some = start + COUNTED < flat.size
        zero_one = int((flat == 0).any() or is_sparse(matrix)) + int((flat == 1).any())
        number = f"{'at least ' if some else ''}{distinct.size + zero_one:,}"
        warnings.warn(
            f"numbers greater than binarize={binarize} are on: X holds {number} distinct values, "
            "not 0 and 1 alone; give binarize to cut elsewhere, X > 0 to cut here, or kinds to "
            "model them as they are",
            stacklevel=5,
        )
