"""What fitted models are made of, as arrays, and the checks that make arrays safe to compute with.

The kernels trust their input: an index out of range would read foreign memory, a cycle in a tree
would never end. So nothing that was read reaches them unchecked.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray
from exchangeable.engines.count_trees import CountForest
from exchangeable.engines.cpu import Tables
from exchangeable.models.blocks import BlockModel
from exchangeable.models.count_trees import CountTreeModel
from exchangeable.models.trees import TreeModel
from exchangeable.models.urns import UrnModel
from exchangeable.partitions import Partition, log_factorials
from exchangeable.persistence.archive import ModelFileError
from exchangeable.persistence.values import Reader, Writer

Model = BlockModel | UrnModel | TreeModel | CountTreeModel
KINDS = ("blocks", "urns", "trees", "count trees")
TREE_ARRAYS = ("base", "slope", "parent", "pair", "log_q")
COUNT_TREE_ARRAYS = ("labels", "bins", "parent", "log_q", "log_ratio")
CLOSE = 1e-6
"""How far probabilities may be from adding up to one."""


def encode_model(model: Any, writer: Writer, name: str) -> dict[str, Any]:
    """Return the parameters of a model as JSON with references to arrays."""
    if isinstance(model, TreeModel):
        arrays = {key: getattr(model, key) for key in TREE_ARRAYS}
        kind = "trees"
    elif isinstance(model, CountTreeModel):
        kind = "count trees"
        arrays = {
            "labels": _labels(model.partitions),
            "bins": np.concatenate([forest.bins for forest in model.forests]),
            "parent": np.concatenate([forest.parent for forest in model.forests]),
            "log_q": np.concatenate(model.log_q),
            "log_ratio": np.concatenate(model.log_ratio),
        }
    elif isinstance(model, UrnModel):
        kind = "urns"
        arrays = {
            "labels": _labels(model.partitions),
            "log_weights": model.log_weights,
            "log_q": np.concatenate(model.log_q),
        }
    elif isinstance(model, BlockModel):
        kind = "blocks"
        arrays = {
            "labels": _labels(model.partitions),
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
    if value["kind"] == "trees":
        return _trees({key: reader.array(value.get(key), key) for key in TREE_ARRAYS})
    if value["kind"] == "count trees":
        return _count_trees({key: reader.array(value.get(key), key) for key in COUNT_TREE_ARRAYS})
    partitions = _partitions(reader.array(value.get("labels"), "labels"))
    if value["kind"] == "urns":
        return _urns(
            partitions,
            reader.array(value.get("log_weights"), "log_weights"),
            reader.array(value.get("log_q"), "log_q"),
        )
    keys = ("histograms", "totals", "tables")
    return _blocks(partitions, *(reader.array(value.get(key), key) for key in keys))


def _labels(partitions: Sequence[Partition]) -> npt.NDArray[np.int32]:
    return np.stack([partition.labels for partition in partitions])


def _partitions(labels: npt.NDArray[Any]) -> list[Partition]:
    """Return the partition of each class, having checked that each is one."""
    if labels.ndim != 2 or not labels.size or labels.dtype != np.int32:
        raise ModelFileError(f"labels are {labels.dtype} of shape {labels.shape}")
    if labels.min() < 0 or labels.max() >= labels.shape[1]:
        raise ModelFileError("labels hold a block number that is out of range")
    partitions = [Partition.from_labels(row) for row in labels]
    if any((partition.sizes == 0).any() for partition in partitions):
        raise ModelFileError("labels leave a block without variables")
    return partitions


def numbers(
    array: npt.NDArray[Any], name: str, shape: tuple[int, ...], *, low: float, high: float
) -> FloatArray:
    """Return an array of float64 of the given shape, all between two bounds, none of them NaN."""
    if array.dtype != np.float64 or array.shape != shape:
        raise ModelFileError(f"{name} is {array.dtype} of shape {array.shape}, expected {shape}")
    if array.size and not (array.min() >= low and array.max() <= high):  # false for NaN too
        raise ModelFileError(f"{name} holds {array.min()}..{array.max()}, which cannot be")
    return array


def probabilities(log_values: FloatArray, name: str) -> None:
    """Check that log-probabilities add up to one."""
    total = float(np.exp(log_values).sum())
    if not abs(total - 1.0) < CLOSE:
        raise ModelFileError(f"{name} are probabilities that add up to {total}")


def _check_blocks(log_q: FloatArray, partitions: Sequence[Partition], name: str) -> None:
    """Check that each block's log-probabilities of counts add up to one."""
    begin = 0
    for partition in partitions:
        shares = np.exp(log_q[begin : begin + partition.table_size])
        totals = np.add.reduceat(shares, partition.starts)
        if not (np.abs(totals - 1.0) < CLOSE).all():
            raise ModelFileError(f"{name} hold probabilities that do not add up to one")
        begin += partition.table_size


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
    _check_blocks(values + ways, partitions, "tables")
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
    _check_blocks(log_q, partitions, "log_q")
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
    _check_forest(parent, n)
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


def _count_trees(arrays: dict[str, npt.NDArray[Any]]) -> CountTreeModel:
    partitions = _partitions(arrays["labels"])
    sizes = [partition.table_size for partition in partitions]
    n_blocks = [partition.n_blocks for partition in partitions]
    for name, size in (("bins", sum(sizes)), ("parent", sum(n_blocks))):
        if arrays[name].dtype != np.int64 or arrays[name].shape != (size,):
            raise ModelFileError(f"{name} is {arrays[name].dtype} of shape {arrays[name].shape}")
    log_q = numbers(arrays["log_q"], "log_q", (sum(sizes),), low=-np.inf, high=CLOSE)
    _check_blocks(log_q, partitions, "log_q")
    by_count = np.cumsum(sizes)[:-1]
    forests = []
    for partition, bins, parent in zip(
        partitions,
        np.split(arrays["bins"], by_count),
        np.split(arrays["parent"], np.cumsum(n_blocks)[:-1]),
        strict=True,
    ):
        _check_bins(bins, partition)
        _check_forest(parent[:, None], partition.n_blocks)
        forests.append(CountForest.of(partition, bins, parent))
    cells = [forest.n_cells for forest in forests]
    log_ratio = numbers(arrays["log_ratio"], "log_ratio", (sum(cells),), low=-700, high=700)
    model = CountTreeModel(
        forests, np.split(log_q, by_count), np.split(log_ratio, np.cumsum(cells)[:-1])
    )
    for forest, known, ratio in zip(forests, model.log_q, model.log_ratio, strict=True):
        margins = forest.bin_masses(np.exp(known))
        for child, _ in forest.edges():
            totals = np.exp(forest.table(ratio, child)) @ margins[child]
            if not (np.abs(totals - 1.0) < CLOSE).all():
                raise ModelFileError("log_ratio holds probabilities that do not add up to one")
    return model


def _check_bins(bins: npt.NDArray[Any], partition: Partition) -> None:
    """Check that each block's bins are stretches of counts, numbered from 0."""
    steps = np.diff(bins)
    steps[partition.starts[1:] - 1] = 0
    if (bins[partition.starts] != 0).any() or ((steps != 0) & (steps != 1)).any():
        raise ModelFileError("bins are not stretches of counts numbered from 0")


def _check_forest(parent: npt.NDArray[Any], n: int) -> None:
    """Check that following parents ends at a root from everywhere, by doubling the steps."""
    if not parent.size:
        return
    if parent.min() < 0 or parent.max() > n:
        raise ModelFileError("parent holds a variable that is out of range")
    above = np.concatenate([parent, np.full((1, parent.shape[1]), n)]).astype(np.int64)
    for _ in range(n.bit_length() + 1):
        above = np.take_along_axis(above, above, axis=0)
    if (above != n).any():
        raise ModelFileError("parent holds a cycle; a tree has none")
