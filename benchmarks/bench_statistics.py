"""The time to compute set sizes, compared with the arithmetic that is necessary for them.

`Count` needs three log-gammas per value, `Transitions` one log-add-exp per variable, value, state
and symbol. The ratio is how much longer the library takes than that arithmetic alone in NumPy.
"""

import math

import numpy as np
from scipy.special import gammaln
from timing import best_of

from exchangeable import Count, Transitions


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


if __name__ == "__main__":
    count(50_000)
    transitions(2_000)
