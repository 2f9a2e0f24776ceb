"""Statistics in files: those of the library, by their arguments."""

import math
from typing import Any

from exchangeable.statistics import (
    BlockCounts,
    CategoricalCounts,
    Count,
    Nested,
    Pooled,
    Statistic,
    Transitions,
)
from exchangeable.storage.archive import ModelFileError

MOST_WORK = 10**8


def encode_statistic(statistic: Any, name: str) -> dict[str, Any] | None:
    """Return what makes a statistic, or None for what is not one."""
    if not isinstance(statistic, Statistic):
        return None
    kind = type(statistic)
    arguments: dict[str, Any]
    if isinstance(statistic, Pooled) and kind is Pooled:
        arguments = {"n": statistic.n, "k": statistic.k, "tau": statistic.tau}
    elif isinstance(statistic, Nested) and kind is Nested:
        arguments = {
            "outer": encode_statistic(statistic.outer, name),
            "inner": [encode_statistic(inner, name) for inner in statistic.inner],
            "groups": [group.tolist() for group in statistic.groups],
        }
    elif isinstance(statistic, BlockCounts) and kind is BlockCounts:
        arguments = {"blocks": [block.tolist() for block in statistic.blocks]}
    elif kind is CategoricalCounts:
        arguments = {"n_variables": statistic.n_variables, "n_symbols": statistic.n_symbols}
    elif kind in (Count, Transitions):
        arguments = {"n_variables": statistic.n_variables}
    else:
        raise TypeError(
            f"{name} is {statistic!r}, which is made of Python functions; a model file holds data "
            "only, never code. Save the weights and the code that makes the statistic, or pickle it"
        )
    return {"class": kind.__name__, **arguments}


def decode_statistic(value: Any, n_values: int) -> Statistic:
    """Return the statistic with given arguments, of which `n_values` weights are in the file."""
    if not isinstance(value, dict):
        raise ModelFileError("statistic is not an object")
    kind = value.get("class")
    arguments = {key: entry for key, entry in value.items() if key != "class"}
    try:
        if kind == "Nested":
            return _nested(n_values, **arguments)
        if kind == "BlockCounts":
            return _block_counts(n_values, **arguments)
        if not all(type(entry) is int for entry in arguments.values()):
            raise ValueError("arguments must be whole numbers")
        if kind in ("Count", "Transitions"):
            return _by_length(Count if kind == "Count" else Transitions, n_values, **arguments)
        if kind == "CategoricalCounts":
            return _categorical(n_values, **arguments)
        if kind == "Pooled":
            return _pooled(n_values, **arguments)
    except (TypeError, ValueError, RecursionError) as error:
        raise ModelFileError(f"statistic {kind!r} does not make sense: {error}") from None
    raise ModelFileError(f"statistic {kind!r} is unknown here")


def _by_length(kind: type[Count] | type[Transitions], n_values: int, n_variables: int) -> Statistic:
    # Both have at least n/2 + 1 values, so that the weights in the file bound the work.
    if not 0 < n_variables <= 2 * n_values:
        raise ValueError(f"{n_variables} variables do not go with {n_values} weights")
    return kind(n_variables)


def _categorical(n_values: int, n_variables: int, n_symbols: int) -> CategoricalCounts:
    if not (0 < n_variables < n_values and 1 < n_symbols <= n_values):
        raise ValueError(f"{n_variables} variables do not go with {n_values} weights")
    if math.comb(n_variables + n_symbols - 1, n_symbols - 1) != n_values:
        raise ValueError(f"{n_values} weights are not one a value")
    return CategoricalCounts(n_variables, n_symbols)


def _pooled(n_values: int, n: int, k: int, tau: int) -> Pooled:
    if not (0 < k <= n and n * n * (abs(tau) + 2) <= MOST_WORK and (n // k) ** 2 < n_values):
        raise ValueError(f"n={n}, k={k}, tau={tau} do not go with {n_values} weights")
    return Pooled(n, k, tau)


def _block_counts(n_values: int, blocks: list[list[int]]) -> BlockCounts:
    if math.prod(len(block) + 1 for block in blocks) != n_values:
        raise ValueError(f"{n_values} weights are not one a value")
    return BlockCounts(blocks)


def _nested(
    n_values: int, outer: dict[str, Any], inner: list[Any], groups: list[list[int]]
) -> Nested:
    reading = decode_statistic(outer, n_values)
    return Nested(
        reading,  # type: ignore[arg-type]  # Nested itself refuses what is not a FiniteState
        [decode_statistic(entry, reading.n_symbols) for entry in inner],
        groups,
    )
