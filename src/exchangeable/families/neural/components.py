"""What a decoder's outputs stand for: the contract of components, and independent variables."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.devices.networks.head import LARGEST, Head
from exchangeable.families.contract import Model
from exchangeable.families.trees.model import TreeModel


class Component(ABC):
    """How the outputs of a decoder become components.

    Attributes
    ----------
    head : Head
        Their shape.
    bias : array of shape (n_groups, n_outputs)
        The outputs to begin with.
    constants : dict of arrays
        What else scores depend on.
    most_rows : int
        The largest batch, where rows have holes.
    """

    head: Head
    bias: FloatArray
    constants: dict[str, Any]
    most_rows: int = 1 << 30

    @abstractmethod
    def model(self, outputs: FloatArray) -> Model:
        """Return the components that outputs of shape (n_components, n_outputs) stand for."""


class Independent(Component):
    """Variables that are independent in each component; outputs are their log-odds."""

    def __init__(self, means: FloatArray, n_columns: int, holes: bool) -> None:
        self.n_variables = means.size
        self.head = Head("odds", n_columns, holes)
        self.bias = odds_of(means, n_columns)[None]
        self.constants = {"real": (np.arange(n_columns) < means.size).astype(np.float32)}

    def model(self, outputs: FloatArray) -> Model:
        """Return trees without edges."""
        slope = np.clip(outputs[:, : self.n_variables].T, -LARGEST, LARGEST)
        return TreeModel.make(-np.logaddexp(0.0, slope).sum(axis=0), np.ascontiguousarray(slope))


def odds_of(means: FloatArray, n_columns: int) -> FloatArray:
    """Return log-odds, with zeros after them for columns of nothing."""
    return np.pad(np.log(means) - np.log1p(-means), (0, n_columns - means.size))
