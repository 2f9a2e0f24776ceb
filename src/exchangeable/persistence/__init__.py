"""Model files: a zip with a JSON header and plain arrays, loaded without running any code."""

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import scipy
import sklearn

from exchangeable.persistence.estimators import decode_estimator, encode_estimator, make_writer
from exchangeable.statistics.saved import trusted
from exchangeable.storage import archive
from exchangeable.storage.archive import ModelFileError

__all__ = ["ModelFileError", "SavedModel", "load", "read_model", "save"]

FORMAT = "exchangeable model"
VERSION = 2
"""Version of the file format."""


@dataclass(frozen=True)
class SavedModel:
    """What a model file holds.

    Attributes
    ----------
    model : estimator
        The model.
    preprocessing : dict or None
        How tables are converted to rows of the model, as recorded by the command line.
    libraries : dict
        Versions of the libraries that wrote the file.
    """

    model: Any
    preprocessing: dict[str, Any] | None
    libraries: dict[str, str]


def save(
    model: Any, path: str | os.PathLike[str], *, preprocessing: dict[str, Any] | None = None
) -> None:
    """Save a model to a file, replacing the file atomically.

    Parameters
    ----------
    model : estimator
        Any estimator of this library, or a scikit-learn `Pipeline` whose other steps are plain
        data: vectorizers, encoders, scalers and the like. A statistic of your own is stored by its
        class and arguments; `load` must be told to trust it.
    path : path-like
        The file. By convention its name ends in ``.exch``.
    preprocessing : dict, optional
        Additional information to record, as plain JSON: how a table is converted to rows of the
        model.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from pathlib import Path
    >>> import exchangeable
    >>> X = np.random.default_rng(0).integers(0, 2, size=(200, 6))
    >>> model = exchangeable.ExchangeableClassifier().fit(X, X.sum(axis=1) % 2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "parity.exch")
    ...     exchangeable.save(model, path)
    ...     again = exchangeable.load(path)
    >>> bool((again.predict_proba(X) == model.predict_proba(X)).all())
    True
    """
    writer = make_writer()
    encoded = encode_estimator(model, writer)
    header = {
        "format": FORMAT,
        "version": VERSION,
        "libraries": {
            "exchangeable": _own_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
            "python": platform.python_version(),
        },
        "preprocessing": preprocessing,
        "estimator": encoded,
    }
    archive.write(path, header, writer.arrays)


def load(path: str | os.PathLike[str], *, statistics: Sequence[str] = ()) -> Any:
    """Load a model from a file written by `save`.

    Nothing in the file is ever executed or unpickled: it contains numbers and text, and all sizes
    and indices are checked before they are used.

    Parameters
    ----------
    path : path-like
        The file.
    statistics : sequence of str, optional
        Classes of your own statistics that the file may refer to, as ``"module:Class"``. They are
        imported and executed; a file that refers to any other is rejected.

    Returns
    -------
    estimator
        The model, identical to the saved one bit for bit.

    Raises
    ------
    ModelFileError
        If the file is not a valid model file. This is a `ValueError`.
    """
    with trusted(statistics):
        return read_model(path).model


def read_model(path: str | os.PathLike[str]) -> SavedModel:
    """Load a model with everything recorded with it; see `load`."""
    header, arrays = archive.read(path)
    with archive.refusing(path):
        _check_version(header)
        preprocessing = header.get("preprocessing")
        if not (preprocessing is None or isinstance(preprocessing, dict)):
            raise ModelFileError("has preprocessing that is not an object")
        model = decode_estimator(header.get("estimator"), arrays)
    libraries = header.get("libraries")
    known = libraries if isinstance(libraries, dict) else {}
    return SavedModel(model, preprocessing, {str(k): str(v) for k, v in known.items()})


def _own_version() -> str:
    """Return the version of this library, "not installed" for a bare source tree."""
    try:
        return version("exchangeable")
    except PackageNotFoundError:
        return "not installed"


def _check_version(header: dict[str, Any]) -> None:
    if header.get("format") != FORMAT or type(header.get("version")) is not int:
        raise ModelFileError("is not a model file of exchangeable")
    if header["version"] > VERSION:
        raise ModelFileError(
            f"has format version {header['version']}, but this library reads up to {VERSION}; "
            "upgrade exchangeable to read it"
        )
    if header["version"] < VERSION:
        raise ModelFileError(
            f"has format version {header['version']}, from before parameters were renamed; fit the "
            "model again"
        )
