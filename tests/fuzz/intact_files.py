"""The intact files that are damaged: one per kind of model, of checkpoint and of search.

Small ones, of `saved_models`, are used in full after they were read. Wide ones have many columns or
components, so that the memory that reading takes can be seen beside their own size.
"""

import json
import warnings
from functools import partial
from importlib.util import find_spec

import numpy as np
import pandas as pd

import exchangeable
from exchangeable import (
    EVM,
    Count,
    ExchangeableClassifier,
    ExchangeableDensity,
    ExchangeableMixture,
    Generative,
    Hybrid,
    Neural,
    RaschModel,
)
from exchangeable.families.common.log_linear.scores import NO_PARENTS
from exchangeable.families.trees.factored import FactoredTrees
from exchangeable.families.trees.factors import Factors
from saved_models import KIND, MODELS, OTHER_MODELS, TABLE, TABLE_MODELS, X

rng = np.random.default_rng(11)
N_ROWS = 120


def _rows(n, n_rows=N_ROWS):
    return (rng.random((n_rows, n)) < 0.1 + 0.8 * rng.random(n)).astype(np.uint8)


def _mixture(n, k, **options):
    return ExchangeableMixture(k, max_iter=1, tol=0.1, random_state=0, **options).fit(_rows(n))


def _factored(n, k, rank):
    model, numbers = _mixture(n, 1, blocks="independent"), np.random.default_rng(3)
    loadings = numbers.normal(0, 0.2, (1, n, rank + 1)).astype(np.float32)
    points = numbers.normal(0, 1, (rank, k)).astype(np.float32)
    factors = Factors(loadings, points, np.zeros(k, dtype=np.int32), NO_PARENTS)
    model._model, model.weights_ = FactoredTrees(factors), np.full(k, 1 / k)
    return model


def _frame(k, n, **options):
    frame = pd.DataFrame(rng.integers(0, 4, (N_ROWS, n)), columns=[f"c{j}" for j in range(n)])
    return ExchangeableMixture(k, max_iter=1, tol=0.1, random_state=0, **options).fit(frame)


def _stretches(n, length, statistic):
    return [(list(range(begin, begin + length)), statistic) for begin in range(0, n, length)]


WIDE = {
    "wide blocks": partial(_mixture, 20_000, 8),
    "wide pooled blocks": partial(_mixture, 20_000, 8, pooling=1.0),
    "wide urns": partial(_mixture, 300, 100, family="urns"),
    "wide trees": partial(_mixture, 500, 40, family="tree"),
    "wide weighted trees": partial(_mixture, 200, 100, family="weighted tree"),
    "wide trees over counts": partial(_mixture, 3000, 30, family="count tree", blocks="welch"),
    "wide hidden trees": partial(_mixture, 600, 20, family="hidden tree"),
    "wide hidden statistics": partial(
        _mixture, 400, 20, family="hidden tree", blocks=_stretches(400, 8, "runs")
    ),
    "wide statistics": partial(_mixture, 4000, 8, blocks=_stretches(4000, 100, "transitions")),
    "wide table": partial(_frame, 8, 1000, family="mixed"),
    "wide urns of kinds": partial(_frame, 8, 1000, family="polya", blocks="full"),
    "wide trees of kinds": partial(_frame, 20, 60, family="mixed tree"),
    "wide hybrid": lambda: ExchangeableClassifier(training=Hybrid(penalty=1.0, n_folds=2)).fit(
        _rows(20_000), np.arange(N_ROWS) % 6
    ),
    "wide factors": lambda: _factored(2000, 2000, 16),
    "wide Rasch": lambda: RaschModel().fit(_rows(60, 2000)),
    "wide count": lambda: EVM.from_weights(Count(200_000), np.full(200_001, 1 / 200_001)),
}
CHECKPOINTS = {
    f"checkpoint {family}": partial(ExchangeableMixture, family=family)
    for family in ("blocks", "urns", "tree", "weighted tree", "count tree", "hidden tree")
}
CHECKPOINTS |= {
    f"checkpoint {family} of a table": partial(ExchangeableMixture, family=family)
    for family in ("mixed", "polya", "mixed tree")
}
CHECKPOINTS["checkpoint statistics"] = partial(
    ExchangeableMixture, blocks=[([0, 1, 2, 3], "runs"), [4, 5, 6, 7, 8]]
)
CHECKPOINTS["checkpoint hidden statistics"] = partial(
    ExchangeableMixture, family="hidden tree", blocks=[([0, 1, 2, 3], "runs"), [4, 5, 6, 7, 8]]
)
SEARCHES = {
    "search": lambda path: ExchangeableDensity(
        families=["urns", "tree", "hidden tree"],
        n_init=1,
        max_components=4,
        max_iter=5,
        random_state=0,
        checkpoint=path,
    ).fit(X)
}
NEURAL = {
    f"neural {component}": partial(
        ExchangeableMixture, 8, family=Neural(component, latent=2), max_iter=2, random_state=0
    )
    for component in ("independent", "urns", "tree")
}
NEURAL_CLASSES = {
    f"neural {component} as classes": partial(
        ExchangeableClassifier,
        Neural(component, latent=2),
        training=Generative(16, n_init=1),
        max_iter=2,
    )
    for component in ("independent", "urns", "tree")
}
SMALL = {**MODELS, **TABLE_MODELS, **OTHER_MODELS}
if find_spec("jax") is not None:
    CHECKPOINTS["checkpoint neural tree"] = partial(
        ExchangeableMixture, family=Neural("tree", latent=2, layers=(4,))
    )
    SMALL |= {name: lambda make=make: make().fit(X) for name, make in NEURAL.items()}
    SMALL |= {name: lambda make=make: make().fit(X, KIND) for name, make in NEURAL_CLASSES.items()}


def make_files(folder, words=()):
    """Write one intact file per kind whose name has one of the words; return small and wide."""
    kinds = {**SMALL, **CHECKPOINTS, **SEARCHES}
    chosen = [name for name in kinds if not words or any(word in name for word in words)]
    wide = [name for name in WIDE if not words or any(word in name for word in words)]
    for number, name in enumerate([*chosen, *wide]):
        path = folder / f"{number}.file"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _make(name, path)
    (folder / "names.json").write_text(json.dumps([chosen, wide]))
    return chosen, wide


def _make(name, path):
    if name in SEARCHES:
        SEARCHES[name](path)
    elif name in CHECKPOINTS:
        options = {"n_init": 2, "max_iter": 4, "tol": 0, "random_state": 0, "n_jobs": 1}
        mixture = CHECKPOINTS[name](n_components=2, **options, checkpoint=path)
        mixture.fit(TABLE if "table" in name else X)
    else:
        exchangeable.save({**SMALL, **WIDE}[name](), path)
