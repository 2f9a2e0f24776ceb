"""Names of variables: set if the rows have none, checked if they have some."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import validate_data

from exchangeable.data.columns.raw import library_of
from exchangeable.queries.frames import as_names

GIVEN = "names_given_"
"""The attribute of an estimator whose names were given separately from its rows."""


def check_columns(estimator: Any, X: Any, n_columns: int, reset: bool) -> None:
    """Set scikit-learn's attributes about the columns of X, or compare X with them.

    Parameters
    ----------
    estimator : estimator
        Its ``n_features_in_`` and ``feature_names_in_`` are set, or compared.
    X : array-like, sparse matrix, data frame or Arrow table
        Rows.
    n_columns : int
        Number of columns of X.
    reset : bool
        Whether to set them (or else compare).
    """
    _check_repeated(X)
    if reset or not hasattr(estimator, GIVEN) or library_of(X) is not None:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    elif n_columns != estimator.n_features_in_:
        raise ValueError(
            f"X has {n_columns} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )


def _check_repeated(X: Any) -> None:
    """Reject a table with two columns of the same name."""
    library = library_of(X)
    if library is None:
        return
    names = list(X.column_names if library == "pyarrow" else X.columns)
    if len(set(names)) == len(names):
        return
    name = next(name for name in names if names.count(name) > 1)
    places = [str(at) for at, other in enumerate(names) if other == name]
    raise ValueError(
        f"X has {len(places)} columns named {name!r}, at {', '.join(places)}; rename all but one"
    )


def give_names(estimator: Any, feature_names: Any) -> None:
    """Set the variable names of an estimator that was fitted to rows without names.

    Parameters
    ----------
    estimator : estimator
        One whose ``n_features_in_`` is set.
    feature_names : array-like of str, transformer or None
        The names, or a transformer with ``get_feature_names_out``, such as the vectorizer before a
        model.
    """
    estimator.__dict__.pop(GIVEN, None)
    if feature_names is None:
        return
    names = as_names(feature_names, estimator.n_features_in_, "feature_names")
    own: npt.NDArray[Any] | None = getattr(estimator, "feature_names_in_", None)
    if own is not None:
        if own.tolist() != names.tolist():
            differs = int(np.flatnonzero(own != names)[0])
            raise ValueError(
                f"X calls column {differs} {own[differs]!r}, feature_names {names[differs]!r}; "
                "leave feature_names out: X has names of its own"
            )
        return
    estimator.feature_names_in_ = names
    setattr(estimator, GIVEN, True)
