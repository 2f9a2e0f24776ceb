"""The size of the experiments: as in the paper, or small enough for a few minutes."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """Sizes of all experiments.

    Attributes
    ----------
    name : str
        Name of the scale.
    boolean_rows : int
        Training rows of the Boolean functions.
    boolean_runs : int
        Draws of each Boolean function.
    boolean_test : int
        Test rows of the Boolean functions.
    max_runs : int
        Largest number of pairs or folds of a collection.
    slow_rows : int
        Training rows of a Boolean function for slow classifiers.
    max_rows : int
        Largest number of training rows of a collection for slow classifiers.
    n_init : int
        Number of runs of EM from different starts.
    largest_density : int
        Largest number of variables of a density set.
    curve_sizes : tuple of int
        Training rows of the learning curves.
    curve_seeds : int
        Draws of each point of a learning curve.
    speed_sizes : tuple of int
        Numbers of variables of the drawn data sets on which EM is timed.
    """

    name: str
    boolean_rows: int
    boolean_runs: int
    boolean_test: int
    max_runs: int
    slow_rows: int
    max_rows: int
    n_init: int
    largest_density: int
    curve_sizes: tuple[int, ...]
    curve_seeds: int
    speed_sizes: tuple[int, ...]


FULL = Scale(
    name="full",
    boolean_rows=1_000_000,
    boolean_runs=3,
    boolean_test=10_000,
    max_runs=1_000,
    slow_rows=10_000,
    max_rows=60_000,
    n_init=10,
    largest_density=10_000,
    curve_sizes=(30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000),
    curve_seeds=5,
    speed_sizes=(50, 100, 200, 400, 800, 1_600),
)
QUICK = Scale(
    name="quick",
    boolean_rows=20_000,
    boolean_runs=2,
    boolean_test=2_000,
    max_runs=3,
    slow_rows=1_000,
    max_rows=2_000,
    n_init=2,
    largest_density=100,
    curve_sizes=(100, 1_000, 10_000),
    curve_seeds=2,
    speed_sizes=(50, 200, 800),
)
