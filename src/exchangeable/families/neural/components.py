"""From a decoder's outputs to components: the contract, and independent variables."""

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
        The shape of the outputs.
    bias : array of shape (n_groups, n_outputs)
        The initial outputs.
    constants : dict of arrays
        Other inputs of the scores.
    most_rows : int
        The maximum batch size for rows with missing entries.
    """

    head: Head
    bias: FloatArray
    constants: dict[str, Any]
    most_rows: int = 1 << 30

    @abstractmethod
    def model(self, outputs: FloatArray) -> Model:
        """Return the components that outputs of shape (n_components, n_outputs) represent."""


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
    """Return log-odds, padded by zeros for empty columns."""
    return np.pad(np.log(means) - np.log1p(-means), (0, n_columns - means.size))
