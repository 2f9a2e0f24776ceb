"""Training of a decoder: epochs, early stopping on held-out rows, and settling of components."""

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from exchangeable.devices.networks import engine
from exchangeable.devices.networks.batches import LEAST_STEPS, batch_size
from exchangeable.devices.networks.decoder import Layers
from exchangeable.devices.networks.head import Settings
from exchangeable.devices.networks.kept import (
    Kept,
    Parts,
    generator_words,
    leaves,
    misfit,
)
from exchangeable.devices.networks.outcome import MOST_SHARE_STEPS, Outcome
from exchangeable.devices.networks.schedule import MOST_RECOVERIES, Schedule
from exchangeable.devices.networks.steps import SCAN, Pace, Steps
from exchangeable.devices.networks.task import Task, in_batches, logarithms, shares_of
from exchangeable.devices.programs import Begin, compile_ahead

MOST_STEPS = 64
"""Maximum number of steps in an iteration; large epochs have several iterations."""
ENDING = 1.5
"""The work after the last step takes this many times the time of its scores."""
LEAST_ITERATIONS = 8
"""The learning rate is not reduced before this many iterations."""
SETTLE_STEPS = 16
"""Number of steps in an iteration in which the components settle."""
SETTLE_RATE, SETTLE_WARM_UP = 1e-2, 20
SETTLE_GAIN, SETTLE_PATIENCE = 1e-4, 3
"""Minimum improvement on held-out rows, and the number of iterations without it before stopping."""
SETTLE_COPIES = 7
"""Number of copies of what is learned: the latest, gradient, moments and averages, and the best."""
MOST_SETTLE_BYTES = 1e9
"""Components that need more memory do not settle."""
CLOSE = 1e-3
MOST_COUNT = 1 << 31
"""Maximum numbers of iterations and steps in a checkpoint."""


class Training(Outcome):
    """A decoder, trained on rows and stopped by held-out rows.

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
    begin : callable
        Begins work in a thread apart, in which programs are compiled that are needed later.
    layers : list of (weights, offset), optional
        The initial decoder.
    """

    def __init__(
        self,
        task: Task,
        settings: Settings,
        rng: np.random.Generator,
        device: Any,
        pace: Pace,
        begin: Begin,
        layers: Layers | None = None,
    ) -> None:
        super().__init__(task, settings, rng, device, layers)
        self.settings, self.pace, self._begin = settings, pace, begin
        self.converged, self.late, self._settling = False, False, False
        self.batch = batch_size(self.train.weights.size, settings.batch_size)
        self.moving = float(len(task.final) > len(task.points))
        self.best_worth = -np.inf
        self._network: Any = None
        self._number, self._ended, self._stale = 0, False, 0
        k = len(self.points)
        ending = ENDING * sum(task.head.work(rows, k) for rows in (self._seen, self._held))
        rows = task.head, self.train, self.batch
        self._steps = Steps(self._train_steps, *rows, len(self.uniform), ending)
        self._settle_steps = Steps(self._learn_points, *rows, k, ending)
        self._valid_batches = in_batches(self.valid, self.batch, len(self.uniform))

    def iterations(
        self,
        tol: float,
        max_iter: int,
        last: bool = True,
        kept: Kept | None = None,
        done: bool = False,
    ) -> Iterator[tuple[float, float]]:
        """Train; yield the average scores of training and held-out rows after each iteration.

        It ends when there is no time for more, `late`, perhaps before the first iteration. Training
        that is not the `last` is followed by another stage. It continues from the state `kept`,
        unless that was `done` already.
        """
        settings, steps = self.settings, self._steps.begin(self.rng)
        epoch = -(-self.train.weights.size // self.batch)
        n_steps = SCAN * -(-min(max(epoch, LEAST_STEPS), MOST_STEPS) // SCAN)
        self._network, self._schedule = engine.new_network(self.best), Schedule(settings, tol)
        if kept is not None:
            self._restore(kept, done)
        if not done:
            self._compile_ahead(last)
        schedule = self._schedule
        while not (done or self._ended) and self._number < max_iter:
            rate, warm_up = schedule.rate, settings.warm_up
            network, seen = self._advance(steps, self._network, n_steps, rate, warm_up)
            if self.late:
                return
            self._number += 1
            held = np.nan
            if np.isfinite(seen):
                held = self._held_out(network.average, self._watched, self._valid_batches)
            if not np.isfinite(held):
                schedule.recover()
                self._network = engine.new_network(self.best)
                continue
            if held > self.best_worth:
                self.best, self.best_worth = network.average, held
            schedule.note(held)
            if schedule.out_of_patience and self._number >= LEAST_ITERATIONS:
                self._ended = schedule.ended
                if not self._ended:
                    schedule.cut()
                    network = network._replace(parameters=self.best, average=self.best)
            self._network = network
            yield seen, held
        self.converged = self._ended or schedule.stale > 0

    def state(self, done: bool = False) -> Parts:
        """Return the state of training, or settling; less of it if it is `done`."""
        steps = self._settle_steps if self._settling else self._steps
        parts: Parts = {"rng": generator_words(self.rng)}
        if self._settling:
            parts |= {"points": self.points, "shares": self.shares}
            numbers: list[float] = [self.best_worth]
            counts = [self._number, self._stale, steps.done]
        else:
            parts |= leaves(self.best, "best")
            rates, others = self._schedule.state
            numbers = [self.best_worth, *rates]
            counts = [self._number, int(self._ended), *others, steps.done]
        parts |= {"numbers": np.array(numbers), "counts": np.array(counts, dtype=np.int64)}
        if not done:
            parts |= {**leaves(self._network, "network"), "left": steps.batches.left}
        return parts

    def _restore(self, kept: Kept, done: bool) -> None:
        """Restore an earlier `state` of training."""
        limits = MOST_COUNT, 1, MOST_COUNT, self.settings.cuts, MOST_RECOVERIES, MOST_COUNT
        self.best = kept.tree("best", self.best)
        self.best_worth, *numbers = kept.numbers("numbers", 3)
        self._number, ended, *counts, self._steps.done = kept.counts("counts", limits)
        self._ended = bool(ended)
        if not 0 < numbers[0] <= self.settings.learning_rate:
            raise misfit(f"with a learning rate of {numbers[0]}")
        self._schedule.restore(numbers, counts)
        if not done:
            self._network = kept.tree("network", self._network)
            self._restore_batches(kept, self._steps)
        kept.set_generator("rng", self.rng)

    def _restore_batches(self, kept: Kept, steps: Steps) -> None:
        n_rows, most = self.train.weights.size, steps.batches.most_left
        steps.batches.left = kept.rows("left", n_rows, most)

    @property
    def _settles(self) -> bool:
        """Whether the components settle after training."""
        k, width = len(self.points), len(self.best[-1][0])
        room = self.task.head.room(self.batch, k) + 4.0 * SETTLE_COPIES * k * width
        return self.settings.settle > 0 and room <= MOST_SETTLE_BYTES

    def settled(self, more: int, kept: Kept | None = None) -> Iterator[tuple[float, float]]:
        """Let the components leave the latent space: learn the last hidden layer of each.

        The result of training is a good enough start, even if it was `late`. At most `more`
        iterations are made, starting from the state `kept`.
        """
        if not self._settles:
            return
        trained, self.converged, self.late = self.converged, False, False
        self._settling = True
        reserve = self._settle_steps.work / self._steps.work * (1 + self._settle_steps.ending)
        if not self.pace.goes_on(reserve * self.pace.latest + self._compiling):
            return
        steps = self._settle_steps.begin(self.rng)
        batches = in_batches(self.valid, self.batch, len(self.points))
        with jax.default_device(self.device):
            self.points = engine.hidden(self.best, self.points)
        self.best = self.best[-1:]
        first = engine.Settled(self.points, logarithms(self.shares))
        self._network, self._number = engine.new_network(first), 0
        if kept is None:
            self.best_worth = self._worth(first, batches)
        else:
            self._restore_settled(kept)
        most = min(self._number + more, -(-self.settings.settle // SETTLE_STEPS))
        while self._number < most and self._stale < SETTLE_PATIENCE:
            network, seen = self._advance(
                steps, self._network, SETTLE_STEPS, SETTLE_RATE, SETTLE_WARM_UP
            )
            if self.late:
                return
            held = self._worth(network.average, batches)
            if not np.isfinite(held):
                break
            self._network, self._number = network, self._number + 1
            self._stale = 0 if held > self.best_worth + SETTLE_GAIN else self._stale + 1
            if held > self.best_worth:
                self.best_worth, (self.points, _) = held, network.average
                self.shares = shares_of(network.average)
            yield seen, held
        self.converged = trained

    def _restore_settled(self, kept: Kept) -> None:
        """Restore an earlier `state` of settling."""
        self._network = kept.tree("network", self._network)
        self.points = kept.leaf("points", self.points)
        self.shares = kept.leaf("shares", self.shares)
        if self.shares.min() < 0 or abs(self.shares.sum() - 1) > CLOSE:
            raise misfit("whose shares do not add up to one")
        (self.best_worth,) = kept.numbers("numbers", 1)
        limits = (MOST_COUNT,) * 3
        self._number, self._stale, self._settle_steps.done = kept.counts("counts", limits)
        self._restore_batches(kept, self._settle_steps)
        kept.set_generator("rng", self.rng)

    def _worth(self, settled: engine.Settled, batches: Any) -> float:
        """Return the average log-likelihood of held-out rows under settled components."""
        points = settled.hidden, logarithms(shares_of(settled))
        return self._held_out(self.best, points, batches)

    def _advance(
        self, steps: Steps, network: engine.Network, n_steps: int, rate: float, warm_up: int
    ) -> tuple[engine.Network, float]:
        """Return the network after some steps, and the average log-likelihood in them."""
        warm = np.minimum((steps.done + np.arange(n_steps) + 1) / (warm_up + 1), 1.0)
        shifts = self.moving * self.rng.random((n_steps, self.settings.latent))
        return steps.advance(network, n_steps, rate * warm, shifts, self.device, self._in_time)

    def _train_steps(self, network: engine.Network, handed: engine.Batches) -> Any:
        points = self.uniform, self.log_shares
        return engine.train_steps(self.task.head, network, self.task.constants, points, handed)

    def _learn_points(self, network: engine.Network, handed: engine.Batches) -> Any:
        head, constants = self.task.head, self.task.constants
        return engine.settle_steps(head, network, self.best, constants, handed)

    @property
    def _compiling(self) -> float:
        """Approximate compile time of steps in seconds."""
        return max(0.0, self.pace.first - self.pace.latest)

    def _in_time(self, values: Any, ending: float) -> bool:
        """Wait for the steps before the latest, and check whether there is time for more.

        Code that is compiled for the first steps is compiled again, for other shapes, after the
        last. If components settle after training, there is time for that anyway.
        """
        values.block_until_ready()
        self.pace.step()
        if self.pace.patient and self.best_worth == -np.inf:
            return True
        follows = self._settles and not self._settling
        reserve = 0.0 if follows else ending * self.pace.latest + self._compiling
        self.late = not self.pace.goes_on(reserve)
        return not self.late

    def _compile_ahead(self, last: bool) -> None:
        """Compile what follows the first steps while these are compiled and run."""
        head, constants, shape = self.task.head, self.task.constants, jax.ShapeDtypeStruct
        layers, points = self.best, (self.points, self.shares)
        programs: list[Any] = [
            (engine.held_out, head, layers, constants, self._watched, self._valid_batches[0][0])
        ]
        if last and self._settles:
            programs.append((engine.hidden, layers, self.points))
            hidden = np.zeros((len(self.points), len(layers[-1][0])), np.float32)
            layers, points = layers[-1:], (hidden, self.shares)
            network = engine.new_network(engine.Settled(*points))
            batches = self._settle_steps.shapes(self.settings.latent)
            programs.append((engine.settle_steps, head, network, layers, constants, batches))
        if last:
            rows = [
                (shape((count, data.symbols.shape[1]), np.int8), shape((count,), np.float32))
                for data, count in ((self.train, self._seen), (self.valid, self._held))
            ]
            programs.append(
                (engine.refitted, head, layers, constants, points, *rows, MOST_SHARE_STEPS)
            )
        compile_ahead(programs, self.device, self._begin)
