"""The state of training, as plain arrays, which are checked if they come from a file."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from exchangeable.devices.networks.batches import IntArray

Parts = dict[str, Any]
"""Arrays by name, of NumPy or on a device."""
WORD = 64
N_WORDS = 6
"""Of a generator: two numbers of two words each, and what is left of the latest."""


def leaves(tree: Any, name: str) -> Parts:
    """Return the arrays of a tree, by the name of the tree and their numbers."""
    return {f"{name}.{number}": leaf for number, leaf in enumerate(jax.tree.leaves(tree))}


def generator_words(rng: np.random.Generator) -> Any:
    """Return the state of a generator; nothing of one that is not NumPy's usual."""
    state: Any = rng.bit_generator.state
    if state["bit_generator"] != "PCG64":
        return np.empty(0, dtype=np.uint64)
    low = (1 << WORD) - 1
    words = [
        part
        for number in (state["state"]["state"], state["state"]["inc"])
        for part in (number >> WORD, number & low)
    ]
    return np.array([*words, state["has_uint32"], state["uinteger"]], dtype=np.uint64)


def misfit(told: str) -> ValueError:
    """Return the error about a state that does not belong to this fit."""
    return ValueError(f"the checkpoint holds a training {told}; remove it")


class Kept:
    """A state of training from a file, read part by part.

    Invalid parts raise a `ValueError`.

    Parameters
    ----------
    parts : mapping from name to array
        The state.
    """

    def __init__(self, parts: Mapping[str, Any]) -> None:
        self.parts = parts

    def tree(self, name: str, like: Any) -> Any:
        """Return the tree whose arrays have the shapes of another one, with finite numbers."""
        known, shape = jax.tree.flatten(like)
        return jax.tree.unflatten(
            shape, [self.leaf(f"{name}.{number}", leaf) for number, leaf in enumerate(known)]
        )

    def leaf(self, name: str, like: Any) -> Any:
        """Return an array of the shape of another, with numbers where that has some."""
        like = np.asarray(like)
        found = self._array(name, np.float32, like.shape)
        real = np.isfinite(like)
        if not np.isfinite(found[real]).all() or not np.array_equal(found[~real], like[~real]):
            raise misfit(f"whose {name} holds what is not a number")
        return found

    def numbers(self, name: str, count: int) -> list[float]:
        """Return some real numbers, of which none may be NaN or +inf."""
        found = self._array(name, np.float64, (count,))
        if not (found < np.inf).all():
            raise misfit(f"whose {name} are {found.tolist()}")
        return [float(each) for each in found]

    def counts(self, name: str, limits: tuple[int, ...]) -> list[int]:
        """Return some counts, each at least 0 and at most its limit."""
        found = self._array(name, np.int64, (len(limits),))
        if (found < 0).any() or (found > np.array(limits)).any():
            raise misfit(f"whose {name} are {found.tolist()}, beyond {list(limits)}")
        return [int(each) for each in found]

    def rows(self, name: str, n_rows: int, most: int) -> IntArray:
        """Return numbers of rows, at most so many."""
        array = self.parts.get(name)
        size = 0 if array is None else min(array.size, most)
        found = self._array(name, np.int64, (size,))
        if found.size and (found.min() < 0 or found.max() >= n_rows):
            raise misfit(f"whose {name} names rows beyond the {n_rows:,} there are")
        return np.asarray(found)

    def set_generator(self, name: str, rng: np.random.Generator) -> None:
        """Restore the state of a generator."""
        words = [int(word) for word in self._array(name, np.uint64, (N_WORDS,))]
        if not words[3] % 2 or words[4] > 1 or words[5] >> 32:
            raise misfit(f"whose {name} is not the state of a generator")
        state: Any = rng.bit_generator.state
        state["state"] = {
            "state": words[0] << WORD | words[1],
            "inc": words[2] << WORD | words[3],
        }
        state["has_uint32"], state["uinteger"] = words[4:]
        rng.bit_generator.state = state

    def _array(self, name: str, dtype: Any, shape: tuple[int, ...]) -> Any:
        array = self.parts.get(name)
        if array is None:
            raise misfit(f"without {name}")
        if array.dtype != dtype or array.shape != shape:
            raise misfit(
                f"whose {name} is {array.dtype} of shape {array.shape}, expected "
                f"{np.dtype(dtype)} of shape {shape}"
            )
        return array
