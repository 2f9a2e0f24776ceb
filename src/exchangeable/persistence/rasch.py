"""Items of Rasch models in model files: their parameters, and the scores of the persons."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.estimators.mixture import ExchangeableMixture
from exchangeable.estimators.rasch import RaschModel
from exchangeable.families.items import Answered
from exchangeable.rasch.answers import MOST_ANSWERS
from exchangeable.rasch.parameters import ItemParameters
from exchangeable.storage.archive import ModelFileError
from exchangeable.storage.checks import needed, numbers
from exchangeable.storage.values import Reader, Writer

OWN = ("item_parameters_", "_answered", "_in_mixture")
"""Attributes of a fitted model that are not plain data."""
FARTHEST, HIGHEST = 1e3, 1e300
"""Upper bound for thresholds and other numbers."""
Array = npt.NDArray[Any]


def encode_items(model: RaschModel, writer: Writer, prefix: str) -> dict[str, Any]:
    """Return the items of a fitted model as JSON with references to arrays."""
    items = model.item_parameters_
    arrays: dict[str, Array] = {"highest": items.highest, "thresholds": items.thresholds}
    if items.covariance is not None:
        arrays["covariance"] = items.covariance
    if hasattr(model, "mixture_"):
        arrays["in_mixture"] = model._in_mixture
    for y, answered in enumerate(model._answered):
        for name, array in answered._asdict().items():
            arrays[f"{name}{y}"] = array
    stored = {key: writer.store(array, f"{prefix}items.{key}") for key, array in arrays.items()}
    return {"names": list(items.names), "arrays": stored}


def decode_items(model: RaschModel, value: Any, reader: Reader) -> None:
    """Store the items in a model, after checking everything."""
    names = value.get("names") if isinstance(value, dict) else None
    entries = value.get("arrays") if isinstance(value, dict) else None
    if not isinstance(names, list) or not isinstance(entries, dict):
        raise ModelFileError("is fitted, but lacks its items")
    if not names or not all(isinstance(name, str) for name in names):
        raise ModelFileError("has the name of an item that is not text")
    if len(set(names)) < len(names):
        raise ModelFileError("has two items of the same name")
    arrays = {key: reader.array(entry, key) for key, entry in entries.items()}
    items = _parameters(tuple(names), arrays)
    model.item_parameters_ = items
    weights = getattr(model, "weights_", None)
    if not isinstance(weights, np.ndarray) or weights.shape != (items.n_classes,):
        raise ModelFileError(f"has no sizes of its {items.n_classes} classes")
    numbers(weights, "weights_", weights.shape, low=0, high=1 + 1e-6)
    used = ~np.isnan(items.locations)
    model._answered = [
        _answered(arrays, y, items.highest[used[:, y]]) for y in range(items.n_classes)
    ]
    if hasattr(model, "mixture_") or items.n_classes > 1:
        _check_mixture(model, arrays)
    elif not model._answered[0].weights.sum() > 0:
        raise ModelFileError("has items that nobody answered")


def _parameters(names: tuple[str, ...], arrays: Mapping[str, Array]) -> ItemParameters:
    highest, thresholds = needed(arrays, ("highest", "thresholds"))
    if highest.dtype != np.int64 or highest.shape != (len(names),):
        raise ModelFileError(f"highest is {highest.dtype} of shape {highest.shape}")
    if highest.min() < 1 or highest.max() > MOST_ANSWERS:
        raise ModelFileError(f"highest holds {highest.min()}..{highest.max()}, which cannot be")
    n, k = int(highest.sum()), thresholds.shape[1] if thresholds.ndim == 2 else 0
    if k < 1:
        raise ModelFileError("thresholds are of no class")
    _known_numbers(thresholds, "thresholds", (n, k), FARTHEST)
    covariance = arrays.get("covariance")
    if covariance is not None:
        _known_numbers(covariance, "covariance", (k * n, k * n), HIGHEST)
    return ItemParameters(names, highest, thresholds, covariance)


def _known_numbers(array: Array, name: str, shape: tuple[int, ...], most: float) -> None:
    """Check numbers of which some may be unknown (NaN)."""
    known = array.dtype == np.float64 and array.shape == shape
    ends = [np.fmin.reduce(array, axis=None), np.fmax.reduce(array, axis=None)] if known else array
    checked = np.nan_to_num(ends, nan=0.0, posinf=np.inf, neginf=-np.inf) if known else array
    numbers(checked, name, checked.shape if known else shape, low=-most, high=most)


def _answered(arrays: Mapping[str, Array], y: int, highest: Array) -> Answered:
    """Return the scores of the persons in a class, sorted as in `Answered`."""
    wanted = [f"{name}{y}" for name in Answered._fields]
    patterns, begins, scores, weights = needed(arrays, wanted)
    if patterns.dtype != np.bool_ or patterns.ndim != 2 or patterns.shape[1] != highest.size:
        raise ModelFileError(f"patterns{y} is {patterns.dtype} of shape {patterns.shape}")
    if any(own.dtype != np.int64 or own.ndim != 1 for own in (begins, scores)):
        raise ModelFileError(f"begins{y} and scores{y} are not lists of whole numbers")
    if begins.size != len(patterns) + 1 or begins[0] != 0 or begins[-1] != scores.size:
        raise ModelFileError(f"begins{y} does not say where the scores of patterns begin")
    if (np.diff(begins) < 0).any():
        raise ModelFileError(f"begins{y} falls")
    most = np.repeat(patterns @ highest, np.diff(begins))
    if scores.size and not ((scores >= 0) & (scores <= most)).all():
        raise ModelFileError(f"scores{y} holds a score that is out of range")
    steps, first = np.diff(scores), np.zeros(max(scores.size - 1, 0), dtype=bool)
    first[begins[(begins > 0) & (begins < scores.size)] - 1] = True
    if ((steps <= 0) & ~first).any():
        raise ModelFileError(f"scores{y} do not rise")
    numbers(weights, f"weights{y}", scores.shape, low=0.0, high=HIGHEST)
    return Answered(patterns, begins, scores, weights)


def _check_mixture(model: RaschModel, arrays: Mapping[str, Array]) -> None:
    """Check that the mixture behind several classes is one of these items."""
    (used,) = needed(arrays, ("in_mixture",))
    items, inner = model.item_parameters_, getattr(model, "mixture_", None)
    if used.dtype != np.bool_ or used.shape != (len(items.names),):
        raise ModelFileError(f"in_mixture is {used.dtype} of shape {used.shape}")
    if not isinstance(inner, ExchangeableMixture) or not hasattr(inner, "_model"):
        raise ModelFileError("has several classes, but no mixture of them")
    scale = inner._fitted().item_scale()
    fits = scale is not None and np.array_equal(scale.highest, items.highest[used])
    if not fits or inner.weights_.shape != model.weights_.shape:
        raise ModelFileError("has a mixture that is not one of its items")
    model._in_mixture = used
