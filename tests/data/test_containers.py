"""Every way to say "missing", in every container: the same holes, or a refusal that says where."""

import re
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from exchangeable import (
    EVM,
    Count,
    ExchangeableClassifier,
    ExchangeableImputer,
    ExchangeableMixture,
)
from exchangeable.data.columns.raw import raw_columns
from exchangeable.data.containers import as_matrix
from exchangeable.rasch.answers import read_answers

NAMES = ["tea", "milk", "sugar", "cake"]
WAYS: dict[str, Any] = {
    "NaN": float("nan"),
    "None": None,
    "NA": pd.NA,
    "NaT": pd.NaT,
    "numpy's NaT": np.datetime64("NaT"),
    "masked": np.ma.masked,
    "Decimal NaN": Decimal("nan"),
}
Floats = npt.NDArray[np.float64]


def made() -> tuple[Floats, npt.NDArray[np.int64]]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    X = (rng.random((60, 4)) < np.where(y[:, None] == 0, 0.2, 0.8)).astype(float)
    X[rng.random(X.shape) < 0.2] = np.nan
    X[0, 1], X[1, 0] = np.nan, 1.0
    return X, y


HOLED, LABELS = made()
HOLES = np.isnan(HOLED)
KNOWN = np.where(HOLES, 0, HOLED).astype(np.int64)


def objects(hole: Any, kind: Callable[[int], Any]) -> npt.NDArray[Any]:
    array = np.empty(HOLED.shape, dtype=object)
    for at, gap in np.ndenumerate(HOLES):
        array[at] = hole if gap else kind(int(KNOWN[at]))
    return array


def frame(hole: Any, kind: Callable[[int], Any], dtype: Any = object) -> pd.DataFrame:
    cells = objects(None if dtype is not object and hole is pd.NA else hole, kind)
    return pd.DataFrame(
        {name: pd.Series(cells[:, j], dtype=object).astype(dtype) for j, name in enumerate(NAMES)}
    )


def unsorted(matrix: sp.csr_array) -> sp.csr_array:
    indices, data = matrix.indices.copy(), matrix.data.copy()
    for begin, end in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        indices[begin:end], data[begin:end] = indices[begin:end][::-1], data[begin:end][::-1]
    return sp.csr_array((data, indices, matrix.indptr), shape=matrix.shape)


def twice(matrix: sp.csr_array) -> sp.csr_array:
    """The same matrix, each entry stored once with its value and once more as zero."""
    data = np.repeat(matrix.data, 2)
    data[1::2] = 0.0
    return sp.csr_array((data, np.repeat(matrix.indices, 2), 2 * matrix.indptr), shape=matrix.shape)


def containers() -> Iterator[tuple[str, Any]]:
    """The same rows with the same holes, in everything that can hold them."""
    for way, hole in WAYS.items():
        for name, kind in (("int", int), ("float", float), ("bool", bool)):
            cells = objects(hole, kind)
            yield f"objects, {name}, {way}", cells
            yield f"lists, {name}, {way}", cells.tolist()
            yield f"tuples, {name}, {way}", tuple(map(tuple, cells.tolist()))
            if way != "masked":
                yield f"pandas objects, {name}, {way}", frame(hole, kind)
    yield "float32", HOLED.astype(np.float32)
    for kind in (bool, np.int8, np.uint8, np.int64, np.float64, object):
        yield f"masked {kind.__name__}", np.ma.MaskedArray(KNOWN.astype(kind), HOLES)
    yield "masked objects over None", np.ma.MaskedArray(objects(None, int), HOLES)
    yield "a list of masked rows", list(np.ma.MaskedArray(KNOWN, HOLES))
    for way in ("None", "NA"):
        yield f"pandas Int64, {way}", frame(WAYS[way], int, "Int64")
        yield f"pandas UInt8, {way}", frame(WAYS[way], int, "UInt8")
        yield f"pandas Float64, {way}", frame(WAYS[way], float, "Float64")
        yield f"pandas boolean, {way}", frame(WAYS[way], bool, "boolean")
        yield f"pandas category of int, {way}", frame(WAYS[way], int, "category")
        yield f"pandas category of bool, {way}", frame(WAYS[way], bool, "category")
        yield f"pandas Arrow bool, {way}", frame(WAYS[way], bool, "bool[pyarrow]")
        yield f"pandas Arrow int64, {way}", frame(WAYS[way], int, "int64[pyarrow]")
    yield "pandas float", pd.DataFrame(HOLED, columns=NAMES)
    yield "pandas sparse NaN", pd.DataFrame(HOLED, columns=NAMES).astype("Sparse[float]")
    yield (
        "pandas sparse 0",
        pd.DataFrame(HOLED, columns=NAMES).astype(pd.SparseDtype(float, 0.0)),
    )
    mixed = frame(pd.NA, int, "Int64")
    mixed["milk"] = frame(pd.NA, int, "category")["milk"]
    mixed["cake"] = frame(None, bool)["cake"]
    yield "pandas, every column of another type", mixed
    listed = {name: objects(None, int)[:, j].tolist() for j, name in enumerate(NAMES)}
    truths = {name: objects(None, bool)[:, j].tolist() for j, name in enumerate(NAMES)}
    yield "polars Int64", pl.DataFrame(listed)
    yield "polars Boolean", pl.DataFrame(truths)
    yield "polars Float64", pl.DataFrame(HOLED, schema=NAMES)
    yield "polars Decimal", pl.DataFrame(listed).cast(pl.Decimal(4, 0))
    yield "Arrow int64", pa.table(listed)
    yield "Arrow bool", pa.table(truths)
    coded = {name: pa.array(cells).dictionary_encode() for name, cells in listed.items()}
    yield "Arrow dictionary", pa.table(coded)
    yield "Arrow batch", pa.table(coded).to_batches()[0]
    csr = sp.csr_array(HOLED)
    yield "csr", csr
    yield "csr, unsorted", unsorted(csr)
    yield "csr, entries stored twice", twice(csr)
    yield "csc", sp.csc_matrix(HOLED)
    yield "coo", sp.coo_array(HOLED)
    yield "lil", sp.lil_matrix(HOLED)
    yield "dok, which is a mapping", sp.dok_array(HOLED)
    yield "bsr", sp.bsr_matrix(HOLED)


CONTAINERS = dict(containers())


def quiet(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X (has|does not have valid) feature names")
        warnings.filterwarnings("ignore", "Warning: converting a masked element to nan")
        result = function(*arguments, **options)
        return result.compute() if hasattr(result, "compute") else result


@pytest.fixture(scope="module")
def fits() -> tuple[Any, Any, Any]:
    mixture = ExchangeableMixture(2, random_state=0).fit(HOLED)
    imputer = ExchangeableImputer(ExchangeableMixture(2, random_state=0)).fit(HOLED)
    return mixture, ExchangeableClassifier().fit(HOLED, LABELS), imputer


def fitted_alike(X: Any, fits: tuple[Any, Any, Any]) -> tuple[Any, Any]:
    """Fit to rows in another form, and compare with fits to the matrix; sums of chunks differ."""
    mixture, classifier, _ = fits
    again = quiet(ExchangeableMixture(2, random_state=0).fit, X)
    assert again.log_likelihood_ == pytest.approx(mixture.log_likelihood_, abs=1e-10)
    labelled = quiet(ExchangeableClassifier().fit, X, LABELS)
    np.testing.assert_allclose(
        quiet(labelled.predict_joint_log_proba, HOLED),
        classifier.predict_joint_log_proba(HOLED),
        rtol=1e-10,
    )
    return again, labelled


@pytest.mark.parametrize("name", CONTAINERS)
def test_the_holes_are_those_of_the_matrix_with_nan(name: str, fits: tuple[Any, Any, Any]) -> None:
    X = CONTAINERS[name]
    mixture, classifier, imputer = fits
    read = as_matrix(X)
    dense = read.toarray() if sp.issparse(read) else np.asarray(read, dtype=float)
    np.testing.assert_array_equal(dense, HOLED)
    filled = quiet(mixture.impute, X)
    np.testing.assert_array_equal(
        filled.toarray() if sp.issparse(filled) else filled, mixture.impute(HOLED)
    )
    answers = read_answers(X)
    np.testing.assert_array_equal(answers.values, np.where(HOLES, -1, KNOWN))
    if not sp.issparse(read):
        block = EVM(Count(4)).fit(KNOWN, alpha=1.0)
        np.testing.assert_array_equal(quiet(block.log_prob, X), block.log_prob(HOLED))
    for model, method in (
        (mixture, "score_samples"),
        (mixture, "predict_proba"),
        (mixture, "marginals"),
        (classifier, "predict"),
        (classifier, "predict_log_proba"),
    ):
        answers = quiet(getattr(model, method), X)
        np.testing.assert_allclose(answers, getattr(model, method)(HOLED), rtol=1e-12)
    filled = quiet(imputer.transform, X)
    np.testing.assert_array_equal(
        filled.toarray() if sp.issparse(filled) else filled, imputer.transform(HOLED)
    )
    again, labelled = fitted_alike(X, fits)
    if isinstance(X, pd.DataFrame | pl.DataFrame):
        assert again.feature_names_in_.tolist() == labelled.feature_names_in_.tolist() == NAMES


OTHERS = ("object", "Sparse")


def in_parts() -> Iterator[tuple[str, Any]]:
    """Containers whose rows are read a part at a time."""
    for name, X in CONTAINERS.items():
        if name.startswith(("objects", "masked", "csr", "float32")):
            yield f"a list of parts: {name}", [X[:20], X[20:]]
        elif isinstance(X, pd.DataFrame | pl.DataFrame):
            parts = [X.iloc[:20], X.iloc[20:]] if isinstance(X, pd.DataFrame) else [X[:20], X[20:]]
            yield f"a list of parts: {name}", parts
        # Dask itself turns objects into text, and has no sparse columns.
        if isinstance(X, pd.DataFrame) and not any(str(t)[:6] in OTHERS for t in X.dtypes):
            yield f"Dask frame: {name}", dd.from_pandas(X, npartitions=3)
    yield "Dask array of floats", da.from_array(HOLED, chunks=(20, 2))
    yield "Dask array of objects", da.from_array(objects(None, int), chunks=(20, 2))
    masked = np.ma.MaskedArray(KNOWN, HOLES)
    yield "Dask array, masked", da.from_array(masked, chunks=(20, -1))


PARTS = dict(in_parts())


@pytest.mark.parametrize("name", PARTS)
def test_chunks_have_the_same_holes_and_fits(name: str, fits: tuple[Any, Any, Any]) -> None:
    mixture, classifier, _ = fits
    X = PARTS[name]
    np.testing.assert_allclose(
        quiet(mixture.score_samples, X), mixture.score_samples(HOLED), rtol=1e-12
    )
    np.testing.assert_array_equal(quiet(classifier.predict, X), classifier.predict(HOLED))
    fitted_alike(X, fits)


def text_column(hole: Any) -> pd.DataFrame:
    cells = frame(None, int, "Int64")
    cells["sugar"] = np.where(np.arange(60) == 3, hole, np.where(KNOWN[:, 2] == 1, "yes", "no"))
    return cells


REFUSED: dict[str, tuple[Any, str]] = {
    "pandas text": (text_column(None), "'sugar'"),
    "pandas string": (text_column(None).astype({"sugar": "string"}), "'sugar'"),
    "pandas category of text": (text_column(None).astype({"sugar": "category"}), "'sugar'"),
    "pandas digits as text": (
        frame(None, str).assign(milk=HOLED[:, 1], cake=HOLED[:, 3], tea=HOLED[:, 0]),
        "'sugar'",
    ),
    "pandas dates": (
        pd.DataFrame(HOLED, columns=NAMES).assign(sugar=pd.Series([pd.NaT] * 60)),
        "'sugar'",
    ),
    "polars text": (pl.DataFrame({"tea": [1, None], "milk": ["1", None]}), "'milk'"),
    "polars dates": (
        pl.DataFrame(
            {"tea": [1, None], "milk": [None, None]}, schema={"tea": int, "milk": pl.Date}
        ),
        "'milk'",
    ),
    "Arrow text": (pa.table({"tea": [1, None], "milk": ["1", None]}), "'milk'"),
    "objects with text": (np.array([[1, None], [0, "1"]], dtype=object), "X[1, 1]"),
    "text": (np.array([["1", ""]]), "X holds text"),
    "dates": (np.array([["NaT", "NaT"]], dtype="M8[D]"), "X holds points in time"),
}


NOMINAL = [
    name
    for name in REFUSED
    if name.startswith(("pandas", "polars", "Arrow")) and not name.endswith("dates")
]
"""Tables with text, whose columns are nominal where a model is fitted to them."""


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize(
    "use", ["fit", "fit classes", "score_samples", "predict", "impute", "parts"]
)
def test_what_is_not_a_number_is_refused_by_name(
    name: str, use: str, fits: tuple[Any, Any, Any]
) -> None:
    X, where = REFUSED[name]
    mixture, classifier, _ = fits
    uses: dict[str, Callable[[], Any]] = {
        "fit": lambda: ExchangeableMixture(1).fit(X),
        "fit classes": lambda: ExchangeableClassifier().fit(X, np.arange(len(X)) % 2),
        "score_samples": lambda: mixture.score_samples(X),
        "predict": lambda: classifier.predict(X),
        "impute": lambda: mixture.impute(X),
        "parts": lambda: mixture.score_samples([X, X]),
    }
    if use.startswith("fit") and name in NOMINAL:
        assert "nominal" in quiet(uses[use]).kinds_.values()
        return
    with pytest.raises(ValueError, match=re.escape(where)) as caught:
        quiet(uses[use])
    hint = "code it as 0 and 1, with NaN where it is not known"
    if use.startswith("fit") and "dates" in name:
        hint = "split them into parts, such as the month"
    assert hint in str(caught.value)


@pytest.mark.parametrize("name", CONTAINERS)
def test_columns_of_any_kind_have_the_same_holes(name: str) -> None:
    found = quiet(raw_columns, CONTAINERS[name])
    np.testing.assert_array_equal(np.stack([column.holes for column in found], axis=1), HOLES)
    for j, column in enumerate(found):
        known = column.values[~HOLES[:, j]].astype(float)
        np.testing.assert_array_equal(known, HOLED[~HOLES[:, j], j])
