"""Blocks with statistics in model files."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.statistics import Statistic
from exchangeable.statistics.saved import decode_statistic, encode_statistic
from exchangeable.storage.archive import ModelFileError
from exchangeable.storage.checks import check_columns

Triple = tuple[IntArray, Statistic, FloatArray]
PREFIX = "rest_"
LONGEST = 1 << 20
"""Maximum number of characters that describe the statistics."""

__all__ = ["ModelFileError", "decode", "encode"]


def encode(
    blocks: Sequence[Triple], rest: Mapping[str, npt.NDArray[Any]], others: IntArray
) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays for a file."""
    kinds = [
        encode_statistic(statistic, f"block {b}") for b, (_, statistic, _) in enumerate(blocks)
    ]
    text = json.dumps(kinds).encode()
    arrays: dict[str, npt.NDArray[Any]] = {
        "statistics": np.frombuffer(text, dtype=np.uint8),
        "others": others,
        **{f"{PREFIX}{name}": array for name, array in rest.items()},
    }
    for b, (variables, _, log_q) in enumerate(blocks):
        arrays[f"variables_{b}"] = variables
        arrays[f"log_q_{b}"] = log_q
    return arrays


def decode(
    arrays: Mapping[str, npt.NDArray[Any]],
) -> tuple[list[Triple], dict[str, npt.NDArray[Any]], IntArray]:
    """Return blocks, the arrays of the rest and its variables, after checking everything."""
    kinds = _kinds(arrays)
    others = _numbers(arrays, "others")
    blocks: list[Triple] = []
    for b, kind in enumerate(kinds):
        variables, log_q = _numbers(arrays, f"variables_{b}"), _log_q(arrays, f"log_q_{b}")
        statistic = decode_statistic(kind, len(log_q))
        if statistic.n_values != len(log_q) or statistic.n_variables != variables.size:
            raise ModelFileError(f"block {b} does not go with its statistic")
        if statistic.n_symbols != 2:
            raise ModelFileError(f"block {b} has a statistic of variables that are not binary")
        blocks.append((variables, statistic, log_q))
    if len({log_q.shape[1] for _, _, log_q in blocks}) != 1:
        raise ModelFileError("blocks with statistics have different numbers of classes")
    every = np.sort(np.concatenate([others, *(variables for variables, _, _ in blocks)]))
    if (every != np.arange(every.size)).any() or (np.diff(others) <= 0).any():
        raise ModelFileError("the variables of the blocks are not each of them once")
    length = len(PREFIX)
    rest = {name[length:]: each for name, each in arrays.items() if name.startswith(PREFIX)}
    return blocks, rest, others


def _kinds(arrays: Mapping[str, npt.NDArray[Any]]) -> list[Any]:
    text = arrays.get("statistics")
    if text is None or text.dtype != np.uint8 or text.ndim != 1 or text.size > LONGEST:
        raise ModelFileError("does not say which statistics its blocks have")
    try:
        kinds = json.loads(text.tobytes())
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"statistics cannot be read: {error}") from None
    if not isinstance(kinds, list) or not kinds:
        raise ModelFileError("statistics are not a list")
    return kinds


def _numbers(arrays: Mapping[str, npt.NDArray[Any]], name: str) -> IntArray:
    numbers = arrays.get(name)
    if numbers is None or numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise ModelFileError(f"{name} are not numbers of variables")
    return np.ascontiguousarray(numbers, dtype=np.int64)


def _log_q(arrays: Mapping[str, npt.NDArray[Any]], name: str) -> FloatArray:
    log_q = arrays.get(name)
    if log_q is None or log_q.ndim != 2 or log_q.dtype.kind != "f" or not log_q.size:
        raise ModelFileError(f"{name} is not a table of numbers")
    if not (log_q <= 1e-9).all():
        raise ModelFileError(f"{name} holds what is not the logarithm of a probability")
    check_columns(log_q, np.zeros(1, dtype=np.int64), name)
    return np.ascontiguousarray(log_q, dtype=np.float64)
