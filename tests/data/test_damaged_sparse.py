"""Sparse matrices whose arrays contradict each other are refused wherever rows are taken."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from exchangeable import (
    EVM,
    Count,
    ExchangeableClassifier,
    ExchangeableDensity,
    ExchangeableImputer,
    ExchangeableMixture,
    Kinds,
    RaschModel,
    exchangeability_report,
    with_missing,
    write_packed,
)

rng = np.random.default_rng(5)
DENSE = (rng.random((24, 8)) < 0.4).astype(np.float64)
LABELS = np.arange(24) % 2


def _poke(name, position, value):
    def damage(matrix):
        array = getattr(matrix, name).copy()
        array[position] = value
        _set(matrix, name, array)

    return damage


def _replace(name, change):
    return lambda matrix: _set(matrix, name, change(getattr(matrix, name)))


def _set(matrix, name, array):
    """Replace an array without asking the matrix."""
    if matrix.format == "coo" and name in ("row", "col"):
        place = {"row": 0, "col": 1}[name]
        coords = list(matrix.coords)
        coords[place] = array
        matrix.coords = tuple(coords)
    else:
        setattr(matrix, name, array)


COMPRESSED = {
    "index too large": _poke("indices", 3, 8),
    "index huge": _poke("indices", 0, 2**31 - 1),
    "index negative": _poke("indices", -1, -1),
    "indptr falls": _poke("indptr", 2, 10**6),
    "indptr negative": _poke("indptr", 1, -5),
    "indptr begins late": _poke("indptr", 0, 1),
    "indptr ends late": _poke("indptr", -1, 10**6),
    "indptr too short": _replace("indptr", lambda a: a[:-1].copy()),
    "indptr too long": _replace("indptr", lambda a: np.append(a, a[-1])),
    "indices too short": _replace("indices", lambda a: a[:-2].copy()),
    "data too short": _replace("data", lambda a: a[:-2].copy()),
}
COORDINATES = {
    "row too large": _poke("row", 0, 24),
    "row negative": _poke("row", 0, -1),
    "column too large": _poke("col", 2, 8),
    "column negative": _poke("col", -1, -(2**31)),
    "rows too short": _replace("row", lambda a: a[:-1].copy()),
    "columns too short": _replace("col", lambda a: a[:-1].copy()),
    "data too short": _replace("data", lambda a: a[:-1].copy()),
}
CASES = [
    *[("csr", name) for name in COMPRESSED],
    *[("csc", name) for name in COMPRESSED],
    *[("bsr", name) for name in COMPRESSED],
    *[("coo", name) for name in COORDINATES],
]


def damaged(form, name):
    """Return a matrix of a format, damaged in one of its arrays."""
    matrix = sp.coo_array(DENSE).asformat(form)
    if form == "bsr":
        matrix = sp.bsr_array(DENSE, blocksize=(2, 2))
    elif form == "csc" and name == "index too large":
        _poke("indices", 3, 24)(matrix)
        return matrix
    (COORDINATES if form == "coo" else COMPRESSED)[name](matrix)
    return matrix


@pytest.fixture(scope="module")
def fitted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return (
            ExchangeableClassifier().fit(DENSE, LABELS),
            ExchangeableMixture(2, max_iter=3, random_state=0).fit(DENSE),
        )


def places(classifier, mixture):
    """Return everything that takes rows, by name."""
    return {
        "classifier.fit": lambda X: ExchangeableClassifier().fit(X, LABELS),
        "classifier.partial_fit": lambda X: ExchangeableClassifier().partial_fit(
            X, LABELS, classes=[0, 1]
        ),
        "classifier.predict": classifier.predict,
        "classifier.predict_proba": classifier.predict_proba,
        "mixture.fit": lambda X: ExchangeableMixture(2, max_iter=2).fit(X),
        "mixture.score_samples": mixture.score_samples,
        "mixture.predict_proba": mixture.predict_proba,
        "mixture.most_probable": mixture.most_probable,
        "mixture.marginals": mixture.marginals,
        "density.fit": lambda X: ExchangeableDensity(families=["blocks"]).fit(X),
        "imputer.fit": lambda X: ExchangeableImputer().fit(X),
        "Rasch": lambda X: RaschModel().fit(X),
        "one component": lambda X: EVM(Count(8)).fit(X),
        "report": exchangeability_report,
        "rows with holes": lambda X: with_missing(X, DENSE > 0),
        "holes": lambda X: with_missing(DENSE, X),
        "chunks": lambda X: ExchangeableMixture(2, max_iter=2).fit([X]),
    }


@pytest.mark.parametrize(("form", "name"), CASES)
def test_damaged_matrices_are_refused_everywhere(form, name, fitted, tmp_path):
    for call in places(*fitted).values():
        matrix = damaged(form, name)
        with pytest.raises(ValueError, match="damaged sparse matrix"):
            call(matrix)
    with pytest.raises(ValueError, match="damaged sparse matrix"):
        write_packed([damaged(form, name)], tmp_path / "rows.npy")
    assert not list(tmp_path.iterdir())


def typed_places():
    """Return everything that takes rows of counts, or of one-hot columns, by name."""
    few = {"max_iter": 2, "tol": 0.1, "random_state": 0}
    groups = {"kind": [0, 1, 2], "other": [3, 4, 5, 6, 7]}
    counted = ExchangeableMixture(2, kinds="count", **few).fit(sp.csr_array(DENSE))
    flags = sp.csr_array(np.tile(np.eye(8), (3, 1)))
    grouped = ExchangeableMixture(2, kinds=Kinds(groups=groups), **few).fit(flags)
    found = {
        "count classifier": lambda X: ExchangeableClassifier(kinds="count").fit(X, LABELS),
        "count batches": lambda X: ExchangeableClassifier(kinds="count").partial_fit(
            X, LABELS, classes=[0, 1]
        ),
        "groups": lambda X: ExchangeableMixture(2, kinds=Kinds(groups=groups), **few).fit(X),
        "columns by name": lambda X: ExchangeableMixture(2, kinds={0: "count"}, **few).fit(X),
        "counts in chunks": lambda X: ExchangeableMixture(2, kinds="count", **few).fit([X, X]),
    }
    for family in ("mixed", "polya", "mixed tree"):
        found[f"{family} of counts"] = ExchangeableMixture(
            2, family=family, kinds="count", **few
        ).fit
    for kind, model in (("count", counted), ("group", grouped)):
        for name in ("score_samples", "predict_proba", "marginals", "most_probable", "impute"):
            found[f"{kind} {name}"] = getattr(model, name)
    return found


@pytest.mark.parametrize("form", ["csr", "csc", "bsr", "coo"])
def test_damaged_counts_are_refused_everywhere(form):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        calls = typed_places()
    for name in COORDINATES if form == "coo" else COMPRESSED:
        for call in calls.values():
            with pytest.raises(ValueError, match="damaged sparse matrix"):
                call(damaged(form, name))


@pytest.mark.parametrize("form", ["csr", "csc", "bsr", "coo"])
def test_intact_matrices_are_taken(form, fitted):
    classifier, mixture = fitted
    matrix = sp.coo_array(DENSE).asformat(form)
    np.testing.assert_array_equal(classifier.predict(matrix), classifier.predict(DENSE))
    np.testing.assert_allclose(mixture.score_samples(matrix), mixture.score_samples(DENSE))


@pytest.mark.parametrize("name", ["index too large", "indptr falls"])
def test_damaged_partitions_of_dask_are_refused_and_named(name, fitted):
    dask, da = pytest.importorskip("dask"), pytest.importorskip("dask.array")
    assert name in COMPRESSED
    classifier, mixture = fitted

    def sparse(block, block_info=None):
        matrix = sp.csr_array(block)
        if block_info and block_info[0]["chunk-location"][0] == 1:
            COMPRESSED[name](matrix)
        return matrix

    whole = da.from_array(DENSE, chunks=(12, -1))
    empty = sp.csr_array((0, 0), dtype=DENSE.dtype)
    damaged_rows = whole.map_blocks(sparse, dtype=DENSE.dtype, meta=empty)
    rows = whole.map_blocks(sp.csr_array, dtype=DENSE.dtype, meta=empty)
    with dask.config.set(scheduler="synchronous"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for fit in (
            lambda X: ExchangeableClassifier().fit(X, da.from_array(LABELS, chunks=12)),
            lambda X: ExchangeableMixture(2, max_iter=2).fit(X),
        ):
            with pytest.raises(ValueError, match="partition 1 of X: X is a damaged sparse matrix"):
                fit(damaged_rows)
        for answer in (classifier.predict_proba, mixture.predict_proba):
            with pytest.raises(ValueError, match="damaged sparse matrix"):
                answer(damaged_rows).compute()
            np.testing.assert_array_equal(answer(rows).compute(), answer(DENSE))
        far = ExchangeableMixture(2, max_iter=3, random_state=0).fit(rows)
    np.testing.assert_allclose(far.predict_proba(DENSE), mixture.predict_proba(DENSE), rtol=1e-9)
