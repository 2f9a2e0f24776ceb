"""Models that the tests of the report page open."""

import numpy as np

from exchangeable import ExchangeableClassifier, ExchangeableMixture


def rows_of(n_rows, n_variables, n_kinds, seed=0):
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, n_kinds, size=n_rows)
    rate = rng.beta(0.5, 1.0, size=(n_kinds, 1)) * rng.random((n_kinds, n_variables))
    return (rng.random((n_rows, n_variables)) < rate[kind]).astype(np.uint8), kind


def small():
    X, y = rows_of(300, 5, 2)
    return ExchangeableClassifier().fit(X, y)


def large():
    X, y = rows_of(400, 5000, 4)
    return ExchangeableClassifier().fit(X, y)


def mixture():
    X, _ = rows_of(400, 30, 3)
    return ExchangeableMixture(4, random_state=0, tol=1e-2).fit(X)


def pooled():
    X, y = rows_of(300, 12, 3)
    return ExchangeableClassifier(pooling=2.0).fit(X, y)


def excluding():
    X, y = rows_of(60, 6, 2)
    return ExchangeableClassifier(blocks="full", alpha=0.0).fit(X, y)


def urns():
    X, _ = rows_of(300, 40, 3)
    return ExchangeableMixture(4, family="urns", tol=0.1, random_state=0).fit(X)


def urns_in_blocks():
    X, y = rows_of(300, 20, 3)
    return ExchangeableClassifier("urns", blocks=[range(8), range(8, 20)]).fit(X, y)


def of_other_kinds():
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 300)
    X = np.column_stack([rng.random(300) < 0.2 + 0.6 * kind, rng.normal(5 * kind, 1.0)])
    return ExchangeableMixture(
        2, family="mixed", kinds={0: "binary", 1: "continuous"}, n_init=2, random_state=0
    ).fit(X)


ANSWER = """(row) => {
  const a = panel.model.answer(Float64Array.from(row, (value) => value ?? NaN));
  if (!a.possible) return null;
  return {...a, posterior: [...a.posterior], gains: [...a.gains], completion: [...a.completion],
          marginals: a.marginals && [...a.marginals]};
}"""


def answer_of(page, row):
    """What the page answers if a row is known, NaN standing for the unknown; None: impossible."""
    known = [None if np.isnan(value) else float(value) for value in row]
    return page.evaluate(ANSWER, known)
