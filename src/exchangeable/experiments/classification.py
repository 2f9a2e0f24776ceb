"""The cells of Tables 1 to 3: properties, pairs of classes, and all classes."""

from collections.abc import Callable, Sequence

from exchangeable.experiments.classifiers import Entrant, entrants_of, run_entrant
from exchangeable.experiments.problems import BOOLEAN, DATASETS, load, run_names
from exchangeable.experiments.scale import Scale
from exchangeable.experiments.store import Row
from exchangeable.experiments.tasks import Task

BOOLEAN_SECONDS, IMAGE_FACTOR, ALL_CLASSES_FACTOR = 15.0, 4.0, 20.0


def classification_tasks(
    table: str,
    datasets: Sequence[str],
    scale: Scale,
    n_jobs: int | None = None,
    download: bool = False,
) -> list[Task]:
    """Return the cells of "two-class" or "multi-class".

    Fast classifiers are run first, then slow ones on pairs of classes, then slow ones on all
    classes.
    """
    tasks = []
    for position, dataset in enumerate(name for name in DATASETS if name in datasets):
        for number, run in enumerate(run_names(table, dataset, scale)):
            for entrant in entrants_of(scale):
                cell = {"dataset": dataset, "model": entrant.name, "run": run}
                work = _work(table, dataset, run, entrant, scale, n_jobs, download)
                cost = _cost(table, dataset, entrant)
                rank = (_stage(table, entrant), dataset in BOOLEAN, cost > 60, position, number)
                tasks.append(Task(table, cell, work, cost, rank))
    return tasks


def _work(
    table: str,
    dataset: str,
    run: str,
    entrant: Entrant,
    scale: Scale,
    n_jobs: int | None,
    download: bool,
) -> Callable[[], Row]:
    def work() -> Row:
        limit = None
        if entrant.slow:
            limit = scale.slow_rows if dataset in BOOLEAN else scale.max_rows
        problem = load(dataset, run, scale, download)
        return run_entrant(entrant, problem, limit, n_jobs, keep_right=table == "multi-class")

    return work


def _stage(table: str, entrant: Entrant) -> int:
    if not entrant.slow:
        return 0
    return 2 if table == "two-class" else 3


def _cost(table: str, dataset: str, entrant: Entrant) -> float:
    cost = entrant.seconds
    if dataset in BOOLEAN:
        cost += BOOLEAN_SECONDS if entrant.slow else 3.0
    if dataset == "mnist":
        cost *= IMAGE_FACTOR
    return cost * (ALL_CLASSES_FACTOR if table == "multi-class" else 1.0)
