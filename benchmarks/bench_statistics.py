"""The time to compute set sizes, compared with the arithmetic that is necessary for them.

`Count` needs three log-gammas per value, `Transitions` one log-add-exp per variable, value, state
and symbol. The ratio is how much longer the library takes than that arithmetic alone in NumPy.

Then an iteration of EM over blocks with statistics is compared with one over blocks of counts: the
processor time of one thread, 20,000 series of 100 steps in five blocks, ten components.
"""

import math
import time
import warnings
from typing import Any

import numpy as np
from scipy.special import gammaln
from timing import best_of

from exchangeable import Count, ExchangeableMixture, Transitions


def count(n: int) -> None:
    """Print the time of `Count(n).log_sizes` and its ratio to three log-gammas."""
    statistic = Count(n)
    total = np.logaddexp.reduce(statistic.log_sizes({0: 1}))
    assert math.isclose(total, (n - 1) * math.log(2), rel_tol=1e-9)
    x = np.arange(n + 1.0)
    ours = best_of(lambda: statistic.log_sizes({0: 1}))
    limit = best_of(lambda: (gammaln(x + 1), gammaln(x + 2), gammaln(x + 3)))
    print(f"Count({n}).log_sizes        {ours * 1e3:8.2f} ms   {ours / limit:5.2f} x 3 gammaln")


def transitions(n: int) -> None:
    """Print the times of `Transitions(n)` and their ratios to the necessary log-add-exps."""
    statistic = Transitions(n)
    assert math.isclose(statistic.log_sizes()[1], math.log(math.comb(n + 1, 3)), rel_tol=1e-9)
    row, other = np.random.default_rng(0).normal(size=(2, 2, statistic.n_values))

    def arithmetic() -> None:
        for _ in range(2 * n):
            np.logaddexp(row, other)

    limit = best_of(arithmetic, repeats=3)
    sizes = best_of(lambda: statistic.log_sizes({0: 1}), repeats=3)
    draws = best_of(lambda: statistic.sample(n // 4, size=100, random_state=0), repeats=3)
    masses = best_of(lambda: statistic.log_masses(np.zeros(statistic.n_values)), repeats=1)
    for name, seconds in (("log_sizes", sizes), ("sample 100", draws), ("log_masses", masses)):
        print(f"Transitions({n}).{name:11} {seconds:6.2f} s   {seconds / limit:5.2f} x logaddexp")


def iteration(X: Any, blocks: Any) -> float:
    """Return the processor seconds of an iteration of EM: the extra time of 22 over 2."""

    def fit(n_iterations: int) -> float:
        mixture = ExchangeableMixture(
            10,
            blocks=blocks,
            init="random",
            tol=0.0,
            max_iter=n_iterations,
            random_state=0,
            n_jobs=1,
        )
        begin = time.process_time()
        mixture.fit(X)
        return time.process_time() - begin

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit(2)
        few, many = np.min([(fit(2), fit(22)) for _ in range(5)], axis=0)
    return float(many - few) / 20


def em() -> None:
    """Print the time of an iteration over statistics, and its ratio to counts."""
    rng = np.random.default_rng(0)
    switch = np.where(rng.random(20_000) < 0.5, 0.1, 0.45)[:, None]
    X = np.cumsum(rng.random((20_000, 100)) < switch, axis=1) % 2
    parts = [range(first, first + 20) for first in range(0, 100, 20)]
    counts = iteration(X, [list(part) for part in parts])
    print(f"EM over counts           {counts * 1e3:8.2f} ms")
    for name in ("runs", "transitions", "longest run"):
        seconds = iteration(X, [(part, name) for part in parts])
        print(f"EM over {name:16} {seconds * 1e3:8.2f} ms   {seconds / counts:5.2f} x counts")


if __name__ == "__main__":
    count(50_000)
    transitions(2_000)
    em()
