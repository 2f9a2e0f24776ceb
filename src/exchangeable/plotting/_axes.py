"""What the displays share: matplotlib where there is one, colours, names."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from exchangeable.estimators.base import MixtureEstimator

MODEL, OTHER, DATA, QUIET = "#3f55c9", "#d56b2f", "#cfd6e4", "#7a8296"


def pyplot() -> Any:
    """Return matplotlib's pyplot, or say how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError(
            "pictures need matplotlib; install it with: pip install 'exchangeable[plot]'"
        ) from None
    return plt


def new_axes(ax: Any, **options: Any) -> Any:
    """Return the given axes, or those of a new figure."""
    return pyplot().subplots(layout="constrained", **options)[1] if ax is None else ax


def tidy(ax: Any) -> None:
    """Take away the lines that say nothing."""
    ax.spines[["top", "right"]].set_visible(False)


def check_model(model: Any) -> None:
    """Refuse what is not a fitted estimator of this library."""
    if not isinstance(model, MixtureEstimator):
        raise TypeError(
            f"expected a classifier, mixture or density of this library, got {type(model).__name__}"
        )
    check_is_fitted(model, "_model")


def number_of(model: Any, target: Any) -> int:
    """Return the number of a class or component; the first one for None."""
    labels = model._labels()
    if target is None:
        return 0
    found = np.flatnonzero(labels == target)
    if not found.size:
        raise ValueError(f"target={target!r} is not one of {labels.tolist()}")
    return int(found[0])


def title_of(model: Any, y: int) -> str:
    """Return what to call a class or component."""
    label = model._labels()[y]
    return f"class {label}" if hasattr(model, "classes_") else f"component {label}"


def names_of(model: Any, names: Any) -> list[str]:
    """Return the names of the variables."""
    found = getattr(model, "feature_names_in_", None) if names is None else names
    if found is None:
        return [f"x{j}" for j in range(model.n_features_in_)]
    if len(found) != model.n_features_in_:
        raise ValueError(f"{len(found)} names for {model.n_features_in_} variables")
    return [str(name) for name in found]
