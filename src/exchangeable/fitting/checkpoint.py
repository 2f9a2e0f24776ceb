"""Stopping and going on: the states of all EM runs in one file, replaced in one step."""

import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from exchangeable.families.blocks.model import BlockModel
from exchangeable.fitting.structural_em import EMState
from exchangeable.partitions import Partition


def save_states(path: Path, states: list[EMState | None], purpose: dict[str, Any]) -> None:
    """Write the states of the runs (None for those not begun), replacing the file in one step."""
    arrays: dict[str, Any] = {"purpose": np.array(json.dumps(purpose))}
    for number, state in enumerate(states):
        if state is not None:
            arrays[f"{number}.labels"] = np.stack([p.labels for p in state.model.partitions])
            arrays[f"{number}.histograms"] = np.concatenate(state.model.histograms)
            arrays[f"{number}.totals"] = state.model.totals
            arrays[f"{number}.log_prior"] = state.log_prior
            arrays[f"{number}.history"] = np.array(state.history)
            arrays[f"{number}.phase"] = np.array(state.phase)
            arrays[f"{number}.converged"] = np.array(state.converged)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, **arrays)
        os.replace(name, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)


def load_states(
    path: Path, n_runs: int, purpose: dict[str, Any], alpha: float
) -> list[EMState | None]:
    """Return the states in a checkpoint, refusing one that was made for something else."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = dict(file)
            kept = json.loads(str(arrays["purpose"]))
    except (BadZipFile, KeyError, ValueError, EOFError, OSError) as error:
        raise ValueError(f"{path} is not a checkpoint of this library: {error}") from error
    differing = sorted(key for key in purpose if kept.get(key) != purpose[key])
    if differing:
        told = ", ".join(f"{key} was {kept.get(key)}, is {purpose[key]}" for key in differing)
        raise ValueError(f"the checkpoint {path} belongs to another fit: {told}; remove it")
    return [_state(arrays, number, alpha) for number in range(n_runs)]


def _state(arrays: dict[str, Any], number: int, alpha: float) -> EMState | None:
    if f"{number}.labels" not in arrays:
        return None
    partitions = [Partition.from_labels(labels) for labels in arrays[f"{number}.labels"]]
    ends = np.cumsum([partition.table_size for partition in partitions])[:-1]
    histograms = np.split(arrays[f"{number}.histograms"], ends)
    model = BlockModel(partitions, histograms, arrays[f"{number}.totals"])
    model.set_tables(alpha, 1)
    return EMState(
        model,
        arrays[f"{number}.log_prior"],
        arrays[f"{number}.history"].tolist(),
        int(arrays[f"{number}.phase"]),
        bool(arrays[f"{number}.converged"]),
    )
