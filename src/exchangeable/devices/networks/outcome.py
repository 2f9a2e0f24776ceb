"""A decoder and its results: components, scores of rows, and the gains of edges."""

from typing import Any

import jax
import numpy as np

from exchangeable.devices.networks import engine
from exchangeable.devices.networks.batches import FloatArray, Symbols
from exchangeable.devices.networks.decoder import Layers, new_layers, repeated
from exchangeable.devices.networks.head import SHARE_CELLS, Settings
from exchangeable.devices.networks.residuals import pair_gains
from exchangeable.devices.networks.steps import SCAN
from exchangeable.devices.networks.task import Task, even_shares, logarithms

MOST_VALID = 8192
"""Maximum number of held-out rows for stopping."""
MOST_SHARE_STEPS = 8


class Outcome:
    """A decoder, and points of the latent space with their shares.

    Parameters
    ----------
    task : Task
        Rows, components and points.
    settings : Settings
        Its size.
    rng : Generator
        The source of all draws.
    device : jax device
        Where it is computed.
    layers : list of (weights, offset), optional
        The initial decoder.

    Attributes
    ----------
    best : list of (weights, offset)
        The best decoder so far.
    points, shares : arrays
        The input of the first layer for each component, and their shares.
    """

    def __init__(
        self,
        task: Task,
        settings: Settings,
        rng: np.random.Generator,
        device: Any,
        layers: Layers | None,
    ) -> None:
        self.task, self.rng, self.device = task, rng, device
        self.train, self.valid = task.rows, task.valid.some(MOST_VALID, rng)
        final, self.shares = even_shares(task.final)
        self.uniform, shares = even_shares(task.points)
        self.log_shares = logarithms(shares)
        with jax.default_device(device):
            self.points = np.asarray(engine.placed(final))
            self._watched = np.asarray(engine.placed(self.uniform)), self.log_shares
        self.best: Layers = layers or new_layers(rng, settings.latent, settings.layers, task.bias)
        self._fitted: Any = self.shares
        k = len(self.points)
        self._seen = min(self.train.weights.size, max(1, SHARE_CELLS // k))
        self._held = min(self.valid.weights.size, max(1, SHARE_CELLS // 2 // k))

    def _held_out(self, layers: Layers, points: Any, batches: Any) -> float:
        """Return the average log-likelihood of held-out rows at some points with their shares."""
        total = 0.0
        with jax.default_device(self.device):
            for some, weights in batches:
                found = engine.held_out(self.task.head, layers, self.task.constants, points, some)
                total += float((weights * np.asarray(found, dtype=np.float64)).sum())
        return total / float(self.valid.weights.sum())

    def gains(self, weights: FloatArray) -> FloatArray:
        """Return the gain of an edge between each two variables, on weighted training rows."""
        rows = Symbols(self.train.symbols, weights)
        return pair_gains(
            self.task.head, self.best, self.task.constants, self._watched, rows, self.device
        )

    def repeated(self, times: int) -> Layers:
        """Return the best decoder, with each of its outputs repeated several times."""
        return repeated(self.best, times)

    def components(self) -> tuple[FloatArray, FloatArray]:
        """Return the outputs of the best decoder, and shares of the components.

        These are equal, or fitted to the rows by EM, as long as the held-out likelihood increases.
        """
        train, valid = [
            (rows.symbols, rows.weights.astype(np.float32))
            for rows in (
                self.train.some(self._seen, self.rng),
                self.valid.some(self._held, self.rng),
            )
        ]
        k = len(self.task.final)
        with jax.default_device(self.device):
            outputs, self._fitted = engine.refitted(
                self.task.head,
                self.best,
                self.task.constants,
                (self.points, self.shares),
                train,
                valid,
                MOST_SHARE_STEPS,
            )
        shares = np.asarray(self._fitted, dtype=np.float64)
        return np.asarray(outputs, dtype=np.float64)[:k], shares[:k]

    def scores(self) -> tuple[FloatArray, FloatArray]:
        """Return log P of each training row and held-out row, in single precision.

        It is that of the mixture of all components found by `components`.
        """
        rows = self.task.rows.followed_by(self.task.valid)
        points = self.points, logarithms(self._fitted)
        calls = -(-rows.weights.size // (SCAN * max(1, SHARE_CELLS // 8 // len(self.points))))
        found = []
        for batch, _ in rows.batches(-(-rows.weights.size // (SCAN * calls)), SCAN):
            with jax.default_device(self.device):
                each = engine.held_out(
                    self.task.head, self.best, self.task.constants, points, batch
                )
            found.append(np.asarray(each, dtype=np.float64).ravel())
        n = self.task.rows.weights.size
        whole = np.concatenate(found)[: rows.weights.size]
        return whole[:n], whole[n:]
