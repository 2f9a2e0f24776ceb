"""Fits that are not EM: a family trains itself, and the run is reported and stopped as others."""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Event
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.families.contract import Trainer
from exchangeable.fitting.em import EMState, StopRule


@dataclass(frozen=True)
class TrainingState:
    """How far training is.

    Attributes
    ----------
    n_iter : int
        Number of iterations so far.
    ended : bool
        Whether there is nothing left to do.
    told : str
        How it goes, in a few words.
    """

    n_iter: int
    ended: bool
    told: str


def run_training(
    trainer: Trainer,
    data: Any,
    rng: np.random.Generator,
    rule: StopRule,
    report: Callable[[TrainingState], None] = lambda state: None,
    stop: Event | None = None,
    scored: bool = True,
) -> EMState:
    """Train until the family has enough, `max_iter`, or `stop` is set; return the best found.

    The last entries of the histories are those of the mixture that is returned; where rows are not
    to be `scored`, which takes long with many components, or training was stopped, these are as
    training saw them.
    """
    history, valid_history = list[float](), list[float]()
    for seen, held in trainer.train(data, rng, rule.tol, rule.max_iter):
        history.append(seen)
        valid_history.append(held)
        told = f"iteration {len(history)}, log-likelihood {held:.4f} of held-out rows"
        report(TrainingState(len(history), trainer.converged, told))
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
