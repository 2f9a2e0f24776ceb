"""The data behind a page's live panel: parameters, columns, and the families' scripts."""

import base64
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from exchangeable.estimators.base import MixtureEstimator
from exchangeable.families.page import OnPage
from exchangeable.queries import distributions, information

MOST_STEPS = 2e7
"""Number of steps beyond which answers are no longer instant: about half a second."""
MOST_BYTES = 32 << 20
"""Maximum number of parameters on a page."""
TAIL = 0.005
"""A slider leaves out this share of the measurements at either end; a field accepts all."""
SLOW = "An answer of this model takes more steps than a page can make at once"
LARGE = "The parameters of this model are too large for a page"
FOREIGN = "The answers of this model are computed in Python alone"


class Live(NamedTuple):
    """What a page contains of a model, with the scripts it needs; or why there is no panel."""

    data: dict[str, Any]
    scripts: list[str]


def live_panel(model: MixtureEstimator) -> Live:
    """Return the data for the live panel, or the reason why the page leaves it out."""
    found = model._fitted().on_page()
    if found is None:
        return Live({"leftOut": FOREIGN}, [])
    if found.steps + _gain_steps(model, found.normals) > MOST_STEPS:
        return Live({"leftOut": SLOW}, [])
    if _size(found) > MOST_BYTES:
        return Live({"leftOut": LARGE}, [])
    packages = dict.fromkeys(_packages(found))
    scripts = [(files(name) / "page.js").read_text(encoding="utf-8") for name in packages]
    return Live({"model": packed(found), **_columns(model)}, scripts)


def _gain_steps(model: MixtureEstimator, normals: int) -> float:
    """Return the data for information gains of measurements."""
    schema, k = model._schema(), normals * model._fitted().n_classes
    kinds = [] if schema is None else [column.kind for column in schema.columns]
    return float(kinds.count("continuous") * k * (k * information.NODES + distributions.NODES))


def _columns(model: MixtureEstimator) -> dict[str, Any]:
    """Return the columns and the nodes of quadratures, or nothing if all columns are binary."""
    schema = model._schema()
    if schema is None:
        return {}
    usual: Any = model.marginals()
    columns = []
    for column in schema.columns:
        told: dict[str, Any] = {"kind": column.kind, "levels": list(map(str, column.levels))}
        if column.kind == "continuous":
            answer = usual[column.name]
            told["transform"] = list(column.transform)
            told["ends"] = [answer.quantile(TAIL), answer.quantile(1 - TAIL)]
        columns.append(told)
    nodes, weights = np.polynomial.hermite_e.hermegauss(distributions.NODES)
    gain_nodes, gain_weights = np.polynomial.hermite_e.hermegauss(information.NODES)
    quadrature = {
        "nodes": nodes,
        "nodeWeights": weights / weights.sum(),
        "gainNodes": gain_nodes,
        "gainWeights": gain_weights / gain_weights.sum(),
    }
    return {"columns": columns, "nodes": packed(quadrature)}


def _parts(value: Any) -> list[Any]:
    """Return the content of a value of `OnPage.data`, one level down."""
    if isinstance(value, OnPage):
        return [value.data]
    return list(value.values()) if isinstance(value, dict) else value


def _packages(value: Any) -> list[str]:
    """Return the packages whose scripts are needed."""
    if isinstance(value, np.ndarray | str | int | float):
        return []
    own = [value.package] if isinstance(value, OnPage) else []
    return own + [name for part in _parts(value) for name in _packages(part)]


def _size(value: Any) -> int:
    """Return the total size of all arrays in bytes."""
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    return 0 if isinstance(value, str | int | float) else sum(map(_size, _parts(value)))


def packed(value: Any) -> Any:
    """Convert to what JSON can represent: arrays become text, exact to the last bit.

    >>> packed({"q": np.array([0.5]), "k": 2})
    {'q': {'packed': 'f8', 'bytes': 'AAAAAAAA4D8='}, 'k': 2}
    """
    if isinstance(value, np.ndarray):
        return _packed_array(value)
    if isinstance(value, OnPage):
        return {"evaluator": value.evaluator, "data": packed(value.data)}
    if isinstance(value, dict):
        return {key: packed(inner) for key, inner in value.items()}
    return [packed(inner) for inner in value] if isinstance(value, list) else value


def _packed_array(array: npt.NDArray[Any]) -> dict[str, str]:
    kind = "f8" if array.dtype.kind == "f" else "i4"
    little = np.ascontiguousarray(array, dtype=f"<{kind}")
    return {"packed": kind, "bytes": base64.b64encode(little.tobytes()).decode("ascii")}
