"""The task of training: rows, components, and points with their shares."""

from typing import Any, NamedTuple

import numpy as np

from exchangeable.devices.networks.batches import FloatArray, Symbols
from exchangeable.devices.networks.engine import Settled
from exchangeable.devices.networks.head import FEW_POINTS, SHARE_CELLS, Head
from exchangeable.devices.networks.steps import SCAN


class Task(NamedTuple):
    """The task of training a decoder.

    Attributes
    ----------
    head : Head
        The shape of its components.
    constants : dict of arrays
        Other inputs of their scores.
    bias : array of shape (n_groups, n_outputs)
        The initial outputs.
    rows, valid : Symbols
        Rows to fit, and rows held out.
    points : array of shape (n_points, latent)
        Points of the unit cube that represent the latent space in a step.
    final : array of shape (n_components, latent)
        The points of the final components.
    """

    head: Head
    constants: dict[str, Any]
    bias: FloatArray
    rows: Symbols
    valid: Symbols
    points: Any
    final: Any


def shares_of(settled: Settled) -> Any:
    """Return shares that add up to one."""
    log_shares = np.asarray(settled.log_shares)
    masses = np.exp(log_shares - log_shares.max())
    return masses / masses.sum()


def even_shares(points: Any) -> tuple[Any, Any]:
    """Return points with equal shares; few are padded with points without a share.

    This lets small fits share compiled code.
    """
    k = len(points)
    filled = np.resize(points, (max(k, FEW_POINTS), points.shape[1]))
    return filled, (np.arange(len(filled)) < k).astype(np.float32) / np.float32(k)


def logarithms(shares: Any) -> Any:
    """Return the logarithms of shares, some of which may be zero."""
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(shares))


def in_batches(rows: Symbols, most: int, n_points: int) -> list[Any]:
    """Return rows and weights in batches whose scores at all points fit into memory."""
    return list(rows.batches(min(most, max(1, SHARE_CELLS // 8 // n_points)), SCAN))
