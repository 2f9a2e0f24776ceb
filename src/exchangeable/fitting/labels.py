"""What labels tell: which classes there are, the rows of each, and how probable each is."""

from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, as_numbers, check_sample_weight, unique_labels
from exchangeable.data.groups import Group

__all__ = ["class_groups", "log_prior", "unique_labels"]


def class_groups(
    y: npt.NDArray[Any], classes: npt.NDArray[Any], sample_weight: npt.ArrayLike | None
) -> list[Group]:
    """Return the rows of each class, with their weights."""
    small = np.uint16 if classes.size < 1 << 16 else np.int64  # which sort by counting
    number = np.searchsorted(classes, y).astype(small)
    order = np.argsort(number, kind="stable")
    cuts = np.cumsum(np.bincount(number, minlength=classes.size))[:-1]
    members = np.split(order, cuts)
    if sample_weight is None:
        return [Group(rows) for rows in members]
    weight = check_sample_weight(sample_weight, y.size)
    return [Group(rows, weight[rows]) for rows in members]


def log_prior(
    totals: FloatArray, fit_prior: bool, class_prior: npt.ArrayLike | None = None
) -> FloatArray:
    """Return the log-probability of each class: as given, its share of the weight, or equal."""
    if class_prior is not None:
        prior = as_numbers(class_prior, "class_prior").astype(np.float64)
        if prior.shape != totals.shape:
            raise ValueError(
                f"class_prior has shape {prior.shape}, expected {totals.shape}, one a class"
            )
        if not ((prior >= 0).all() and np.isclose(prior.sum(), 1.0)):
            raise ValueError(f"class_prior must hold probabilities that add up to 1, got {prior}")
    elif fit_prior and totals.sum() > 0:
        prior = totals / totals.sum()
    else:
        prior = np.full(totals.size, 1 / totals.size)
    with np.errstate(divide="ignore"):
        return np.log(prior)
