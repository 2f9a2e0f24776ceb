"""What fitted models are made of, as arrays."""

from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.families.blocks.model import BlockModel
from exchangeable.families.common.tables import Tables
from exchangeable.families.count_trees.model import CountTreeModel
from exchangeable.families.count_trees.saved import count_tree_arrays, decode_count_trees
from exchangeable.families.hidden_trees.model import HiddenModel
from exchangeable.families.hidden_trees.saved import decode_hidden, encode_hidden
from exchangeable.families.joined import JoinedModel
from exchangeable.families.trees.model import TreeModel
from exchangeable.families.urns.family import DensityModel
from exchangeable.families.urns.model import UrnModel
from exchangeable.partitions import Partition, log_factorials
from exchangeable.storage.archive import ModelFileError
from exchangeable.storage.checks import (
    CLOSE,
    check_counts,
    check_forest,
    checked_partitions,
    numbers,
    probabilities,
    stacked_labels,
)
from exchangeable.storage.values import Reader, Writer

Model = BlockModel | UrnModel | TreeModel | CountTreeModel | HiddenModel | JoinedModel
KINDS = ("blocks", "urns", "trees", "count trees", "hidden trees", "joined")
TREE_ARRAYS = ("base", "slope", "parent", "pair", "log_q")


def encode_model(model: Any, writer: Writer, name: str) -> dict[str, Any]:
    """Return the parameters of a model as JSON with references to arrays."""
    if isinstance(model, HiddenModel):
        return encode_hidden(model, writer, name)
    if isinstance(model, JoinedModel):
        parts = [
            encode_model(part, writer, f"{name}.{number}")
            for number, part in enumerate(model.parts)
        ]
        return {"kind": "joined", "parts": parts}
    if isinstance(model, TreeModel):
        arrays = {key: getattr(model, key) for key in TREE_ARRAYS}
        kind = "trees"
    elif isinstance(model, CountTreeModel):
        kind = "count trees"
        arrays = count_tree_arrays(model)
    elif isinstance(model, UrnModel):
        kind = "urns"
        arrays = {
            "labels": stacked_labels(model.partitions),
            "log_weights": model.log_weights,
            "log_q": np.concatenate(model.log_q),
        }
    elif isinstance(model, BlockModel):
        kind = "blocks"
        arrays = {
            "labels": stacked_labels(model.partitions),
            "histograms": np.concatenate(model.histograms),
            "totals": model.totals,
            "tables": model.made_tables.values,
        }
    else:
        raise TypeError(f"a model of type {type(model).__name__} cannot be saved")
    references = {key: writer.store(array, f"{name}.{key}") for key, array in arrays.items()}
    return {"kind": kind, **references}


def decode_model(value: Any, reader: Reader, name: str) -> Model:
    """Return the model whose parameters are given."""
    if not isinstance(value, dict) or value.get("kind") not in KINDS:
        raise ModelFileError(f"{name} is not a model that is known here")
    if value["kind"] == "hidden trees":
        return decode_hidden(value, reader, name)
    if value["kind"] == "joined":
        return _joined(value.get("parts"), reader, name)
    if value["kind"] == "trees":
        return _trees({key: reader.array(value.get(key), key) for key in TREE_ARRAYS})
    if value["kind"] == "count trees":
        return decode_count_trees(value, reader)
    partitions = checked_partitions(reader.array(value.get("labels"), "labels"))
    if value["kind"] == "urns":
        return _urns(
            partitions,
            reader.array(value.get("log_weights"), "log_weights"),
            reader.array(value.get("log_q"), "log_q"),
        )
    keys = ("histograms", "totals", "tables")
    return _blocks(partitions, *(reader.array(value.get(key), key) for key in keys))


def _kind(value: Any) -> Any:
    return value.get("kind") if isinstance(value, dict) else None


def _joined(parts: Any, reader: Reader, name: str) -> JoinedModel:
    if not isinstance(parts, list) or not parts:
        raise ModelFileError(f"{name} has no parts")
    models: list[DensityModel] = []
    for part in parts:
        # Asked before it is decoded, so that nothing can be nested without end.
        model = None if _kind(part) == "joined" else decode_model(part, reader, name)
        if model is None or isinstance(model, BlockModel | JoinedModel):
            raise ModelFileError(f"{name} has a part that cannot be joined")
        models.append(model)
    if len({model.n_variables for model in models}) > 1:
        raise ModelFileError(f"{name} has parts of different variables")
    return JoinedModel(models)


def _blocks(
    partitions: list[Partition],
    histograms: npt.NDArray[Any],
    totals: npt.NDArray[Any],
    values: npt.NDArray[Any],
) -> BlockModel:
    size = sum(partition.table_size for partition in partitions)
    highest = np.finfo(np.float64).max
    histograms = numbers(histograms, "histograms", (size,), low=0, high=highest)
    totals = numbers(totals, "totals", (len(partitions),), low=0, high=highest)
    values = numbers(values, "tables", (size,), low=-np.inf, high=CLOSE)
    log_factorial = log_factorials(partitions[0].labels.size)
    ways = np.concatenate(
        [
            log_factorial[m] - log_factorial[: m + 1] - log_factorial[: m + 1][::-1]
            for partition in partitions
            for m in partition.sizes
        ]
    )
    check_counts(values + ways, partitions, "tables")
    tables = Tables.layout(partitions)
    tables.values[:] = values
    ends = np.cumsum([partition.table_size for partition in partitions])[:-1]
    return BlockModel(partitions, np.split(histograms, ends), totals, tables)


def _urns(
    partitions: list[Partition], log_weights: npt.NDArray[Any], log_q: npt.NDArray[Any]
) -> UrnModel:
    shape = (partitions[0].labels.size, len(partitions))
    log_weights = numbers(log_weights, "log_weights", shape, low=-700, high=700)
    size = sum(partition.table_size for partition in partitions)
    log_q = numbers(log_q, "log_q", (size,), low=-np.inf, high=CLOSE)
    check_counts(log_q, partitions, "log_q")
    ends = np.cumsum([partition.table_size for partition in partitions])[:-1]
    return UrnModel.make(partitions, log_weights, np.split(log_q, ends))


def _trees(arrays: dict[str, npt.NDArray[Any]]) -> TreeModel:
    slope = arrays["slope"]
    if slope.ndim != 2 or not slope.size:
        raise ModelFileError(f"slope has shape {slope.shape}")
    n, k = slope.shape
    bounded: dict[str, Any] = {"low": -1e300, "high": 1e300}
    parent, pair, log_q = arrays["parent"], arrays["pair"], arrays["log_q"]
    edges = (n, k) if parent.size else (0, 0)
    if parent.dtype != np.int32 or parent.shape != edges:
        raise ModelFileError(f"parent is {parent.dtype} of shape {parent.shape}")
    check_forest(parent, n)
    log_q = numbers(log_q, "log_q", (n + 1, k) if log_q.size else (0, 0), low=-np.inf, high=CLOSE)
    for column in log_q.T:
        probabilities(column, "log_q")
    return TreeModel.make(
        numbers(arrays["base"], "base", (k,), **bounded),
        numbers(slope, "slope", (n, k), **bounded),
        parent,
        numbers(pair, "pair", edges, **bounded),
        log_q,
    )
