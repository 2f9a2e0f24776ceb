"""Checkpoints: the states of all runs in one file, replaced atomically.

A checkpoint has the format of a model file and is read with the same checks, for every family. It
holds states of EM, which are mixtures, and states of training, which are arrays that the family
compares with those it expects.
"""

import threading
import time
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from exchangeable.families import model_kinds
from exchangeable.families.mixture import Mixture
from exchangeable.fitting.em import EMState
from exchangeable.fitting.training import TrainingState
from exchangeable.storage import archive
from exchangeable.storage.archive import ModelFileError
from exchangeable.storage.checks import CLOSE, numbers, probabilities

FORMAT = "exchangeable checkpoint"
VERSION = 2
HISTORIES = ("history", "valid_history")
NUMBERS = (*HISTORIES, "totals")
COUNTS = ("best_iter", "phase", "stale", "stage")
SECONDS_APART = 1.0
"""Minimum number of seconds between two writes, because a write waits for the disk."""
Arrays = dict[str, npt.NDArray[Any]]
RunState = EMState | TrainingState


class Checkpoint:
    """The states of all runs, saved to a file while they continue.

    The file is written when the first run reports, then about once a second, and when the block
    ends for whatever reason. A process that is killed loses the iterations of one second. Reports
    after the block are ignored.

    Parameters
    ----------
    path : Path or None
        The file, which is read if it exists; None to save nothing.
    n_runs : int
        Number of runs.
    purpose : dict
        A description of the fit; a file written for a different fit is rejected.
    """

    def __init__(self, path: Path | None, n_runs: int, purpose: dict[str, Any]) -> None:
        self.states: list[RunState | None] = [None] * n_runs
        self._path, self._purpose, self._lock = path, purpose, threading.Lock()
        self._unsaved, self._next, self._closed = False, -np.inf, False
        if path is not None and path.exists():
            self.states = load_states(path, n_runs, purpose)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._closed = True
            if self._unsaved:
                self._save()

    def update(self, number: int, state: RunState) -> None:
        """Record the state of a run."""
        if self._path is None:
            return
        with self._lock:
            if self._closed:
                return
            self.states[number], self._unsaved = state, True
            if time.monotonic() >= self._next:
                self._save()

    def _save(self) -> None:
        assert self._path is not None
        save_states(self._path, self.states, self._purpose)
        self._unsaved, self._next = False, time.monotonic() + SECONDS_APART


def save_states(path: Path, states: list[RunState | None], purpose: dict[str, Any]) -> None:
    """Write the states of the runs (None for those not started), replacing the file atomically."""
    arrays: Arrays = {}
    runs = [None if s is None else _encode(s, f"{i}.", arrays) for i, s in enumerate(states)]
    header = {"format": FORMAT, "version": VERSION, "purpose": purpose, "runs": runs}
    archive.write(path, header, arrays)


def load_states(path: Path, n_runs: int, purpose: dict[str, Any]) -> list[RunState | None]:
    """Return the states in a checkpoint, rejecting one that belongs to a different fit."""
    try:
        header, arrays = archive.read(path)
        if header.get("format") != FORMAT or header.get("version") != VERSION:
            raise ModelFileError("is not a checkpoint of this version of the library")
        kept, runs = header.get("purpose"), header.get("runs")
        if not isinstance(kept, dict) or not isinstance(runs, list) or len(runs) != n_runs:
            raise ModelFileError("does not hold the runs of this fit")
        differing = sorted(key for key in purpose if kept.get(key) != purpose[key])
        if differing:
            was = ", ".join(f"{key} was {kept.get(key)}, is {purpose[key]}" for key in differing)
            raise ValueError(f"the checkpoint {path} belongs to another fit: {was}; remove it")
        with archive.refusing(path):
            return [
                None if run is None else _decode(run, f"{number}.", arrays)
                for number, run in enumerate(runs)
            ]
    except (ModelFileError, OSError) as error:
        raise ValueError(f"{path} is not a checkpoint of this library: {error}") from error


def _encode(state: RunState, prefix: str, arrays: Arrays) -> dict[str, Any]:
    """Return a state as JSON, and add its arrays to the others."""
    if isinstance(state, TrainingState):
        return _encode_training(state, prefix, arrays)
    for name in NUMBERS:
        arrays[f"{prefix}{name}"] = np.asarray(getattr(state, name), dtype=np.float64)
    arrays[f"{prefix}mark"] = np.array([state.mark, state.fell])
    encoded: dict[str, Any] = {name: int(getattr(state, name)) for name in COUNTS}
    encoded["converged"] = bool(state.converged)
    encoded["best is latest"] = state.best is state.mixture
    mixtures = {"mixture": state.mixture, "before": state.before}
    if state.best is not state.mixture:
        mixtures["best"] = state.best
    for name, mixture in mixtures.items():
        if mixture is not None:
            encoded[name] = encode_mixture(mixture, f"{prefix}{name}.", arrays)
    return encoded


def _encode_training(state: TrainingState, prefix: str, arrays: Arrays) -> dict[str, Any]:
    for name in HISTORIES:
        arrays[f"{prefix}{name}"] = np.asarray(getattr(state, name), dtype=np.float64)
    for name, part in state.parts.items():
        arrays[f"{prefix}parts.{name}"] = np.asarray(part)
    return {"parts": list(state.parts)}


def encode_mixture(mixture: Mixture, prefix: str, arrays: Arrays) -> dict[str, Any]:
    """Return a mixture as JSON, and add its arrays to the others."""
    arrays[f"{prefix}log_prior"] = mixture.log_prior
    parameters = mixture.model.encode()
    for name, array in parameters.items():
        arrays[f"{prefix}{name}"] = array
    return {"kind": mixture.model.kind, "arrays": list(parameters)}


def _decode(run: Any, prefix: str, arrays: Any) -> RunState:
    if not isinstance(run, dict):
        raise ModelFileError("holds a run that is not an object")
    if "parts" in run:
        return _decode_training(run["parts"], prefix, arrays)
    mixture = decode_mixture(run.get("mixture"), f"{prefix}mixture.", arrays)
    best = mixture
    if not run.get("best is latest"):
        best = decode_mixture(run.get("best"), f"{prefix}best.", arrays)
    before = run.get("before")
    k = mixture.log_prior.size
    history = _line(arrays, f"{prefix}history", None)
    valid_history = _line(arrays, f"{prefix}valid_history", None)
    mark, fell = _line(arrays, f"{prefix}mark", 2)
    counts: dict[str, Any] = {name: run.get(name) for name in COUNTS}
    if not all(type(count) is int and 0 <= count < 1 << 31 for count in counts.values()):
        raise ModelFileError(f"holds a run with counts {counts}")
    if not history.size or counts["best_iter"] >= history.size:
        raise ModelFileError("holds a run without a history")
    if valid_history.size not in (0, history.size):
        raise ModelFileError("holds a run with histories of different lengths")
    return EMState(
        mixture,
        best,
        numbers(_array(arrays, f"{prefix}totals"), "totals", (k,), low=0, high=np.inf),
        history.tolist(),
        valid_history.tolist(),
        mark=float(mark),
        before=None if before is None else decode_mixture(before, f"{prefix}before.", arrays),
        converged=run.get("converged") is True,
        fell=float(fell),
        **counts,
    )


def _decode_training(names: Any, prefix: str, arrays: Any) -> TrainingState:
    if not isinstance(names, list):
        raise ModelFileError("holds a training without its parts")
    history, valid_history = (_line(arrays, f"{prefix}{name}", None) for name in HISTORIES)
    if not history.size or history.size != valid_history.size:
        raise ModelFileError("holds a training with histories of different lengths, or none")
    parts = {str(name): _array(arrays, f"{prefix}parts.{name}") for name in names}
    return TrainingState(history.tolist(), valid_history.tolist(), False, parts)


def decode_mixture(value: Any, prefix: str, arrays: Any) -> Mixture:
    """Return the mixture encoded by JSON and arrays, after checking everything."""
    names = value.get("arrays") if isinstance(value, dict) else None
    kind = model_kinds().get(str(value.get("kind"))) if isinstance(value, dict) else None
    if kind is None or not isinstance(names, list):
        raise ModelFileError("holds a model that is not known here")
    model = kind.read({str(name): _array(arrays, f"{prefix}{name}") for name in names})
    log_prior = numbers(
        _array(arrays, f"{prefix}log_prior"),
        "log_prior",
        (model.n_classes,),
        low=-np.inf,
        high=CLOSE,
    )
    probabilities(log_prior, "log_prior")
    return Mixture(model, log_prior)


def _line(arrays: Any, name: str, size: int | None) -> npt.NDArray[Any]:
    array = _array(arrays, name)
    shape = (array.size if size is None else size,)
    return numbers(array, name, shape, low=-np.inf, high=np.inf)


def _array(arrays: Any, name: str) -> npt.NDArray[Any]:
    if name not in arrays:
        raise ModelFileError(f"lacks {name}")
    array: npt.NDArray[Any] = arrays[name]
    return array
