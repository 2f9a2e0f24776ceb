"""Pipelines in model files: steps of scikit-learn whose fitted state is plain data.

Only the listed classes are written and restored, each with the listed attributes: nothing in a file
decides which class is imported or what is called.
"""

import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from exchangeable.storage.archive import ModelFileError
from exchangeable.storage.values import Reader, Writer, short

PIPELINE = "Pipeline"
COLUMNS = ("n_features_in_", "feature_names_in_")
WORDS = ("vocabulary_", "fixed_vocabulary_")
TRANSFORMERS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "Binarizer": ("sklearn.preprocessing", COLUMNS),
    "CountVectorizer": ("sklearn.feature_extraction.text", WORDS),
    "HashingVectorizer": ("sklearn.feature_extraction.text", ()),
    "OneHotEncoder": (
        "sklearn.preprocessing",
        (
            *COLUMNS,
            "categories_",
            "drop_idx_",
            "_drop_idx_after_grouping",
            "_infrequent_enabled",
            "_n_features_outs",
        ),
    ),
    "OrdinalEncoder": (
        "sklearn.preprocessing",
        (*COLUMNS, "categories_", "_infrequent_enabled", "_missing_indices"),
    ),
    "SimpleImputer": (
        "sklearn.impute",
        (*COLUMNS, "statistics_", "indicator_", "_fit_dtype", "_fill_dtype"),
    ),
    "StandardScaler": (
        "sklearn.preprocessing",
        (*COLUMNS, "mean_", "var_", "scale_", "n_samples_seen_"),
    ),
    "TfidfTransformer": ("sklearn.feature_extraction.text", (*COLUMNS, "idf_")),
    "TfidfVectorizer": ("sklearn.feature_extraction.text", (*WORDS, "_tfidf")),
    "VarianceThreshold": ("sklearn.feature_selection", (*COLUMNS, "variances_")),
}
"""The module of each class, and the fitted attributes that `transform` needs."""
NEEDLESS = ("_stop_words_id", "stop_words_", "_sklearn_output_config")
"""Attributes that need not be stored: memory addresses, and words that were left out."""
NOTHING = ("passthrough", None)
SAFE_QUANTIFIERS = 3
NESTED = re.compile(r"\)[*+?{]|\\[1-9]|\(\?[^:u]")
"""Repeated groups, references and look-arounds, which can make matching take for ever."""


def class_named(name: Any) -> Any:
    """Return a listed class, None for any other name."""
    if not isinstance(name, str) or name not in TRANSFORMERS:
        return None
    return getattr(import_module(TRANSFORMERS[name][0]), name)


def encode_step(step: Any, writer: Writer, prefix: str) -> dict[str, Any] | None:
    """Return a transformer as JSON with references to arrays, None if its class is not listed."""
    name = type(step).__name__
    if class_named(name) is not type(step):
        return None
    parameters, known = step.get_params(deep=False), TRANSFORMERS[name][1]
    attributes = {}
    for attribute, value in vars(step).items():
        if attribute in parameters or attribute in NEEDLESS:
            continue
        if attribute not in known:
            raise TypeError(f"its attribute {attribute} has no place in a file")
        attributes[attribute] = writer.encode(value, f"{prefix}{attribute}")
    encoded = {key: writer.encode(value, f"{prefix}{key}") for key, value in parameters.items()}
    _check_pattern(parameters.get("token_pattern"), TypeError)
    return {"class": name, "parameters": encoded, "attributes": attributes}


def decode_step(value: Any, reader: Reader) -> Any:
    """Return the transformer encoded by JSON and arrays, after checking everything."""
    name = value.get("class") if isinstance(value, dict) else None
    kind = class_named(name)
    if kind is None or name is None:
        raise ModelFileError(f"holds {short(name)}, which is not a step that is known here")
    parameters, attributes = value.get("parameters"), value.get("attributes")
    if not isinstance(parameters, dict) or not isinstance(attributes, dict):
        raise ModelFileError(f"has a {name} without parameters or attributes")
    unknown = sorted(set(parameters) - set(kind._get_param_names()))
    odd = sorted(set(attributes) - set(TRANSFORMERS[name][1]))
    if unknown or odd:
        raise ModelFileError(
            f"has {(unknown + odd)[0]!r}, which {name} has not here; was it written with another "
            "version of scikit-learn?"
        )
    given = {key: reader.decode(entry, key) for key, entry in parameters.items()}
    _check_pattern(given.get("token_pattern"), ModelFileError)
    step = kind(**given)
    for key, entry in attributes.items():
        setattr(step, key, reader.decode(entry, key))
    words = getattr(step, "vocabulary_", {})
    numbered = isinstance(words, dict) and all(type(number) is int for number in words.values())
    if not numbered or sorted(words.values()) != list(range(len(words))):
        raise ModelFileError(f"has a {name} whose words are not numbered 0, 1, …")
    if not all(isinstance(word, str) for word in words):
        raise ModelFileError(f"has a {name} with a word that is not text")
    return step


def _check_pattern(pattern: Any, error: type[Exception]) -> None:
    """Reject a token pattern whose matching could take for ever."""
    if pattern is None:
        return
    text = str(pattern)
    repeats = len(re.findall(r"(?<!\\)[*+{]", text))
    if NESTED.search(text) or repeats > SAFE_QUANTIFIERS or len(text) > 200:
        raise error(
            f"token_pattern={short(text)} repeats groups, or looks around, so that reading a text "
            "with it may take for ever; a file holds plain patterns only"
        )


def encode_dtype(value: Any, name: str) -> str | None:
    """Return the name of a numeric type, None for anything else."""
    generic = isinstance(value, type) and issubclass(value, np.generic)
    if not generic and not isinstance(value, np.dtype):
        return None
    found = np.dtype(value)
    if found.kind not in "biufO":
        return None
    return f"type {found.name}" if generic else found.name


def decode_dtype(value: Any) -> Any:
    """Return the numeric type with a name."""
    text = value.removeprefix("type ") if isinstance(value, str) else ""
    if not re.fullmatch(r"(bool|object|u?int(8|16|32|64)|float(16|32|64))", text):
        raise ModelFileError(f"names {short(value)}, which is not a type of numbers")
    found = np.dtype(text)
    return found.type if value.startswith("type ") else found
