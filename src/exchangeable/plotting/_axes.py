"""Helpers of the displays: access to matplotlib, colours, checks and names."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from exchangeable.estimators.base import MixtureEstimator
from exchangeable.runtime.text import printable

MODEL, OTHER, DATA, QUIET = "#3f55c9", "#d56b2f", "#cfd6e4", "#7a8296"


def pyplot() -> Any:
    """Return matplotlib's pyplot, or an error that says how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError(
            "plots need matplotlib; install it with: pip install 'exchangeable[plot]'"
        ) from None
    return plt


def new_axes(ax: Any, **options: Any) -> Any:
    """Return the given axes, or those of a new figure."""
    return pyplot().subplots(layout="constrained", **options)[1] if ax is None else ax


def tidy(ax: Any) -> None:
    """Remove the upper and the right border."""
    ax.spines[["top", "right"]].set_visible(False)


def check_model(model: Any) -> None:
    """Reject anything but a fitted estimator of this library."""
    if not isinstance(model, MixtureEstimator):
        raise TypeError(
            "expected a fitted classifier, mixture or density of this library, got "
            f"{type(model).__name__}"
        )
    check_is_fitted(model, "_model")


def number_of(model: Any, target: Any) -> int:
    """Return the number of a class or component given by its label; 0 for None."""
    labels = model._labels()
    if target is None:
        return 0
    numbers = np.flatnonzero(labels == target)
    if not numbers.size:
        raise ValueError(f"target={target!r} is unknown; expected one of {labels.tolist()}")
    return int(numbers[0])


def drawn(text: str) -> str:
    r"""Return a text for matplotlib: not as a formula, control characters escaped.

    >>> drawn("$5 off\x07")
    '\\$5 off\\x07'
    """
    return printable(text).replace("$", r"\$")


def title_of(model: Any, y: int) -> str:
    """Return the title of a class or component, such as "class spam"."""
    label = model._labels()[y]
    return f"class {label}" if hasattr(model, "classes_") else f"component {label}"


def names_of(model: Any, names: Any) -> list[str]:
    """Return the names of the variables: given ones, those of the training set, or numbers."""
    known = getattr(model, "feature_names_in_", None) if names is None else names
    if known is None:
        return [f"x{j}" for j in range(model.n_features_in_)]
    if len(known) != model.n_features_in_:
        raise ValueError(
            f"names has {len(known)} entries, the model has {model.n_features_in_} variables; give "
            "one name for each"
        )
    return [str(name) for name in known]
