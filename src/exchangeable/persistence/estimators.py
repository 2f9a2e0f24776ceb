"""Estimators in model files: class, parameters, fitted attributes and the model inside."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from exchangeable.arrays import LARGEST
from exchangeable.baselines import ChowLiuTree, LatentTree, saved
from exchangeable.baselines.base import TreeEstimator
from exchangeable.classes.regression.design import Design
from exchangeable.data.columns.schema import Schema
from exchangeable.estimators.classifier import ExchangeableClassifier
from exchangeable.estimators.density import ExchangeableDensity
from exchangeable.estimators.imputer import ExchangeableImputer
from exchangeable.estimators.kinds import Kinds, schema_of
from exchangeable.estimators.mixture import ExchangeableMixture
from exchangeable.estimators.rasch import RaschModel
from exchangeable.evm import EVM
from exchangeable.families import REGISTRY
from exchangeable.families.contract import Model
from exchangeable.fitting.hybrid.settings import Hybrid
from exchangeable.fitting.trainings import Chosen, Generative
from exchangeable.persistence.parameters import decode_model, encode_model
from exchangeable.persistence.pipelines import decode_pipeline, encode_pipeline, is_pipeline
from exchangeable.persistence.rasch import OWN as ITEMS
from exchangeable.persistence.rasch import decode_items, encode_items
from exchangeable.persistence.transformers import (
    PIPELINE,
    decode_dtype,
    decode_step,
    encode_dtype,
    encode_step,
)
from exchangeable.queries.frames import CONFIG, OUTPUTS
from exchangeable.statistics import Statistic
from exchangeable.statistics.saved import (
    check_cost,
    decode_statistic,
    encode_statistic,
)
from exchangeable.storage.archive import ModelFileError
from exchangeable.storage.checks import CLOSE, numbers, probabilities
from exchangeable.storage.limits import Budget
from exchangeable.storage.values import Reader, Writer, short
from exchangeable.structure.blocks import Blocks

CLASSES: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        EVM,
        Blocks,
        ChowLiuTree,
        Chosen,
        Generative,
        Hybrid,
        ExchangeableClassifier,
        ExchangeableDensity,
        ExchangeableImputer,
        ExchangeableMixture,
        LatentTree,
        Kinds,
        RaschModel,
        *{type(spec.settings) for spec in REGISTRY.values() if spec.settings is not None},
    )
}
FITTED = re.compile(r"[a-z][a-z0-9_]*_")
MODEL, TREE = "_model", "_tree"
KEPT, FITS = "_kept", "_fits"
"""State of batches and searches, which files do not contain."""
NEEDED = {
    "ExchangeableClassifier": ("classes_", "class_count_", "class_log_prior_"),
    "ExchangeableDensity": ("weights_",),
    "ExchangeableMixture": ("weights_",),
}
"""Arrays that belong to a model, with one entry per class or component."""


def make_writer() -> Writer:
    """Return a writer that knows statistics and estimators."""
    writer = Writer()

    def statistic(value: Any, name: str) -> Any | None:
        encoded = encode_statistic(value, name)
        if encoded is not None:
            check_cost(encoded, writer.budget)
        return encoded

    writer.special["statistic"] = statistic

    def nested(value: Any, name: str) -> Any | None:
        known = type(value).__name__ in CLASSES
        return encode_estimator(value, writer, f"{name}.") if known else None

    writer.special["estimator"] = nested
    writer.special["transformer"] = lambda value, name: encode_step(value, writer, f"{name}.")
    writer.special["dtype"] = encode_dtype
    return writer


def encode_estimator(estimator: Any, writer: Writer, prefix: str = "") -> dict[str, Any]:
    """Return an estimator as JSON with references to arrays."""
    kind = type(estimator)
    if is_pipeline(estimator):
        return encode_pipeline(estimator, writer, CLASSES, encode_estimator)
    if CLASSES.get(kind.__name__) is not kind:
        raise TypeError(
            f"{kind.__name__} cannot be saved; save() takes {', '.join(CLASSES)} and Pipeline. "
            "Pickle or joblib keep other objects, but reading them runs what they contain"
        )
    if kind is EVM:
        check_is_fitted(estimator, "weights_")
    parameters = estimator.get_params(deep=False)
    seed = parameters.get("random_state")
    if isinstance(seed, np.random.Generator | np.random.RandomState):
        raise TypeError(
            f"random_state is a {type(seed).__name__}, whose position changes with every draw; "
            "call model.set_params(random_state=None), or give a number, before saving"
        )
    attributes = {}
    for name, value in vars(estimator).items():
        if name in parameters or name in (MODEL, TREE, KEPT, FITS, CONFIG, *ITEMS):
            continue
        if not FITTED.fullmatch(name):
            raise TypeError(f"the attribute {name} of {kind.__name__} has no place in a file")
        left_out = getattr(kind, "_measured", {}).get(name, ())
        if left_out:
            value = [{k: v for k, v in row.items() if k not in left_out} for row in value]
        attributes[name] = writer.encode(value, f"{prefix}{name}")
    encoded: dict[str, Any] = {
        "class": kind.__name__,
        "parameters": {
            name: writer.encode(value, f"{prefix}{name}") for name, value in parameters.items()
        },
        "attributes": attributes,
    }
    if hasattr(estimator, CONFIG):
        encoded["output"] = getattr(estimator, CONFIG).get("transform")
    if hasattr(estimator, MODEL):
        encoded["model"] = encode_model(estimator._model, writer, f"{prefix}model")
    if isinstance(estimator, RaschModel) and hasattr(estimator, ITEMS[0]):
        encoded["items"] = encode_items(estimator, writer, prefix)
    if hasattr(estimator, TREE):
        encoded["forest"] = {
            name: writer.store(array, f"{prefix}forest.{name}")
            for name, array in saved.encode(estimator._tree).items()
        }
    return encoded


def decode_estimator(
    value: Any, arrays: Mapping[str, npt.NDArray[Any]], budget: Budget | None = None
) -> Any:
    """Return the estimator encoded by JSON and arrays, after checking everything."""
    named = value.get("class") if isinstance(value, dict) else None
    if named == PIPELINE:
        return _pipeline(value, arrays)
    if not isinstance(named, str) or named not in CLASSES:
        raise ModelFileError(f"holds {short(named)}, which is not an estimator of this library")
    kind = CLASSES[named]
    reader = Reader(arrays, budget or Budget())
    reader.special["estimator"] = lambda inner: decode_estimator(inner, arrays, reader.budget)
    weights = _n_weights(value, reader) if kind is EVM else None
    reader.special["statistic"] = lambda inner: decode_statistic(inner, weights, reader.budget)
    parameters = _entries(value, "parameters", reader)
    unknown = sorted(set(parameters) - set(kind._get_param_names()))
    if unknown:
        raise ModelFileError(
            f"has the parameter {unknown[0]!r}, which {kind.__name__} does not have; it was "
            "written by another version: load it with that one, or fit and save the model again"
        )
    if parameters.get("checkpoint") is not None:
        parameters["checkpoint"] = None  # a file must not determine where a later fit writes
    try:
        estimator = kind(**parameters)
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"has parameters that cannot be used: {error}") from None
    attributes = _entries(value, "attributes", reader)
    for name, attribute in attributes.items():
        if not FITTED.fullmatch(name) or hasattr(kind, name):
            raise ModelFileError(f"has the attribute {name!r}, which is not one of a fitted model")
        setattr(estimator, name, attribute)
    if value.get("output") is not None:
        if value["output"] not in OUTPUTS:
            raise ModelFileError(f"asks for output as {short(value['output'])}")
        setattr(estimator, CONFIG, {"transform": value["output"]})
    if "model" in value:
        if kind.__name__ not in NEEDED:
            raise ModelFileError(f"has a model inside, but {kind.__name__} has none")
        estimator._model = decode_model(value["model"], reader, "model")
    elif any(name in attributes for name in NEEDED.get(kind.__name__, ())):
        raise ModelFileError("is fitted, but lacks the model inside")
    if isinstance(estimator, RaschModel) and attributes:
        decode_items(estimator, value.get("items"), reader)
        _check_names(estimator, len(estimator.item_parameters_.names))
    if issubclass(kind, TreeEstimator):
        _add_tree(estimator, value.get("forest"), attributes, reader)
    _check(estimator)
    return estimator


def _pipeline(value: dict[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> Any:
    """Return a pipeline; all its steps share one work budget."""
    budget = Budget()

    def step(inner: Any, name: str) -> Any:
        named = inner.get("class") if isinstance(inner, dict) else None
        if isinstance(named, str) and named in CLASSES:
            return decode_estimator(inner, arrays, budget)
        reader = Reader(arrays, budget)
        reader.special["dtype"] = decode_dtype
        reader.special["transformer"] = lambda nested: decode_step(nested, reader)
        return decode_step(inner, reader)

    return decode_pipeline(value, step)


def _add_tree(estimator: Any, tree: Any, attributes: dict[str, Any], reader: Reader) -> None:
    """Set the tree of an estimator that has one."""
    if tree is None and not attributes:
        return
    if not isinstance(tree, dict):
        raise ModelFileError("is fitted, but lacks its tree")
    estimator._tree = saved.decode({k: reader.array(entry, k) for k, entry in tree.items()})
    _check_names(estimator, estimator._tree.n_variables)


def _n_weights(value: dict[str, Any], reader: Reader) -> int:
    """Return the number of weights of an `EVM` in the file, 0 if it is not fitted."""
    attributes = value.get("attributes")
    if not isinstance(attributes, dict) or "weights_" not in attributes:
        return 0
    return int(reader.array(attributes["weights_"], "weights_").size)


def _entries(value: dict[str, Any], key: str, reader: Reader) -> dict[str, Any]:
    entries = value.get(key)
    if not isinstance(entries, dict):
        raise ModelFileError(f"has no {key}")
    return {name: reader.decode(entry, name) for name, entry in entries.items()}


def _check(estimator: Any) -> None:
    """Check that the parts of a fitted estimator are consistent."""
    kind = type(estimator).__name__
    model: Model | None = getattr(estimator, MODEL, None)
    if model is not None:
        for name in NEEDED[kind]:
            if not hasattr(estimator, name):
                raise ModelFileError(f"lacks {name}")
        _check_classes(estimator, model.n_classes)
        schema = _check_columns(estimator, model)
        grouped = schema is not None and schema.one_hot is not None
        _check_names(estimator, schema.n_inputs if grouped and schema else model.n_variables)
        _check_covariates(estimator, model.n_classes)
    elif kind == "EVM":
        if not isinstance(estimator.statistic, Statistic) or not hasattr(estimator, "weights_"):
            raise ModelFileError("has no statistic, or no weights")
        _check_weights(estimator.weights_, estimator.statistic.n_values)
        _check_names(estimator, estimator.statistic.n_variables)
    elif kind == "ExchangeableImputer" and hasattr(estimator, "model_"):
        inner = estimator.model_
        known = isinstance(inner, ExchangeableMixture | ExchangeableDensity)
        if not known or not hasattr(inner, MODEL):
            raise ModelFileError("has a model_ that cannot fill holes")
        _check_names(estimator, inner.n_features_in_)


def _check_columns(estimator: Any, model: Model) -> Schema | None:
    """Check that the schema of the columns matches the model."""
    try:
        schema = schema_of(estimator)
    except ValueError as error:
        raise ModelFileError(f"has columns that cannot be used: {error}") from None
    if schema is not None and schema.types != getattr(model, "types", None):
        raise ModelFileError("says of its columns what its model does not")
    return schema


def _check_covariates(estimator: Any, k: int) -> None:
    """Check that coefficients match the description of their covariates."""
    if not hasattr(estimator, "coefficients_") and not hasattr(estimator, "covariates_"):
        return
    try:
        terms = Design.from_plain(getattr(estimator, "covariates_", None)).terms
    except ValueError as error:
        raise ModelFileError(f"has covariates that cannot be used: {error}") from None
    coefficients = _array(getattr(estimator, "coefficients_", None))
    numbers(coefficients, "coefficients_", (k, len(terms)), low=-LARGEST, high=LARGEST)


def _check_classes(estimator: Any, k: int) -> None:
    highest = np.finfo(np.float64).max
    if hasattr(estimator, "weights_"):
        _check_weights(estimator.weights_, k)
        return
    classes = estimator.classes_
    if not isinstance(classes, np.ndarray) or classes.shape != (k,):
        raise ModelFileError(f"has {np.shape(classes)} class labels for {k} classes")
    if len(set(classes.tolist())) < k:
        raise ModelFileError("has two classes of the same name")
    numbers(_array(estimator.class_count_), "class_count_", (k,), low=0, high=highest)
    prior = _array(estimator.class_log_prior_)
    probabilities(numbers(prior, "class_log_prior_", (k,), low=-np.inf, high=1e-6), "priors")


def _check_weights(weights: Any, k: int) -> None:
    weights = numbers(_array(weights), "weights_", (k,), low=0, high=1 + 1e-6)
    if not abs(weights.sum() - 1.0) < CLOSE:
        raise ModelFileError(f"weights_ are probabilities that add up to {weights.sum()}")


def _check_names(estimator: Any, n: int) -> None:
    found = getattr(estimator, "n_features_in_", None)
    if type(found) is not int or found != n:
        raise ModelFileError(f"says that it has {found!r} variables, but its tables have {n}")
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return
    if not isinstance(names, np.ndarray) or names.shape != (n,) or names.dtype != object:
        raise ModelFileError(f"has names {np.shape(names)} for {n} variables")
    if not all(isinstance(name, str) for name in names):
        raise ModelFileError("has the name of a variable that is not text")
    if len(set(names.tolist())) < n:
        raise ModelFileError("has two variables of the same name")


def _array(value: Any) -> npt.NDArray[Any]:
    if not isinstance(value, np.ndarray):
        raise ModelFileError("has a list where an array is expected")
    return value
