"""Steps of training: batches of rows are sent to a program, with a check of the time."""

from typing import Any, Protocol

import jax
import numpy as np

from exchangeable.devices.networks import engine
from exchangeable.devices.networks.batches import Dealt, Symbols
from exchangeable.devices.networks.head import Head

SCAN = 8
"""Number of steps that are sent to the device at once, unless a step is long."""
LONG_STEP = 2e9
"""Number of multiplications from which a step is sent by itself."""
DECAY = 0.98


class Pace(Protocol):
    """Tells whether there is time for more."""

    first: float
    latest: float

    @property
    def patient(self) -> bool:
        """Whether work continues until it has a useful result."""

    def step(self) -> None:
        """Record that a step has ended."""

    def goes_on(self, reserve: float = 0.0) -> bool:
        """Return whether there is time for one more step, and for the work after the last one."""


class Steps:
    """Steps over rows, some at a time.

    Parameters
    ----------
    program : callable
        Returns a network after the steps of some `engine.Batches`, and their log-likelihoods.
    head : Head
        The shape of the components.
    rows : Symbols
        The rows to fit.
    batch_size : int
        How many a step takes.
    n_points : int
        Points of a step.
    ending : float
        Number of multiplications of the work after the last step.
    """

    def __init__(
        self,
        program: Any,
        head: Head,
        rows: Symbols,
        batch_size: int,
        n_points: int,
        ending: float,
    ) -> None:
        self.program, self.rows, self.batch_size = program, rows, batch_size
        step = 3 * head.work(batch_size, n_points)
        self.scan = 1 if step > LONG_STEP else SCAN
        self.work = self.scan * step
        self.ending, self.done = ending / self.work, 0

    def begin(self, rng: np.random.Generator) -> "Steps":
        """Draw the batches, in an order from a generator."""
        self.batches, self.done = Dealt(self.rows.weights, self.batch_size, rng), 0
        return self

    def shapes(self, latent: int) -> engine.Batches:
        """Return the shapes of what is handed to the program."""
        scan, size, width = self.scan, self.batch_size, self.rows.symbols.shape[1]
        shapes = (scan, size, width), (scan, size), (scan,), (scan,), (scan, latent)
        types = np.int8, *[np.float32] * 4
        return engine.Batches(*map(jax.ShapeDtypeStruct, shapes, types))

    def advance(
        self,
        network: engine.Network,
        n_steps: int,
        rates: Any,
        shifts: Any,
        device: Any,
        in_time: Any,
    ) -> tuple[engine.Network, float]:
        """Return the network after some steps, and the average log-likelihood in them.

        `in_time` says whether there is time for more, after the steps before the latest ones.
        """
        seen, scan = list[Any](), self.scan
        for begin in range(0, n_steps, scan):
            steps = self.done + begin + np.arange(scan)
            numbers, weights = zip(*[next(self.batches) for _ in range(scan)], strict=True)
            handed = engine.Batches(
                self.rows.symbols[np.stack(numbers)],
                np.stack(weights).astype(np.float32),
                rates[begin : begin + scan].astype(np.float32),
                np.minimum(DECAY, (1 + steps) / (10 + steps)).astype(np.float32),
                shifts[begin : begin + scan].astype(np.float32),
            )
            with jax.default_device(device):
                network, values = self.program(network, handed)
            seen.append(values)
            if begin and not in_time(seen[-2], self.ending):
                break
        self.done += n_steps
        return network, float(np.mean([np.asarray(values) for values in seen]))
