"""The time of questions about rows with holes, compared with scoring complete rows.

10,000 rows of 1,000 variables, half of the entries unknown; the unit is `predict_log_proba` of the
same rows without holes. One answer is first checked against the sum over all completions.
"""

import itertools

import numpy as np
from timing import best_of

from exchangeable import ExchangeableClassifier, ExchangeableMixture

N_ROWS, N_VARIABLES = 10_000, 1_000


def rows():
    """Return rows of correlated variables with different frequencies, and their classes."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, N_ROWS)
    strength = rng.beta(2, 4, (N_ROWS, 1)) * np.where(kind[:, None] == 0, 1.0, 0.6)
    return (rng.random((N_ROWS, N_VARIABLES)) < strength * rng.random(N_VARIABLES)), kind


def check(model, row, n_holes=8):
    """Check that the probability of a row with a few holes is the sum over its completions."""
    holed = row.copy()
    holed[:n_holes] = np.nan
    states = np.repeat(row[None], 2**n_holes, axis=0)
    states[:, :n_holes] = list(itertools.product([0, 1], repeat=n_holes))
    total = np.logaddexp.reduce(model.score_samples(states))
    assert abs(model.score_samples(holed[None])[0] - total) < 1e-8


def main() -> None:
    """Print seconds and ratios for every model and question."""
    X, kind = rows()
    X = X.astype(np.float64)
    holed = np.where(np.random.default_rng(1).random(X.shape) < 0.5, np.nan, X)
    models = {
        "classifier, one block": ExchangeableClassifier(blocks="full").fit(X, kind),
        "classifier, default": ExchangeableClassifier().fit(X, kind),
        "classifier, naive Bayes": ExchangeableClassifier(blocks="independent").fit(X, kind),
        "mixture of 20, sweep": ExchangeableMixture(
            20, blocks="welch", random_state=0, tol=0.5
        ).fit(X),
    }
    print(
        f"{N_ROWS} rows of {N_VARIABLES} variables, half of the entries unknown; complete rows = 1"
    )
    for name, model in models.items():
        check(model, X[0])
        unit = best_of(lambda model=model: model.predict_log_proba(X))
        questions = {
            "predict_log_proba": lambda model=model: model.predict_log_proba(holed),
            "marginals": lambda model=model: model.marginals(holed),
            "most_probable": lambda model=model: model.most_probable(holed),
            "impute, draw": lambda model=model: model.impute(holed, "draw", random_state=0),
        }
        print(f"  {name}: {model.n_blocks_.mean():.0f} blocks, complete {1e3 * unit:.0f} ms")
        for question, ask in questions.items():
            seconds = best_of(ask, 3)
            print(
                f"    {question:18} {1e3 * seconds:6.0f} ms   {seconds / unit:5.1f} x", flush=True
            )


if __name__ == "__main__":
    main()
