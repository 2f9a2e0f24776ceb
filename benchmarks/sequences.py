"""On/off series of 100 steps from two regimes: order inside a model, beside counts and an HMM.

``python benchmarks/sequences.py`` prints the average log-likelihood of held-out rows, and how many
rows are told to be of the right regime. The truth is a mixture of two Markov chains; hmmlearn takes
complete rows only, so that the columns with holes have none of it.
"""

import time
import warnings
from typing import Any

import numpy as np
from hmmlearn.hmm import CategoricalHMM
from sklearn.metrics import accuracy_score

from exchangeable import ExchangeableMixture

N_STEPS, N_TRAIN, N_TEST, SEGMENT = 100, 1000, 2000, 20
CHAINS = {
    "sticky and restless": ((0.08, 0.08), (0.45, 0.45)),
    "rare bursts and frequent switches": ((0.03, 0.2), (0.3, 0.25)),
}
"""P(0 → 1) and P(1 → 0) of the two regimes."""
HOLES = 0.3


def draw(regimes: Any, n: int, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """Return rows, their regimes, and the log-probability of each under the truth."""
    kind = rng.integers(0, 2, size=n)
    X = np.empty((n, N_STEPS), dtype=np.int64)
    log_p = np.full((n, 2), -np.log(2))
    rise, fall = np.array(regimes)[kind].T
    start = np.array([a / (a + b) for a, b in regimes])
    X[:, 0] = rng.random(n) < start[kind]
    log_p += np.log(np.where(X[:, :1] == 1, start, 1 - start))
    for t in range(1, N_STEPS):
        on = np.where(X[:, t - 1] == 1, 1 - fall, rise)
        X[:, t] = rng.random(n) < on
        for y, (up, down) in enumerate(regimes):
            p = np.where(X[:, t - 1] == 1, 1 - down, up)
            log_p[:, y] += np.log(np.where(X[:, t] == 1, p, 1 - p))
    return X, kind, log_p


def agreement(kind: Any, predicted: Any) -> float:
    """Return the share of rows of the right regime, whatever the components are called."""
    right = accuracy_score(kind, predicted)
    return max(right, 1 - right)


def segments(statistic: str) -> list[Any]:
    """Return blocks of neighbouring steps with a statistic each."""
    starts = range(0, N_STEPS, SEGMENT)
    return [(range(start, start + SEGMENT), statistic) for start in starts]


def main() -> None:
    """Print a table per pair of regimes."""
    rows: dict[str, dict[str, Any]] = {
        "naive Bayes, two components": {"blocks": "independent"},
        "counts (the default), two components": {},
        "runs of 5 x 20 steps, two components": {"blocks": segments("runs")},
        "transitions of 5 x 20 steps, two components": {"blocks": segments("transitions")},
        "runs of 100 steps, one component": {
            "n_components": 1,
            "blocks": [(range(N_STEPS), "runs")],
        },
    }
    for name, regimes in CHAINS.items():
        rng = np.random.default_rng(0)
        train, _, _ = draw(regimes, N_TRAIN, rng)
        test, kind, log_p = draw(regimes, N_TEST, rng)
        hidden = np.where(rng.random(train.shape) < HOLES, np.nan, train)
        truth = np.logaddexp.reduce(log_p, axis=1).mean()
        print(f"\n{name}: the truth scores {truth:.3f}, and tells", end=" ")
        print(f"{agreement(kind, log_p.argmax(axis=1)):.3f} of the rows apart")
        print("model | held-out | apart | seconds | fitted with 30 % holes: held-out | apart")
        for label, options in rows.items():
            cells = []
            for data in (train, hidden):
                begin = time.perf_counter()
                settings = {"n_components": 2, "n_init": 5, "random_state": 0} | options
                model = ExchangeableMixture(**settings).fit(data)
                seconds = time.perf_counter() - begin
                several = model.n_components > 1
                apart = f"{agreement(kind, model.predict(test)):.3f}" if several else "-"
                cells.append((model.score(test), apart, seconds))
            (score, apart, seconds), (other, less, _) = cells
            print(f"{label} | {score:.3f} | {apart} | {seconds:.1f} | {other:.3f} | {less}")
        for n_states in (2, 4):
            begin = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                hmm = CategoricalHMM(n_states, n_iter=60, tol=1e-3, random_state=0)
                hmm.fit(train.reshape(-1, 1), [N_STEPS] * len(train))
            seconds = time.perf_counter() - begin
            score = hmm.score(test.reshape(-1, 1), [N_STEPS] * len(test)) / len(test)
            print(f"CategoricalHMM, {n_states} states | {score:.3f} | - | {seconds:.1f} | - | -")


if __name__ == "__main__":
    main()
