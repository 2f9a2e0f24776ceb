"""The paper's experiments as one list of cells."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from exchangeable.datasets._density import DENSITY_SETS
from exchangeable.experiments.classification import classification_tasks
from exchangeable.experiments.classifiers import ENTRANTS
from exchangeable.experiments.density import LEARN_SPN, density_tasks
from exchangeable.experiments.density import MODELS as DENSITY_MODELS
from exchangeable.experiments.problems import DATASETS
from exchangeable.experiments.scale import Scale
from exchangeable.experiments.speed import speed_tasks
from exchangeable.experiments.tasks import Task, open_stores, open_tasks, run_tasks
from exchangeable.experiments.theorem import theorem_tasks

TABLES = ("properties", "two-class", "multi-class", "density", "theorem", "speed")
ALL_DATASETS = (*DATASETS, *DENSITY_SETS)
ALL_MODELS = tuple(dict.fromkeys([e.name for e in ENTRANTS] + [*DENSITY_MODELS, LEARN_SPN]))


def all_tasks(
    tables: Sequence[str],
    scale: Scale,
    datasets: Sequence[str] = (),
    models: Sequence[str] = (),
    n_jobs: int | None = None,
    download: bool = False,
) -> list[Task]:
    """Return the cells of some tables, of all data sets and models unless some are named.

    Table 1, the properties, is made of the cells of the paper's sweep on pairs of classes.
    """
    names = datasets or ALL_DATASETS
    tasks: list[Task] = []
    for table in ("two-class", "multi-class"):
        cells = classification_tasks(table, names, scale, n_jobs, download)
        if table in tables:
            tasks += cells
        elif table == "two-class" and "properties" in tables:
            tasks += [task for task in cells if task.cell["model"] == "MEVM"]
    if "density" in tables:
        tasks += density_tasks(names, scale, n_jobs, download)
    if "theorem" in tables and not datasets:
        tasks += theorem_tasks(scale, n_jobs)
    if "speed" in tables:
        tasks += speed_tasks(names, scale, n_jobs, download)
    return [task for task in tasks if not models or task.cell["model"] in models]


def run_experiments(
    tasks: Sequence[Task], folder: Path, console: Console, again: bool = False
) -> list[str]:
    """Run the cells that are not in the folder yet (with `again` all); return what was left out."""
    stores = open_stores(folder)
    wanted = sorted(tasks, key=lambda t: t.rank) if again else open_tasks(tasks, stores)
    return run_tasks(wanted, stores, console)
