"""Several components per class, trained by gradient from a generative start.

Each component has independent variables: log P(e, m) = c_m + Σ_j [x_j·w_jm − log(1 + exp(w_jm))], a
sum over the known entries e. Training maximises log P(y | e) of complete rows and of rows with
random missing entries, plus a small multiple of log P(e), by Adam (Kingma and Ba, 2015) with
averaged parameters; held-out rows decide when to stop. Since rows with missing entries are part of
training, predictions stay good when features are missing.
"""

from dataclasses import dataclass
from threading import Event

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_softmax

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.examples import merge_equal_rows
from exchangeable.data.observed import Observed, flags
from exchangeable.data.rows import Rows, take_rows
from exchangeable.families import REGISTRY, normalised
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.common.log_linear.scores import LogLinear
from exchangeable.families.grouped import GroupedModel
from exchangeable.families.mixture import Mixture
from exchangeable.families.problem import Problem
from exchangeable.fitting.em import StopRule
from exchangeable.fitting.hybrid.design import Design
from exchangeable.fitting.hybrid.trained import Trained
from exchangeable.fitting.progress import SearchProgress
from exchangeable.fitting.runs import Runs
from exchangeable.runtime.blas import blas_threads
from exchangeable.structure.blocks import Blocks, structure_of

Floats = npt.NDArray[np.float32]
SMALLEST_BATCH, LARGEST_BATCH, STEPS = 16, 256, 64
"""Bounds for the batch size, and the number of steps per epoch within these bounds."""
RATE, EPOCHS, PATIENCE = 0.03, 20, 5
FIRST, SECOND, TINY = 0.9, 0.999, 1e-8
"""Adam's decay rates, and its ε."""
DECAY = 0.1
"""Rate at which log-odds shrink towards their mean over components, relative to Adam's rate."""
AVERAGING = 0.998
"""Decay of the parameter average per step."""
HELD_OUT = 10
"""One of this many rows is held out."""
GENERATIVE = 1e-3
"""Weight of log P(e) relative to log P(y | e)."""
LARGEST_ODDS, TEMPER = 7.0, 0.3
"""Start: log-odds are clipped to this, and their differences shrunk to this share, because the
components are overconfident: variables are not as independent as they assume."""


SMALLEST_SHARE = 0.1
"""Start: minimum share of a component, relative to equal shares, since EM leaves some components of
long texts empty."""


@dataclass
class Parameters:
    """Log-odds of shape (n_variables, n_components), and the components' log-weights."""

    odds: Floats
    base: Floats

    def copy(self) -> "Parameters":
        """Return a copy."""
        return Parameters(self.odds.copy(), self.base.copy())


def train_components(
    design: Design, n_components: int, weights: FloatArray, stop: Event, n_jobs: int | None = None
) -> Trained:
    """Train a mixture per class.

    Parameters
    ----------
    design : Design
        The rows, whose weights include those of their classes.
    n_components : int
        Number of components per class.
    weights : array of shape (n_rows,)
        Weight of each row in P(x).
    stop : Event
        Stops training after the current epoch, with the best parameters so far.
    n_jobs : int, optional
        Number of threads of the start; matrix products use BLAS threads.
    """
    present = np.bincount(design.labels, minlength=design.n_classes)
    if present.min() < n_components:
        raise ValueError(
            f"n_components={n_components} is more than the {present.min()} distinct rows of class "
            f"number {present.argmin()}; choose fewer components"
        )
    rng = np.random.default_rng(0)
    order = rng.permutation(design.rows.n_rows)
    n_held = design.rows.n_rows // HELD_OUT
    chosen = np.sort(order[n_held:])
    held, kept = design.take(np.sort(order[:n_held])), design.take(chosen)
    start = _start(kept, n_components, weights[chosen], n_jobs)
    training = _Training(kept, held if n_held else kept, start, rng)
    with blas_threads(1), SearchProgress() as progress:
        while not training.ended and not stop.is_set():
            training.epoch()
            progress.show(
                f"epoch {training.n_epochs} of at most {EPOCHS}, held-out loss {training.loss:.4f}"
            )
    mixture = grouped(training.best, design.n_classes)
    return Trained(mixture, training.n_epochs, training.ended, training.best_loss)


def grouped(parameters: Parameters, n_classes: int) -> Mixture:
    """Return components, equally many in each class, as a mixture of classes."""
    odds = parameters.odds.astype(np.float64)
    base = parameters.base.astype(np.float64) - np.logaddexp(0.0, odds).sum(axis=0)
    inner = normalised(LogLinear(base, odds))[0]
    per_class = inner.log_prior.reshape(n_classes, -1)
    log_prior = np.logaddexp.reduce(per_class, axis=1)
    group = np.repeat(np.arange(n_classes), per_class.shape[1])
    shares = (per_class - log_prior[:, None]).ravel()
    return Mixture(GroupedModel(inner.model, group, shares), log_prior)


def _start(
    design: Design, n_components: int, weights: FloatArray, n_jobs: int | None
) -> Parameters:
    """Return the components of a mixture fitted by EM to the rows of each class."""
    single = "independent"
    spec = next(each for each in REGISTRY.values() if each.normalise and single in each.blocks)
    n = design.rows.n_variables
    structure = structure_of(Blocks(), single, False, n, range(n_components))
    rule = StopRule(tol=1e-2, max_iter=30)
    odds, base = list[FloatArray](), list[FloatArray]()
    for y in range(design.n_classes):
        members = np.flatnonzero(design.labels == y)
        rows = Observed(take_rows(design.rows, members))
        examples, member = merge_equal_rows(rows, weights[members])
        problem = Problem(n_components, structure, examples, alpha=0.5)
        data = InMemory(examples, member, weights[members], n_jobs)
        runs = Runs(spec, problem, data, rule, "rows", [np.random.default_rng(y)])
        state = runs.run(0, None, lambda state: None, Event(), 1)
        scores = state.best.model.log_linear()
        assert scores is not None
        odds.append(np.clip(scores.slope, -LARGEST_ODDS, LARGEST_ODDS))
        shares = np.maximum(np.exp(state.best.log_prior), SMALLEST_SHARE / n_components)
        base.append(np.log(shares / shares.sum() * weights[members].sum() / weights.sum()))
    together = np.concatenate(odds, axis=1)
    middle = together.mean(axis=1, keepdims=True)
    tempered = middle + TEMPER * (together - middle)
    return Parameters(tempered.astype(np.float32), np.concatenate(base).astype(np.float32))


def dense(rows: Rows, chosen: IntArray) -> Floats:
    """Return some rows as a matrix."""
    return flags(take_rows(rows, chosen)).astype(np.float32)


class _Training:
    """The state of training."""

    def __init__(
        self, design: Design, held: Design, start: Parameters, rng: np.random.Generator
    ) -> None:
        self.design, self.held, self.rng = design, held, rng
        self.now, self.average, self.best = start, start.copy(), start.copy()
        self.first = [np.zeros_like(start.odds), np.zeros_like(start.base)]
        self.second = [np.zeros_like(start.odds), np.zeros_like(start.base)]
        self.middle = start.odds.mean(axis=1, keepdims=True)
        self.step, self.n_epochs, self.stale = 0, 0, 0
        self.loss = self.best_loss = self._held_loss(start)
        self.weights = (design.weights / design.weights.mean()).astype(np.float32)

    @property
    def ended(self) -> bool:
        """Whether more epochs would not help."""
        return self.n_epochs >= EPOCHS or self.stale >= PATIENCE

    def epoch(self) -> None:
        """Make one pass over all rows, and evaluate the held-out ones."""
        order = self.rng.permutation(self.design.rows.n_rows)
        batch = int(np.clip(order.size // STEPS, SMALLEST_BATCH, LARGEST_BATCH))
        n_steps = -(-order.size // batch)
        for number, chosen in enumerate(np.array_split(order, n_steps)):
            done = (self.n_epochs + number / n_steps) / EPOCHS
            self._update(*self._gradient(chosen), RATE * 0.5 * (1.0 + np.cos(np.pi * done)))
        self.n_epochs += 1
        self.loss = self._held_loss(self.average)
        if self.loss < self.best_loss:
            self.best, self.best_loss, self.stale = self.average.copy(), self.loss, 0
        else:
            self.stale += 1

    def _gradient(self, chosen: IntArray) -> tuple[Floats, Floats]:
        """Return the gradient over some rows, with random missing entries every second time."""
        X, odds = dense(self.design.rows, chosen), self.now.odds
        off = np.logaddexp(np.float32(0), odds)
        known: Floats | None = None
        if self.step % 2:
            share = self.rng.uniform(0.1, 0.9, (chosen.size, 1)).astype(np.float32)
            known = (self.rng.random(X.shape, dtype=np.float32) < share).astype(np.float32)
            X *= known
        scores = X @ odds + self.now.base
        scores -= off.sum(axis=0) if known is None else known @ off
        k, n_rows = self.design.n_classes, chosen.size
        by_class = scores.reshape(n_rows, k, -1)
        own = by_class[np.arange(n_rows), self.design.labels[chosen]]
        residual = np.exp(log_softmax(scores, axis=1)) * np.float32(1.0 - GENERATIVE)
        inside = residual.reshape(by_class.shape)
        inside[np.arange(n_rows), self.design.labels[chosen]] -= np.exp(log_softmax(own, axis=1))
        residual *= (self.weights[chosen] / np.float32(n_rows))[:, None]
        reached = residual.sum(axis=0) if known is None else known.T @ residual
        return X.T @ residual - reached * expit(odds), residual.sum(axis=0)

    def _update(self, odds: Floats, base: Floats, rate: float) -> None:
        """Take one step of Adam, and move the average."""
        self.step += 1
        bias = rate * np.sqrt(1 - SECOND**self.step) / (1 - FIRST**self.step)
        keep = min(AVERAGING, self.step / (self.step + 10.0))
        self.now.odds -= np.float32(rate * DECAY) * (self.now.odds - self.middle)
        parts = (self.now.odds, self.now.base), (self.average.odds, self.average.base)
        for i, gradient in enumerate((odds, base)):
            self.first[i] += np.float32(1 - FIRST) * (gradient - self.first[i])
            self.second[i] += np.float32(1 - SECOND) * (gradient * gradient - self.second[i])
            parts[0][i][...] -= (
                np.float32(bias) * self.first[i] / (np.sqrt(self.second[i]) + np.float32(TINY))
            )
            parts[1][i][...] += np.float32(1 - keep) * (parts[0][i] - parts[1][i])

    def _held_loss(self, parameters: Parameters) -> float:
        """Return the average loss of the held-out rows, complete."""
        off, total = np.logaddexp(np.float32(0), parameters.odds).sum(axis=0), 0.0
        held, k = self.held, self.design.n_classes
        for chosen in np.array_split(
            np.arange(held.rows.n_rows), -(-held.rows.n_rows // (8 * LARGEST_BATCH))
        ):
            scores = dense(held.rows, chosen) @ parameters.odds + (parameters.base - off)
            classes = np.logaddexp.reduce(scores.reshape(chosen.size, k, -1), axis=2)
            right = log_softmax(classes, axis=1)[np.arange(chosen.size), held.labels[chosen]]
            total -= float(held.weights[chosen] @ right)
        return total / held.total
