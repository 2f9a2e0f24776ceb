"""Training of a decoder: epochs, early stopping on held-out rows, and what is left at the end."""

import threading
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np

from exchangeable.devices import engine
from exchangeable.devices.batches import LEAST_STEPS, FloatArray, Symbols, batch_size, dealt
from exchangeable.devices.decoder import Layers, new_layers
from exchangeable.devices.head import FEW_POINTS, SHARE_CELLS, Head, Settings

MOST_STEPS = 64
"""Of an iteration; large epochs have several."""
SCAN = 8
"""Steps that are handed to the device at once, unless one is long."""
LONG_STEP = 2e9
"""Multiplications of a step that is handed over by itself."""
ENDING = 1.5
"""What follows the last step takes this many times what its scores do."""
MOST_VALID = 8192
"""Held-out rows by which training is stopped."""
CUT = 0.3
DECAY = 0.98
LEAST_ITERATIONS = 8
"""The learning rate is not cut before this many iterations."""
MOST_RECOVERIES = 3
MOST_SHARE_STEPS = 8


class Task(NamedTuple):
    """What a decoder is trained for.

    Attributes
    ----------
    head : Head
        The shape of its components.
    constants : dict of arrays
        What else their scores depend on.
    bias : array of shape (n_groups, n_outputs)
        The outputs to begin with.
    rows, valid : Symbols
        Rows to fit, and rows held out.
    points : array of shape (n_points, latent)
        Points of the unit cube that stand for the latent space in a step.
    final : array of shape (n_components, latent)
        Those of the components in the end.
    """

    head: Head
    constants: dict[str, Any]
    bias: FloatArray
    rows: Symbols
    valid: Symbols
    points: Any
    final: Any


class Pace(Protocol):
    """Says whether there is time for more."""

    first: float
    latest: float

    @property
    def patient(self) -> bool:
        """Whether work goes on until it has led to something."""

    def step(self) -> None:
        """Note that a step has ended."""

    def goes_on(self, reserve: float = 0.0) -> bool:
        """Return whether there is time for one more, and for what has to be done in the end."""


class Training:
    """A decoder, trained by rows and stopped by rows held out.

    Parameters
    ----------
    task : Task
        Rows, components and points.
    settings : Settings
        Its size, and how it is trained.
    rng : Generator
        The source of all draws.
    device : jax device
        Where to train.
    pace : Pace
        Whether there is time for more, asked after some steps.
    """

    def __init__(
        self, task: Task, settings: Settings, rng: np.random.Generator, device: Any, pace: Pace
    ) -> None:
        self.task, self.settings, self.device, self.pace = task, settings, device, pace
        self.rng, self.converged, self.late = rng, False, False
        self.train, self.valid = task.rows, task.valid.some(MOST_VALID, rng)
        self.batch = batch_size(self.train.weights.size, settings.batch_size)
        self.moving = float(len(task.final) > len(task.points))
        self.final, self.shares = even_shares(task.final)
        self.uniform, shares = even_shares(task.points)
        with np.errstate(divide="ignore"):
            self.log_shares = np.log(shares)
        layers = new_layers(rng, settings.latent, settings.layers, task.bias)
        self.best: Layers = layers
        self._fixed = task.constants, (self.uniform, self.log_shares)
        size = min(self.batch, max(1, SHARE_CELLS // 8 // len(self.uniform)))
        self._valid_batches = list(self.valid.batches(size, SCAN))
        self.best_worth = -np.inf
        self._fitted: Any = self.shares
        step = 3 * task.head.work(self.batch, len(self.uniform))
        self.scan = 1 if step > LONG_STEP else SCAN
        most = max(1, SHARE_CELLS // len(self.final)), max(1, SHARE_CELLS // 2 // len(self.final))
        self._seen = min(self.train.weights.size, most[0])
        self._held = min(self.valid.weights.size, most[1])
        scores = sum(task.head.work(rows, len(self.final)) for rows in (self._seen, self._held))
        self._ending = ENDING * scores / (self.scan * step)

    def iterations(self, tol: float, max_iter: int) -> Iterator[tuple[float, float]]:
        """Train; after each iteration yield the averages of fitted and of held-out rows.

        It ends when there is no time for more, `late`, perhaps before the first.
        """
        settings = self.settings
        batches = dealt(self.train.weights, self.batch, self.rng)
        epoch = -(-self.train.weights.size // self.batch)
        n_steps = SCAN * -(-min(max(epoch, LEAST_STEPS), MOST_STEPS) // SCAN)
        network = engine.new_network(self.best)
        self._compile_ahead()
        rate, stale, cuts, done, recoveries = settings.learning_rate, 0, 0, 0, 0
        mark = -np.inf
        for number in range(max_iter):
            network, seen = self._advance(network, batches, n_steps, rate, done)
            if self.late:
                return
            done += n_steps
            held = self._held_out(network.average) if np.isfinite(seen) else np.nan
            if not np.isfinite(held):
                recoveries += 1
                if recoveries > MOST_RECOVERIES:
                    raise FloatingPointError(
                        "training diverged: the likelihood is not a number, even after the "
                        f"learning rate was cut to {rate:.2g}; give a smaller learning_rate"
                    )
                rate, network = rate * CUT, engine.new_network(self.best)
                continue
            if held > self.best_worth:
                self.best, self.best_worth = network.average, held
            stale = 0 if held >= mark + tol else stale + 1
            mark = max(mark, held) if stale == 0 else mark
            yield seen, held
            if stale >= settings.patience and number + 1 >= LEAST_ITERATIONS:
                if cuts == settings.cuts:
                    self.converged = True
                    return
                cuts, stale, rate = cuts + 1, 0, rate * CUT
                network = network._replace(layers=self.best, average=self.best)
        self.converged = stale > 0

    def _advance(
        self, network: engine.Network, batches: Any, n_steps: int, rate: float, done: int
    ) -> tuple[engine.Network, float]:
        """Return the network after some steps, and the average log-likelihood in them."""
        seen, scan = list[Any](), self.scan
        for begin in range(0, n_steps, scan):
            steps = done + begin + np.arange(scan)
            numbers, weights = zip(*[next(batches) for _ in range(scan)], strict=True)
            warm = np.minimum((steps + 1) / (self.settings.warm_up + 1), 1.0)
            shifts = self.moving * self.rng.random((scan, self.settings.latent))
            handed = engine.Batches(
                self.train.symbols[np.stack(numbers)],
                np.stack(weights).astype(np.float32),
                (rate * warm).astype(np.float32),
                np.minimum(DECAY, (1 + steps) / (10 + steps)).astype(np.float32),
                shifts.astype(np.float32),
            )
            with jax.default_device(self.device):
                network, values = engine.train_steps(self.task.head, network, *self._fixed, handed)
            seen.append(values)
            if begin and not self._in_time(seen[-2]):
                break
        return network, float(np.mean([np.asarray(values) for values in seen]))

    def _in_time(self, values: Any) -> bool:
        """Wait for the steps before the latest, and see whether there is time for more.

        What is compiled for the first steps is compiled again, for other shapes, after the last.
        """
        values.block_until_ready()
        self.pace.step()
        if self.pace.patient and self.best_worth == -np.inf:
            return True
        compiling = max(0.0, self.pace.first - self.pace.latest)
        self.late = not self.pace.goes_on(self._ending * self.pace.latest + compiling)
        return not self.late

    def _held_out(self, layers: Layers) -> float:
        """Return the average log-likelihood of held-out rows at the points of training."""
        total = 0.0
        with jax.default_device(self.device):
            for some, weights in self._valid_batches:
                found = engine.held_out(self.task.head, layers, *self._fixed, some)
                total += float((weights * np.asarray(found, dtype=np.float64)).sum())
        return total / float(self.valid.weights.sum())

    def components(self) -> tuple[FloatArray, FloatArray]:
        """Return the outputs of the best decoder, and shares of the components.

        These are equal, or fitted to the rows by steps of EM, as long as held-out rows grow
        likelier.
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
                (self.final, self.shares),
                train,
                valid,
                MOST_SHARE_STEPS,
            )
        shares = np.asarray(self._fitted, dtype=np.float64)
        return np.asarray(outputs, dtype=np.float64)[:k], shares[:k]

    def scores(self) -> tuple[FloatArray, FloatArray]:
        """Return log P of each row to fit and of each row held out, in single precision.

        It is that of the mixture of all components, as `components` has found them.
        """
        rows = self.task.rows.followed_by(self.task.valid)
        with np.errstate(divide="ignore"):
            points = self.final, np.log(np.asarray(self._fitted))
        calls = -(-rows.weights.size // (SCAN * max(1, SHARE_CELLS // 8 // len(self.final))))
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

    def _compile_ahead(self) -> None:
        """Compile what follows the first steps while these are compiled and made."""
        head, constants = self.task.head, self.task.constants
        some = self._valid_batches[0][0]
        rows = [
            (
                jax.ShapeDtypeStruct((count, data.symbols.shape[1]), np.int8),
                jax.ShapeDtypeStruct((count,), np.float32),
            )
            for data, count in ((self.train, self._seen), (self.valid, self._held))
        ]

        def compile_both() -> None:
            with jax.default_device(self.device):
                engine.held_out.lower(head, self.best, *self._fixed, some).compile()
                engine.refitted.lower(
                    head, self.best, constants, (self.final, self.shares), *rows, MOST_SHARE_STEPS
                ).compile()

        threading.Thread(target=compile_both, daemon=True).start()


def even_shares(points: Any) -> tuple[Any, Any]:
    """Return points with equal shares; few are filled up with points that have none.

    So small fits share what is compiled.
    """
    k = len(points)
    filled = np.resize(points, (max(k, FEW_POINTS), points.shape[1]))
    return filled, (np.arange(len(filled)) < k).astype(np.float32) / np.float32(k)
