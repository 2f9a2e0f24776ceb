"""Processes that write a file again and again and are killed at random moments.

``python killed_writers.py JOB FOLDER KILLS SEED`` kills that many, reads the file after each, and
prints how many were killed while a new file was being written.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np

import exchangeable
from exchangeable import EVM, Count, ExchangeableMixture, PackedBits, save, write_packed
from exchangeable.fitting.checkpoint import load_states, save_states
from exchangeable.storage import archive

LONGEST = 0.05
"""Seconds after which a process has been killed: of the clock, or of its own work in every other.

A busy machine may give a process nothing to do in seconds of the clock.
"""
ROWS = np.random.default_rng(0).random((4000, 400)) < 0.5


def _save(path):
    n = 200_000
    save(EVM.from_weights(Count(n), np.full(n + 1, 1 / (n + 1))), path)


def _checkpoint(path):
    path.unlink(missing_ok=True)
    mixture = ExchangeableMixture(
        4, max_iter=40, tol=0, random_state=0, checkpoint=path, n_jobs=1, family="urns"
    )
    mixture.fit(ROWS[:200, :30])


def _go_on(path):
    """Write the states of a checkpoint again, as every iteration does."""
    header = archive.read(path)[0]
    states = load_states(path, 1, header["purpose"])
    while True:
        save_states(path, states, header["purpose"])


def _packed(path):
    write_packed([ROWS] * 4, path)


def _read_checkpoint(path):
    return load_states(path, 1, archive.read(path)[0]["purpose"])[0].best_iter


JOBS = {
    "save": (_save, _save, lambda path: exchangeable.load(path).n_features_in_),
    "checkpoint": (_checkpoint, _go_on, _read_checkpoint),
    "write_packed": (_packed, _packed, lambda path: PackedBits(path, 400).observed().n_rows),
}
"""For each job what writes the first file, what a process does until it is killed, and a check."""


def kill_writers(job, path, kills, seed):
    """Return how many of the killed processes have left half a file."""
    first, again, check = JOBS[job]
    first(path)
    expected, dice, halves = check(path), random.Random(seed), 0
    for number in range(kills):
        seconds, by_work = dice.random() * LONGEST, number % 2 > 0
        pid = os.fork()
        if not pid:
            if by_work:  # nothing handles the signal: it ends the process as SIGKILL does
                signal.setitimer(signal.ITIMER_PROF, max(seconds, 1e-3))
            while True:
                again(path)
        if not by_work:
            time.sleep(seconds)
            os.kill(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
        assert os.waitstatus_to_exitcode(status) in (-signal.SIGKILL, -signal.SIGPROF)
        assert check(path) == expected
        left = list(path.parent.glob(".*.part"))
        halves += len(left)
        for part in left:
            part.unlink()
    return halves


if __name__ == "__main__":
    job, folder, kills, seed = sys.argv[1:]
    halves = kill_writers(job, Path(folder, "file"), int(kills), int(seed))
    sys.stdout.write(f"{job}: {kills} killed, {halves} while writing; all files readable\n")
