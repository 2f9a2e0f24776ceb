"""Labels of rows: which are known, and the weights of classes."""

from collections.abc import Mapping
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, check_sample_weight
from exchangeable.data.columns.raw import missing_entries

UNLABELLED = -1
"""Marks an unlabelled row in semi-supervised fits, like None and NaN."""


class Labels(NamedTuple):
    """Labels as scikit-learn's checks expect them.

    Attributes
    ----------
    y : array-like
        Labels; unlabelled rows hold the label of some other row.
    known : ndarray of bool or None
        Which rows have a label, None if all do.
    """

    y: Any
    known: npt.NDArray[np.bool_] | None


def open_labels(y: Any, semi_supervised: bool) -> Labels:
    """Return the labels and which are known; an error names the first row that lacks one.

    Parameters
    ----------
    y : array-like
        Labels; in semi-supervised fits, −1, None and NaN mark unlabelled rows.
    semi_supervised : bool
        Whether rows may be unlabelled.

    Examples
    --------
    >>> labels = open_labels(["a", None, "b"], semi_supervised=True)
    >>> labels.known.tolist()
    [True, False, True]
    """
    listed = isinstance(y, list | tuple)  # these would all become text if a single entry is
    array = np.asarray(y, dtype=object) if listed else np.asarray(y)
    if y is None or array.ndim != 1:
        return Labels(y, None)
    name = getattr(y, "name", None)
    what = "y" if name is None else f"y, column {name!r},"
    missing = missing_entries(array)
    if not semi_supervised:
        if missing.any():
            row = int(missing.argmax())
            raise ValueError(
                f"Input y contains NaN: row {row} of {what} is {array[row]!s}, but every row needs "
                "a class; leave out such rows, or learn from them with semi_supervised=True"
            )
        return Labels(y, None)
    if array.dtype.kind == "U" and (array == str(UNLABELLED)).any():
        row = int((array == str(UNLABELLED)).argmax())
        raise ValueError(
            f"row {row} of {what} is the text '-1' among labels that are text; mark rows without a "
            "label by None, as in np.array([..., None], dtype=object)"
        )
    without = missing | _marked(array)
    if without.all():
        raise ValueError(
            f"all rows are unlabelled: {what} holds -1 or None only; one needs a class"
        )
    filled = array.copy()
    filled[without] = array[~without][0]
    if filled.dtype == object and all(isinstance(v, Real) for v in filled.tolist()):
        filled = np.array(filled.tolist())
    return Labels(filled, ~without)


def _marked(array: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which entries are the number −1."""
    if array.dtype.kind in "iuf":
        return np.asarray(array == UNLABELLED)
    if array.dtype.kind != "O":
        return np.zeros(array.shape, dtype=np.bool_)
    return np.array([isinstance(v, Real) and v == UNLABELLED for v in array.tolist()])


def weigh_classes(
    class_weight: Any,
    classes: npt.NDArray[Any],
    labels: npt.NDArray[np.integer[Any]],
    sample_weight: npt.ArrayLike | None,
) -> npt.ArrayLike | None:
    """Return the weight of each row including that of its class; None if all are equal.

    Parameters
    ----------
    class_weight : None, "balanced" or dict
        Weights of the classes.
    classes : ndarray
        The classes.
    labels : ndarray
        The number of the class of each row, negative if unknown.
    sample_weight : array-like or None
        The weights of the rows themselves.
    """
    if class_weight is None:
        return sample_weight
    weights = check_sample_weight(sample_weight, labels.size)
    known = labels >= 0
    totals = np.bincount(labels[known], weights[known], classes.size).astype(np.float64)
    by_class = class_factors(class_weight, classes, totals)
    return np.where(known, weights * by_class[np.maximum(labels, 0)], weights)


def class_factors(class_weight: Any, classes: npt.NDArray[Any], totals: FloatArray) -> FloatArray:
    """Return the weights of the classes, as scikit-learn defines them.

    >>> class_factors("balanced", np.array([0, 1]), np.array([30.0, 10.0])).round(2).tolist()
    [0.67, 2.0]
    """
    if class_weight is None:
        return np.ones(classes.size)
    if isinstance(class_weight, str) and class_weight == "balanced":
        return np.asarray(totals.sum() / (classes.size * np.maximum(totals, 1e-300)))
    check_class_weight(class_weight)
    known = classes.tolist()
    unknown = [label for label in class_weight if label not in known]
    if unknown:
        raise ValueError(f"class_weight names {unknown[0]!r}, which is not a class: {known}")
    found = np.array([float(class_weight.get(label, 1.0)) for label in known])
    if not ((found > 0) & np.isfinite(found)).all():
        raise ValueError(f"class_weight must hold positive numbers, got {class_weight!r}")
    return found


def check_class_weight(class_weight: Any) -> None:
    """Reject an invalid class_weight."""
    balanced = isinstance(class_weight, str) and class_weight == "balanced"
    if class_weight is not None and not balanced and not isinstance(class_weight, Mapping):
        raise ValueError(
            f"class_weight={class_weight!r} is unknown; expected None, 'balanced' or a dict from "
            "class to weight"
        )
