"""Rows of a fitted mixture's columns, with their weights."""

from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, check_sample_weight
from exchangeable.data.examples import Examples, merge_equal_rows
from exchangeable.data.observed import Observed


def weighted_rows(
    model: Any, X: Any, sample_weight: npt.ArrayLike | None
) -> tuple[Examples, Observed, FloatArray]:
    """Return the distinct rows, all rows with positive weight, and their weights."""
    observed = model._observed(X)
    weight = check_sample_weight(sample_weight, observed.n_rows)
    counting = np.flatnonzero(weight > 0)
    observed, weight = observed.take(counting), weight[counting]
    return merge_equal_rows(observed, weight)[0], observed, weight


def column_names(model: Any) -> list[str]:
    """Return the names of the columns, x0, x1, … if they have none."""
    schema = model._schema()
    names = getattr(model, "feature_names_in_", None)
    if schema is not None and (names is None or schema.one_hot is not None):
        names = [column.name for column in schema.columns]
    known = range(model.n_features_in_) if names is None else names
    return [f"x{name}" if isinstance(name, int | np.integer) else str(name) for name in known]
