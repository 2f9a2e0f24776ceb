"""Fits other than EM: the family trains itself, and the run is reported and stopped as usual."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Event
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.families.contract import Begun, Trainer
from exchangeable.fitting.em import EMState, StopRule


@dataclass(frozen=True)
class TrainingState:
    """The state of training, complete after every iteration.

    Attributes
    ----------
    history, valid_history : list of float
        Log-likelihood of rows and held-out rows after each iteration, as computed in training.
    ended : bool
        Whether training has ended.
    parts : mapping from name to array
        The state that the family needs to continue.
    """

    history: list[float]
    valid_history: list[float]
    ended: bool
    parts: Mapping[str, Any]

    @property
    def n_iter(self) -> int:
        """Number of iterations so far."""
        return len(self.history)

    @property
    def told(self) -> str:
        """The progress, in a few words."""
        held = self.valid_history[-1]
        return f"iteration {self.n_iter}, log-likelihood {held:.4f} of held-out rows"


def run_training(
    trainer: Trainer,
    data: Any,
    rng: np.random.Generator,
    rule: StopRule,
    report: Callable[[TrainingState], None] = lambda state: None,
    stop: Event | None = None,
    scored: bool = True,
    state: TrainingState | None = None,
) -> EMState:
    """Train until convergence, `max_iter`, or until `stop` is set; return the best result.

    The last entries of the histories are those of the returned mixture. If rows are not to be
    `scored`, which takes long with many components, or training was stopped, they are as computed
    in training. Training continues from `state` if it was started already.
    """
    history, valid_history = list[float](), list[float]()
    begun = None
    if state is not None:
        history, valid_history = list(state.history), list(state.valid_history)
        begun = Begun(state.n_iter, state.parts)
    for seen, held in trainer.train(data, rng, rule.tol, rule.max_iter, begun):
        history.append(seen)
        valid_history.append(held)
        so_far = list(history), list(valid_history)
        report(TrainingState(*so_far, trainer.converged, trainer.state()))
        if stop is not None and stop.is_set():
            break
    mixture = trainer.mixture(data)
    valid = trainer.problem.valid_rows
    each: FloatArray | None = None
    stopped = stop is not None and stop.is_set()
    if (scored and not stopped) or not history:
        each, held_out = trainer.scores(mixture, data.n_jobs)
        history.append(float(data.examples.weights @ each) / data.total)
        if valid is not None:
            valid_history.append(float(valid.weights @ held_out) / valid.total)
    else:
        history.append(history[-1])
        valid_history.append(valid_history[-1])
    return EMState(
        mixture,
        mixture,
        np.exp(mixture.log_prior) * data.total,
        history,
        [] if valid is None else valid_history,
        best_iter=len(history) - 1,
        converged=trainer.converged,
        each=each,
    )
