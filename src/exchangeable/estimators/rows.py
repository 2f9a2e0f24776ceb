"""Hooks of the estimators: rows in chunks or on a cluster instead of a matrix in memory."""

import functools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, check_alpha, check_count, check_sample_weight
from exchangeable.data.observed import Observed
from exchangeable.data.packed import PackedBits
from exchangeable.data.stream import cluster
from exchangeable.data.stream.passes import ChunkedRows, ChunkError, Passes, observe
from exchangeable.data.stream.sources import Source, as_source
from exchangeable.families.blocks.model import BlockModel
from exchangeable.fitting.chunked_fit import class_statistics, fit_classes
from exchangeable.fitting.chunked_mixture import ChunkedData, ChunkedRuns
from exchangeable.fitting.options import is_papers
from exchangeable.structure.learner import BlockLearner
from exchangeable.structure.rounds import check_learner

Method = TypeVar("Method", bound=Callable[..., Any])


def open_rows(
    estimator: Any, X: Any, y: Any = None, sample_weight: Any = None, labelled: bool = False
) -> Passes | None:
    """Return the rows if they come in chunks or lie on a cluster, None for a matrix in memory."""
    column = y if isinstance(y, str) else None
    on_cluster = cluster.is_collection(X)
    if not on_cluster and isinstance(X, np.memmap) and not is_papers(estimator):
        return None
    source = None if on_cluster else as_source(X, column)
    if source is None and not on_cluster:
        return None
    _refuse_options(estimator)
    labels = None if column is not None else y
    if source is None:
        return cluster.open_collection(
            X, y if labelled else None, sample_weight, estimator.binarize, estimator.n_jobs
        )
    return ChunkedRows(
        source,
        None if labels is None else _one_column(labels, "y"),
        None if sample_weight is None else _weights(sample_weight),
        estimator.binarize,
        estimator.n_jobs,
    )


def _refuse_options(estimator: Any) -> None:
    """Refuse what only a matrix in memory can be fitted with."""
    if not is_papers(estimator):
        raise ValueError(
            "rows in chunks or on a cluster can be fitted with urn='uniform', "
            "dependence='independent' and pooling=None only, so far; got "
            f"urn={estimator.urn!r}, dependence={estimator.dependence!r}, "
            f"pooling={estimator.pooling!r}: load X into memory for those"
        )
    if getattr(estimator, "semi_supervised", False):
        raise ValueError(
            "semi_supervised=True needs X in memory; of rows in chunks every one needs a label"
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


def _take_names(estimator: Any, data: Passes) -> None:
    """Store what scikit-learn's estimators know of the columns."""
    estimator.n_features_in_ = data.n_variables
    if data.names is not None:
        estimator.feature_names_in_ = np.asarray(data.names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def fit_classifier(estimator: Any, data: Passes) -> tuple[BlockModel, npt.NDArray[Any]]:
    """Return what a classifier is fitted to be, and its classes."""
    alpha = check_alpha(estimator.alpha)
    named = estimator._check_structure(1, []) if isinstance(estimator.structure, str) else None
    learned = named is not None and named.needs_moments
    classes, sums = class_statistics(data, learned)
    if not sum(total for total, *_ in sums) > 0:
        raise ValueError("sample_weight is zero for every row; at least one must count")
    if classes.dtype.kind == "f" and (classes != np.floor(classes)).any():
        raise ValueError(
            f"Unknown label type: continuous. y holds {classes[classes != np.floor(classes)][0]}, "
            "which is no class; use a regressor, or integers"
        )
    _take_names(estimator, data)
    structure = estimator._check_structure(data.n_variables, classes.tolist())
    model = fit_classes(data, classes, sums, structure, data.n_variables, alpha)
    return model, classes


def open_mixture(estimator: Any, passes: Passes) -> tuple[ChunkedData, Callable[..., Any]]:
    """Return the rows of a mixture after a first pass, and what begins its runs."""
    n_components = check_count(estimator.n_components, "n_components")
    data = ChunkedData.of(passes)
    if n_components > data.n_rows:
        raise ValueError(
            f"n_components={n_components} is more than the rows of X that count, "
            f"n_samples = {data.n_rows}"
        )
    _take_names(estimator, passes)
    structure = estimator._check_structure(passes.n_variables, range(n_components))
    if isinstance(structure, BlockLearner):
        check_learner(structure)
    return data, functools.partial(ChunkedRuns, data, n_components, structure)


def by_chunks(method: Method) -> Method:
    """Let a method that answers for every row of X take rows in chunks, or on a cluster.

    The answers to chunks are put together in one array; those to a Dask collection are a Dask
    array, computed where the rows are when it is asked for.
    """

    @functools.wraps(method)
    def over(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        if cluster.is_collection(X):
            self._fitted()
            return cluster.map_rows(X, functools.partial(_answer, method, self, args, options))
        source = as_source(X, names=getattr(self, "feature_names_in_", None))
        if source is None:
            return method(self, X, *args, **options)
        self._fitted()
        answers = [
            method(self, observed, *args, **options)
            for observed in _read(source, self.binarize, self.n_jobs)
        ]
        if not answers:
            raise ChunkError(f"{source.description} has no chunks")
        return np.concatenate(answers)

    return over  # type: ignore[return-value]


def _answer(method: Any, estimator: Any, args: Any, options: Any, part: Any) -> Any:
    """Answer for one partition."""
    return method(estimator, part, *args, **options)


def _read(source: Source, binarize: float | None, n_jobs: int | None) -> Iterator[Observed]:
    for number, given in enumerate(source.chunks()):
        matrix = given[0] if isinstance(given, tuple) else given
        try:
            yield observe(matrix, binarize, n_jobs)
        except (ValueError, TypeError) as error:
            raise ChunkError(f"chunk {number} of {source.description}: {error}") from error


def as_checked(estimator: Any, X: Any) -> Observed | None:
    """Return rows that were read from a chunk, or packed; None for any other matrix."""
    if isinstance(X, PackedBits):
        X = X.observed()
    if not isinstance(X, Observed):
        return None
    if X.n_variables != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.n_variables} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )
    return X
