"""The cells to be computed: what each one is, its approximate cost, and running them in order."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from exchangeable.experiments.store import Row, Store

KEYS = {
    "two-class": ("dataset", "model", "run"),
    "multi-class": ("dataset", "model", "run"),
    "density": ("dataset", "model"),
    "theorem": ("function", "model", "n_train", "seed"),
    "speed": ("dataset", "model"),
}
"""The columns that identify a cell, for each table that has its own cells."""


@dataclass(frozen=True)
class Task:
    """One cell.

    Attributes
    ----------
    table : str
        The table it belongs to.
    cell : dict
        The values of the table's key.
    work : callable
        Returns the measurements.
    cost : float
        Approximate number of seconds.
    rank : tuple
        Tasks run in the order of their ranks.
    """

    table: str
    cell: Row
    work: Callable[[], Row]
    cost: float = 1.0
    rank: tuple[Any, ...] = ()


def open_stores(folder: Path) -> dict[str, Store]:
    """Return the file of every table in a folder of results."""
    return {
        table: Store(folder / f"{table.replace('-', '_')}.csv", key) for table, key in KEYS.items()
    }


def open_tasks(tasks: Sequence[Task], stores: dict[str, Store]) -> list[Task]:
    """Return the tasks that are not finished, in their order."""
    done = {
        table: {tuple(str(row[name]) for name in store.key) for row in store.rows}
        for table, store in stores.items()
    }
    wanted = [
        task
        for task in tasks
        if tuple(str(task.cell[name]) for name in KEYS[task.table]) not in done[task.table]
    ]
    return sorted(wanted, key=lambda task: task.rank)


def run_tasks(tasks: Sequence[Task], stores: dict[str, Store], console: Console) -> list[str]:
    """Run tasks, store each cell when it is finished, and return what could not be run and why.

    If a data set is missing, all its cells are left out.
    """
    columns = (
        TextColumn("{task.description:44.44}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    missing: dict[str, str] = {}
    with Progress(*columns, console=console, speed_estimate_period=600) as progress:
        bar = progress.add_task("", total=sum(task.cost for task in tasks))
        for number, task in enumerate(tasks, start=1):
            name = " ".join(str(value) for value in task.cell.values())
            progress.update(bar, description=f"{number}/{len(tasks)} {task.table} {name}")
            dataset = str(task.cell.get("dataset"))
            if dataset not in missing:
                began = time.perf_counter()
                try:
                    measured = task.work()
                except OSError as error:
                    missing[dataset] = str(error)
                else:
                    seconds = f"{time.perf_counter() - began:.2f}"
                    stores[task.table].add({**task.cell, **measured, "seconds": seconds})
            progress.advance(bar, task.cost)
    return [f"{name}: {reason}" for name, reason in missing.items()]
