"""Array types, random generators, and the input checks of public functions."""

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
SymbolArray: TypeAlias = npt.NDArray[np.integer[Any]]
Evidence: TypeAlias = Mapping[Any, Any] | npt.ArrayLike | None
RandomState: TypeAlias = int | np.random.RandomState | np.random.Generator | None

UNASSIGNED = -1
"""The value of an unassigned variable in checked evidence."""

NAMELESS = (
    "the model was fitted to rows without names: give them by feature_names in fit, or by names "
    "here"
)
"""Advice if variables are given by names that are not known."""

LARGEST = 1e100
"""The largest Laplace constant or total weight: its square is still finite."""

SMALLEST_WEIGHT = 1e-100
"""The smallest weight of a row that is used: its square is not zero."""

CACHE_LINE = 64
"""Number of bytes that a processor loads together."""


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Return a NumPy `Generator` for any kind of seed that scikit-learn accepts."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, size=4, dtype=np.uint32))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"random_state is {random_state!r}; expected an integer of at least 0, a RandomState, "
            "a Generator or None"
        ) from None


def aligned_zeros(shape: tuple[int, ...]) -> FloatArray:
    """Return zeros aligned to a cache line: vector loads of their lines do not straddle two.

    >>> aligned_zeros((2, 3)).ctypes.data % CACHE_LINE
    0
    """
    size = math.prod(shape)
    padded = np.zeros(size + CACHE_LINE // 8)
    first = -padded.ctypes.data % CACHE_LINE // 8
    return padded[first : first + size].reshape(shape)


def check_count(value: Any, name: str, minimum: int = 1) -> int:
    """Return `value` as an int of at least `minimum`, or raise an error."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an integer, got {value!r} ({type(value).__name__})")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {value}")
    return int(value)


def check_number(value: Any, name: str) -> float:
    """Return a real number as a float; text, booleans and arrays are rejected."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {value!r} ({type(value).__name__})")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name} is too large for a floating-point number") from None


def check_flag(value: Any, name: str) -> bool:
    """Return a boolean, rejecting what could merely be converted to one."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r} ({type(value).__name__})")
    return bool(value)


def _domain(n_symbols: int) -> str:
    return "0 or 1" if n_symbols == 2 else f"an integer in 0..{n_symbols - 1}"


def as_numbers(values: Any, name: str) -> npt.NDArray[Any]:
    """Return `values` as a numeric array; None, pandas.NA and masked entries become NaN."""
    if hasattr(values, "tocsr"):
        raise TypeError(f"{name} is a sparse matrix; pass a dense array, e.g. {name}.toarray()")
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} is not an array: {error}") from None
    if array.dtype.kind in "biuf":
        return array
    if array.dtype.kind != "O":
        raise TypeError(f"{name} must hold numbers, got dtype {array.dtype}")
    numbers = np.empty(array.size)
    for at, value in enumerate(array.flat):
        missing = is_missing(value)
        if not missing and not isinstance(value, Real | np.bool_):
            raise TypeError(f"{name} must hold numbers, got {value!r} ({type(value).__name__})")
        try:
            numbers[at] = np.nan if missing else float(value)
        except OverflowError:
            numbers[at] = np.inf
    return numbers.reshape(array.shape)


def is_sparse(X: Any) -> bool:
    """Whether X is one of scipy's sparse matrices or arrays."""
    return bool(sp.issparse(X))


def is_assignment(X: Any) -> TypeGuard[Mapping[Any, Any]]:
    """Whether X assigns values to variables as a dict does; sparse matrices may be mappings, too.

    >>> is_assignment({0: 1}), is_assignment(sp.dok_array((2, 2)))
    (True, False)
    """
    return isinstance(X, Mapping) and not is_sparse(X)


def check_sparse(X: Any, name: str = "X") -> None:
    """Reject a sparse matrix with inconsistent arrays: compiled loops trust them.

    Parameters
    ----------
    X : sparse matrix or array
        Of any of scipy's formats; those without index arrays need no check.
    name : str, default="X"
        Its name in messages.
    """
    problem = None
    if X.format in ("csr", "csc"):
        n_major, n_minor = X.shape if X.format == "csr" else X.shape[::-1]
        problem = _compressed_problem(X.indptr, X.indices, X.data, n_major, n_minor)
    elif X.format == "bsr":
        height, width = X.blocksize
        shape = X.shape[0] // height, X.shape[1] // width
        problem = _compressed_problem(X.indptr, X.indices, X.data, *shape)
    elif X.format == "coo":
        problem = next(
            (
                f"index {found} of axis {axis} is outside 0..{size - 1}"
                for axis, (indices, size) in enumerate(zip((X.row, X.col), X.shape, strict=True))
                if (found := _outside(indices, size)) is not None
            ),
            None,
        )
        if not X.row.size == X.col.size == X.data.size:
            problem = "its row, column and data arrays have different lengths"
    if problem is not None:
        raise ValueError(
            f"{name} is a damaged sparse matrix: {problem}; build it anew, for instance with "
            "scipy.sparse.coo_array"
        )


def _compressed_problem(
    indptr: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    data: npt.NDArray[Any],
    n_major: int,
    n_minor: int,
) -> str | None:
    """Return what is wrong with the arrays of a compressed matrix, or None."""
    if indptr.size != n_major + 1:
        return f"indptr has {indptr.size} entries, expected {n_major + 1}"
    if indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        return "indptr must begin with 0 and never fall"
    if indptr[-1] > min(len(indices), len(data)):
        return f"indptr ends at {indptr[-1]}, but there are {min(len(indices), len(data))} entries"
    found = _outside(indices[: indptr[-1]], n_minor)
    return None if found is None else f"index {found} is outside 0..{n_minor - 1}"


def _outside(indices: npt.NDArray[Any], size: int) -> int | None:
    """Return an index that is not in 0..size − 1, None if all are."""
    if not indices.size:
        return None
    low, high = int(indices.min()), int(indices.max())
    return low if low < 0 else high if high >= size else None


def is_missing(value: Any) -> bool:
    """Whether a value is one of Python's ways to say that nothing is known.

    >>> [is_missing(value) for value in (None, np.datetime64("NaT"), np.ma.masked, 0, "")]
    [True, True, True, False, False]
    """
    if value is None or value is np.ma.masked or type(value).__name__ in ("NAType", "NaTType"):
        return True  # the last two are those of pandas
    return isinstance(value, np.datetime64 | np.timedelta64) and bool(np.isnat(value))


def _as_symbols(array: npt.NDArray[Any], name: str, n_symbols: int, missing: bool) -> IntArray:
    """Return the symbols of a numeric array as int64, NaN (where allowed) as `UNASSIGNED`."""
    if array.dtype.kind == "b":
        return array.astype(np.int64)
    hole = np.isnan(array) if array.dtype.kind == "f" else np.zeros(array.shape, bool)
    good = (array >= 0) & (array < n_symbols) & (array == np.floor(array))
    bad = ~good & ~hole if missing else ~good
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        entry = f"{name}[{', '.join(map(str, where))}]"
        expected = _domain(n_symbols) + (", or NaN where it is unknown" if missing else "")
        raise ValueError(f"{entry} is {array[where]!s}; expected {expected}")
    return np.where(hole, UNASSIGNED, array).astype(np.int64)


def check_matrix(
    X: Any, n_variables: int, n_symbols: int = 2, *, missing: bool = False, name: str = "X"
) -> IntArray:
    """Return `X` as a matrix of symbols with `n_variables` columns.

    With ``missing=True`` a NaN is allowed and comes back as `UNASSIGNED`.
    """
    array = as_numbers(X, name)
    if array.ndim != 2:
        hint = f"; for a single row pass {name}.reshape(1, -1)" if array.ndim == 1 else ""
        raise ValueError(f"{name} must have two dimensions, got {array.ndim}{hint}")
    if array.shape[1] != n_variables:
        raise ValueError(f"{name} has {array.shape[1]} columns, expected {n_variables}")
    return _as_symbols(array, name, n_symbols, missing)


def check_evidence(evidence: Evidence, n_variables: int, n_symbols: int = 2) -> IntArray:
    """Return evidence in either form as one symbol per variable, `UNASSIGNED` where open."""
    if evidence is None:
        return np.full(n_variables, UNASSIGNED, dtype=np.int64)
    if not is_assignment(evidence):
        array = as_numbers(evidence, "evidence")
        if array.shape != (n_variables,):
            raise ValueError(f"evidence has shape {array.shape}, expected ({n_variables},)")
        return _as_symbols(array, "evidence", n_symbols, missing=True)
    assigned = np.full(n_variables, UNASSIGNED, dtype=np.int64)
    for variable, symbol in evidence.items():
        if isinstance(variable, bool) or not isinstance(variable, int | np.integer):
            hint = f"; {NAMELESS}" if isinstance(variable, str) else ""
            raise ValueError(
                f"evidence names the variable {variable!r}; expected an integer in "
                f"0..{n_variables - 1}{hint}"
            )
        if not 0 <= variable < n_variables:
            raise ValueError(
                f"evidence names variable {variable}; variables are numbered 0..{n_variables - 1}"
            )
        value = as_numbers(symbol, f"evidence[{variable}]")
        if value.ndim or not (0 <= value < n_symbols and value == np.floor(value)):
            raise ValueError(f"evidence[{variable}] is {symbol!r}; expected {_domain(n_symbols)}")
        assigned[variable] = int(value)
    return assigned


def named_evidence(evidence: Evidence, names: Sequence[str] | None) -> Evidence:
    """Replace feature names by column numbers in evidence given as a mapping."""
    if names is None or not is_assignment(evidence):
        return evidence
    column = {name: position for position, name in enumerate(names)}
    unknown = [key for key in evidence if isinstance(key, str) and key not in column]
    if unknown:
        known = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
        raise ValueError(f"evidence names unknown variables {unknown}; known are {known}")
    numbered = {column.get(key, key): symbol for key, symbol in evidence.items()}
    if len(numbered) < len(evidence):
        raise ValueError(f"evidence {evidence!r} names a variable by its name and by its number")
    return numbered


def check_sample_weight(sample_weight: Any, n_rows: int) -> FloatArray:
    """Return one non-negative finite weight per row, ones if none are given."""
    if sample_weight is None:
        return np.ones(n_rows)
    weights = as_numbers(sample_weight, "sample_weight").astype(np.float64)
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise ValueError(f"sample_weight has shape {weights.shape}, expected ({n_rows},)")
    check_sizes_of_weights(weights)
    if n_rows and not weights.any():
        raise ValueError("sample_weight is zero for every row; at least one must count")
    return weights


def check_sizes_of_weights(weights: FloatArray) -> None:
    """Reject weights that are negative, or so small or large that sums of them lose their meaning.

    >>> check_sizes_of_weights(np.array([1.0, 0.0, 1e-300]))
    Traceback (most recent call last):
    ...
    ValueError: sample_weight[2] is 1e-300; weights must be 0, or at least 1e-100
    """
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if bad.size:
        raise ValueError(
            f"sample_weight[{bad[0]}] is {weights[bad[0]]}; weights must be finite and not negative"
        )
    tiny = np.flatnonzero((weights > 0) & (weights < SMALLEST_WEIGHT))
    if tiny.size:
        raise ValueError(
            f"sample_weight[{tiny[0]}] is {weights[tiny[0]]}; weights must be 0, or at least "
            f"{SMALLEST_WEIGHT}"
        )
    if weights.size and weights.max() > LARGEST / weights.size:
        raise ValueError(
            f"sample_weight goes up to {weights.max()}; expected weights that add up to at most "
            f"{LARGEST}"
        )


def unique_labels(labels: Any, name: str) -> npt.NDArray[Any]:
    """Return the distinct labels in order, rejecting missing ones."""
    array = np.asarray(labels)
    if array.ndim != 1 or not array.size:
        raise ValueError(f"{name} must be a list of one or more labels, got {labels!r}")
    if array.dtype.kind in "fc" and not np.isfinite(array).all():
        raise ValueError(f"{name} holds {array[~np.isfinite(array)][0]}, which is not a label")
    try:
        return np.unique(array)
    except TypeError:
        first: dict[str, Any] = {}
        for label in array.tolist():
            first.setdefault(type(label).__name__, label)
        kinds = ", ".join(f"{kind} such as {example!r}" for kind, example in sorted(first.items()))
        raise TypeError(f"{name} mixes labels of different types: {kinds}") from None


def check_alpha(alpha: Any) -> float:
    """Return the Laplace constant as a float, rejecting anything but a non-negative number."""
    number = check_number(alpha, "alpha")
    if not (np.isfinite(number) and number >= 0):
        raise ValueError(f"alpha must be finite and at least 0, got {alpha}")
    if number > LARGEST:
        raise ValueError(f"alpha must be at most {LARGEST}, got {alpha}")
    return number


def normalize_log(joint: FloatArray, fallback: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return log P(y | x) and log P(x) from log P(x, y), with one row per example.

    If every class is impossible the posterior is `fallback`, and log P(x) is −inf.

    >>> joint = np.log([[0.1, 0.3]])
    >>> posterior, evidence = normalize_log(joint, joint[0])
    >>> np.exp(posterior).round(3).tolist(), np.exp(evidence).round(3).tolist()
    ([[0.25, 0.75]], [0.4])
    """
    highest = joint.max(axis=1, keepdims=True)
    possible = highest > -np.inf
    shifted = np.where(possible, joint - np.where(possible, highest, 0.0), fallback)
    log_sum = np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    evidence = np.where(possible, highest + log_sum, -np.inf)
    return shifted - log_sum, evidence[:, 0]


def log_totals(joint: FloatArray) -> FloatArray:
    """Return log P(x) from log P(x, y), with one row per example; `joint` is overwritten.

    >>> np.exp(log_totals(np.log([[0.1, 0.3]]))).round(3).tolist()
    [0.4]
    """
    highest = joint.max(axis=1, keepdims=True)
    possible = highest > -np.inf
    joint -= np.where(possible, highest, 0.0)
    sums = np.exp(joint, out=joint).sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(possible, highest + np.log(sums), -np.inf)[:, 0])
