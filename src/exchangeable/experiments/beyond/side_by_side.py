"""The density benchmark in several processes at a time, one per data set.

Each process stores its cells in its own folder, so that one that dies or is late does not affect
the others. Whenever a cell has ended, all results so far are packed again: cells, log-probabilities
of test rows and logs, in three files of one folder. `merge` adds such folders to the results.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from exchangeable.experiments.beyond.cells import KEY, Beyond
from exchangeable.experiments.store import Store

CELLS, ROWS, LOG = "cells.csv", "rows.npz", "log.txt"
"""The files that are packed."""
OWN = "beyond.csv"
"""The results of one process, in its folder."""
SECONDS_APART = 1.0
"""Seconds between checks of the processes."""
MOST, MORE_THAN_EQUAL = 0.75, 1.5
"""The fraction of a device's memory that a process may use: at most this, and in parallel this many
times its share, since not all need theirs at once."""
LAST_LINES = 12
"""Number of lines of the log shown for a process that failed."""


@dataclass
class SideBySide:
    """Processes of the benchmark.

    Attributes
    ----------
    folder : Path
        Where their results are packed.
    options : sequence of str
        Their arguments, as for ``python -m exchangeable.experiments.beyond``; the data set and the
        results are added.
    processes : int
        Number of parallel processes.
    seconds : float
        Processes that are running after this many seconds are stopped.
    tell : callable
        Called with a line of text when something starts or ends.
    """

    folder: Path
    options: Sequence[str]
    processes: int
    seconds: float = float("inf")
    tell: Callable[[str], None] = lambda text: None
    _packed: dict[Path, float] = field(default_factory=dict)

    def run(self, sets: Sequence[str]) -> None:
        """Run all cells of some sets, and pack all results whenever one has ended."""
        self.folder.mkdir(parents=True, exist_ok=True)
        ends = time.monotonic() + self.seconds
        waiting, working = list(sets), dict[str, subprocess.Popen[bytes]]()
        try:
            while (waiting or working) and time.monotonic() < ends:
                while waiting and len(working) < self.processes:
                    name = waiting.pop(0)
                    working[name] = self._begin(name)
                time.sleep(SECONDS_APART)
                for name in [name for name, each in working.items() if each.poll() is not None]:
                    status = working.pop(name).returncode
                    if status:
                        self.tell(f"{name} has failed ({status}): {self._last_words(name)}")
                self.pack()
        finally:
            for name, process in working.items():
                self.tell(f"{name} is stopped: there is no time left")
                process.kill()
                process.wait()
            self.pack()
        if waiting:
            self.tell(f"there was no time for {', '.join(waiting)}")

    def own(self, name: str) -> Path:
        """Return the folder of one process."""
        return self.folder.with_name(f"{self.folder.name}_parts") / name

    def _begin(self, name: str) -> "subprocess.Popen[bytes]":
        own = self.own(name)
        own.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "exchangeable.experiments.beyond", *self.options]
        command += ["--sets", name, "--results", str(own / OWN)]
        part = min(MOST, MORE_THAN_EQUAL / self.processes)
        shared = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "PYTHONUNBUFFERED": "1"}
        shared["XLA_PYTHON_CLIENT_MEM_FRACTION"] = f"{part:.2f}"
        with (own / LOG).open("ab") as log:
            return subprocess.Popen(
                command, env=shared | os.environ, stdout=log, stderr=subprocess.STDOUT
            )

    def _last_words(self, name: str) -> str:
        lines = (self.own(name) / LOG).read_text(errors="replace").splitlines()
        return "\n".join(lines[-LAST_LINES:])

    def pack(self) -> None:
        """Pack all results, if anything is new."""
        found = {path: path.stat().st_mtime for path in self._parts(OWN)}
        logs = [path.read_text(errors="replace") for path in self._parts(LOG)]
        (self.folder / LOG).write_text("".join(logs))
        if found == self._packed:
            return
        cells = Store(self.folder / CELLS, KEY)
        for path in found:
            for row in Store(path, KEY).rows:
                cells.add(row)
        rows = {each.stem: np.load(each) for each in self._parts(f"{Path(OWN).stem}_rows/*.npy")}
        if rows:
            partly = self.folder.with_name(f"{self.folder.name}_parts") / ROWS
            np.savez_compressed(partly, allow_pickle=False, **rows)
            shutil.copyfile(partly, self.folder / ROWS)
        self._packed = found

    def _parts(self, pattern: str) -> list[Path]:
        return sorted(self.folder.with_name(f"{self.folder.name}_parts").glob(f"*/{pattern}"))


def merge(experiment: Beyond, folders: Sequence[Path]) -> None:
    """Add packed results to the results, with differences between cells whose rows are there."""
    added = []
    for folder in folders:
        with np.load(folder / ROWS) as rows:
            for cell in Store(folder / CELLS, KEY).rows:
                experiment.store.add({name: value for name, value in cell.items() if value})
                added.append(cell)
                if experiment.rows_of(cell).stem in rows:
                    experiment.keep_rows(cell, rows[experiment.rows_of(cell).stem])
    for cell in added:
        experiment.compare(cell)
