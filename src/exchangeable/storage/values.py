"""Plain values as JSON and back: what JSON lacks is encoded as an object with one key.

Numbers that JSON lacks, tuples, NumPy scalars and arrays, mappings, paths, statistics and
estimators are restored as they were. Anything else is rejected when saving.
"""

import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.storage.archive import KINDS, ModelFileError
from exchangeable.storage.limits import STEPS_PER_ENTRY, Budget

NONFINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
MOST_DIMENSIONS = 8


class Writer:
    """Encodes values, collecting arrays; values that could not be restored are rejected."""

    def __init__(self) -> None:
        self.budget = Budget()
        self.arrays: dict[str, npt.NDArray[Any]] = {}
        self.special: dict[str, Callable[[Any, str], Any | None]] = {}

    def store(self, array: npt.NDArray[Any], name: str) -> dict[str, str]:
        """Store an array under a name, and return a reference to it."""
        free, number = name, 1
        while free in self.arrays:
            number += 1
            free = f"{name}.{number}"
        self.arrays[free] = array
        return {"array": free}

    def encode(self, value: Any, name: str) -> Any:
        """Return a value as JSON; `name` is used in errors."""
        if value is None or isinstance(value, bool | str):
            return str(value) if isinstance(value, np.str_) else value
        if isinstance(value, np.ndarray):
            return self._array(value, name)
        if isinstance(value, np.generic):
            return self._scalar(value, name)
        if isinstance(value, int):
            return int(value)
        if isinstance(value, float):
            return value if math.isfinite(value) else {"number": str(value)}
        if isinstance(value, list):
            return [self.encode(entry, name) for entry in value]
        if isinstance(value, tuple) and type(value) is tuple:
            return {"tuple": [self.encode(entry, name) for entry in value]}
        if isinstance(value, Mapping):
            pairs = [[self.encode(k, name), self.encode(v, name)] for k, v in value.items()]
            return {"mapping": pairs}
        if isinstance(value, PurePath):
            return {"path": os.fspath(value)}
        if isinstance(value, range):
            return [int(entry) for entry in value]
        for key, encode in self.special.items():
            found = encode(value, name)
            if found is not None:
                return {key: found}
        raise TypeError(
            f"{name} is {value!r} ({type(value).__name__}), which a model file cannot hold; it "
            "holds numbers, text, lists, tuples, dicts and arrays of them"
        )

    def _scalar(self, value: np.generic, name: str) -> Any:
        if value.dtype.kind not in KINDS:
            return self.encode(value.item(), name)
        return {"scalar": self.encode(value.item(), name), "dtype": value.dtype.name}

    def _array(self, value: npt.NDArray[Any], name: str) -> Any:
        if value.dtype.kind in KINDS:
            return self.store(value, _tidy(name))
        if value.dtype.kind not in "OU":
            raise TypeError(f"{name} is an array of {value.dtype}, which a model file cannot hold")
        entries = [self.encode(entry, name) for entry in value.ravel().tolist()]
        kind = "object" if value.dtype.kind == "O" else f"U{value.dtype.itemsize // 4}"
        return {"objects": entries, "shape": list(value.shape), "dtype": kind}


class Reader:
    """Decodes values, looking up arrays by name.

    Parameters
    ----------
    arrays : mapping from name to array
        The arrays of the file.
    budget : Budget
        The remaining work budget of the file, which may refer to the same array many times.
    """

    def __init__(self, arrays: Mapping[str, npt.NDArray[Any]], budget: Budget) -> None:
        self._arrays = arrays
        self._texts: dict[str, str] = {}
        self.budget = budget
        self.special: dict[str, Callable[[Any], Any]] = {}

    def array(self, reference: Any, name: str) -> npt.NDArray[Any]:
        """Return the array that a reference names."""
        if not (isinstance(reference, dict) and isinstance(reference.get("array"), str)):
            raise ModelFileError(f"{name} should refer to an array, but is {short(reference)}")
        key = reference["array"]
        if key not in self._arrays:
            raise ModelFileError(f"{name} refers to the array {key!r}, which the file lacks")
        self.budget.spend(STEPS_PER_ENTRY * self._arrays[key].size, name)
        return self._arrays[key]

    def decode(self, value: Any, name: str) -> Any:
        """Return the value encoded by JSON, which may be modified.

        Lists are converted in place, entry by entry, and equal texts are shared: a wide table has
        many of both.
        """
        if isinstance(value, str):
            return self._texts.setdefault(value, value)
        if not isinstance(value, dict | list):
            return value
        if isinstance(value, list):
            for position, entry in enumerate(value):
                value[position] = self.decode(entry, name)
            return value
        if "array" in value:
            return self.array(value, name)
        if "scalar" in value:
            return self._scalar(value, name)
        if "objects" in value:
            return self._objects(value, name)
        if len(value) == 1:
            [(key, inner)] = value.items()
            if key in self.special:
                return self.special[key](inner)
            if key == "number" and isinstance(inner, str) and inner in NONFINITE:
                return NONFINITE[inner]
            if key == "path" and isinstance(inner, str):
                return Path(inner)
            if key == "tuple" and isinstance(inner, list):
                return tuple(self.decode(inner, name))
            if key == "mapping" and isinstance(inner, list):
                return self._mapping(inner, name)
        raise ModelFileError(f"{name} is {short(value)}, which stands for nothing")

    def _mapping(self, pairs: list[Any], name: str) -> dict[Any, Any]:
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
            raise ModelFileError(f"{name} is a mapping that is not made of pairs")
        try:
            return {self.decode(k, name): self.decode(v, name) for k, v in pairs}
        except TypeError:
            raise ModelFileError(f"{name} is a mapping with a key that cannot be one") from None

    def _scalar(self, value: dict[str, Any], name: str) -> Any:
        try:
            dtype = np.dtype(str(value["dtype"]))
            number = self.decode(value["scalar"], name)
            if dtype.kind not in KINDS or not isinstance(number, bool | int | float):
                raise ValueError("not a number")
            return dtype.type(number)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ModelFileError(f"{name} is {short(value)}: {error}") from None

    def _objects(self, value: dict[str, Any], name: str) -> npt.NDArray[Any]:
        entries, shape, kind = value["objects"], value.get("shape"), value.get("dtype")
        if (
            not isinstance(entries, list)
            or not isinstance(shape, list)
            or len(shape) > MOST_DIMENSIONS
            or not all(type(n) is int and 0 <= n <= len(entries) for n in shape)
            or math.prod(shape) != len(entries)
        ):
            raise ModelFileError(f"{name} is an array whose shape {shape!r} does not fit it")
        plain = self.decode(entries, name)
        if not all(entry is None or isinstance(entry, bool | int | float | str) for entry in plain):
            raise ModelFileError(f"{name} is an array that holds other things than labels")
        array = np.empty(len(plain), dtype=object)
        array[:] = plain
        if kind == "object":
            return array.reshape(shape)
        if isinstance(kind, str) and kind[:1] == "U" and all(isinstance(e, str) for e in plain):
            longest = max((len(entry) for entry in plain), default=0)
            if kind[1:].isdecimal() and len(kind) < 8 and longest <= int(kind[1:]) <= longest + 64:
                return array.astype(f"<{kind}").reshape(shape)
        raise ModelFileError(f"{name} is an array of unknown type {kind!r}")


def _tidy(name: str) -> str:
    """Return a name from a file."""
    return "".join(c if c in "0123456789abcdefghijklmnopqrstuvwxyz_." else "_" for c in name)[:150]


def short(value: Any) -> str:
    """Return a value as text of at most 80 characters."""
    text = repr(value)
    return text if len(text) < 80 else text[:77] + "..."
