"""One fitted model of every kind that can be saved, small enough to fit in a moment."""

from dataclasses import replace

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from exchangeable import (
    EVM,
    BlockCounts,
    Blocks,
    CategoricalCounts,
    Count,
    ExchangeableClassifier,
    ExchangeableDensity,
    ExchangeableImputer,
    ExchangeableMixture,
    Hybrid,
    Nested,
    Pooled,
    RaschModel,
    Transitions,
)
from exchangeable.baselines import ChowLiuTree, LatentTree
from exchangeable.families.trees.factoring import factored
from exchangeable.families.trees.model import TreeModel

rng = np.random.default_rng(7)
KIND = rng.integers(0, 3, size=240)
X = (rng.random((240, 9)) < np.where(KIND[:, None] == np.arange(9) % 3, 0.8, 0.2)).astype(np.uint8)
HOLES = np.where(rng.random(X.shape) < 0.1, np.nan, X)
FRAME = pd.DataFrame(X, columns=[f"<b>{j}</b>" for j in range(9)])
WORDS = np.array(["alpha", "beta", "gamma"])[KIND]
TABLE = pd.DataFrame(
    {
        "city": pd.Categorical(WORDS),
        "answer": pd.Categorical(
            np.array(["no", "maybe", "yes"])[(KIND + X[:, 0]) % 3], ["no", "maybe", "yes"], True
        ),
        "again": pd.Categorical(
            np.array(["no", "maybe", "yes"])[(KIND + X[:, 1]) % 3], ["no", "maybe", "yes"], True
        ),
        "visits": rng.poisson(2.0 + KIND),
        "age": rng.normal(30.0 + 10.0 * KIND),
        "height": rng.normal(170.0 - 5.0 * KIND, 8.0),
        "member": X[:, 2].astype(bool),
    }
)


def _classifier(**options):
    return lambda: ExchangeableClassifier(**options).fit(X, KIND)


def _mixture(**options):
    settings = dict(n_components=3, n_init=2, max_iter=15, tol=1e-2, random_state=0)
    return lambda: ExchangeableMixture(**{**settings, **options}).fit(X)


def _table(**options):
    settings = dict(n_components=2, max_iter=5, tol=1e-2, random_state=0)
    return lambda: ExchangeableMixture(**{**settings, **options}).fit(TABLE)


def _factored(edges):
    """Trees as `compress` makes them of networks: their log-odds are products of factors."""
    model = _mixture(family="tree")()
    mixture = model._mixture()
    if not edges:
        base = -np.logaddexp(0.0, mixture.model.slope).sum(axis=0)
        mixture = replace(mixture, model=TreeModel.make(base, mixture.model.slope))
    model._model = factored(mixture, 2).model
    return model


def _partial():
    model = ExchangeableClassifier()
    return model.partial_fit(X[:100], KIND[:100], classes=[0, 1, 2, 3])


MODELS = {
    "classifier": _classifier(),
    "classifier paper": _classifier(blocks=Blocks("welch", conditions=(1, 2)), alpha=0.0),
    "classifier given": _classifier(blocks={0: [range(9)], 1: [[0], range(1, 9)], 2: [range(9)]}),
    "classifier pooled": _classifier(pooling=2.0),
    "classifier urns": _classifier(family="urns"),
    "classifier trees": _classifier(family="tree"),
    "classifier trees over counts": _classifier(
        family="count tree", blocks=[[0, 1, 2, 3], [4, 5, 6, 7, 8]]
    ),
    "classifier weighted trees": _classifier(family="weighted tree"),
    "classifier prior": _classifier(class_prior=np.array([0.2, 0.3, 0.5])),
    "classifier words": lambda: ExchangeableClassifier().fit(FRAME, WORDS),
    "classifier objects": lambda: ExchangeableClassifier().fit(FRAME, WORDS.astype(object)),
    "classifier truth values": lambda: ExchangeableClassifier().fit(X, KIND == 1),
    "classifier holes": lambda: ExchangeableClassifier(max_iter=5).fit(HOLES, KIND),
    "classifier semi-supervised": lambda: ExchangeableClassifier(semi_supervised=True).fit(
        X, np.where(rng.random(240) < 0.5, -1, KIND)
    ),
    "classifier in parts": _partial,
    "classifier hybrid": _classifier(training=Hybrid(penalty=1.0, n_folds=2)),
    "classifier hybrid components": _classifier(training=Hybrid(n_components=2), max_iter=3),
    "classifier hidden": _classifier(family="hidden tree", max_iter=3),
    "classifier hidden with statistics": _classifier(
        family="hidden tree",
        blocks=[([0, 1, 2, 3], "runs"), ([6, 5, 4], "transitions")],
        max_iter=3,
    ),
    "classifier with statistics": _classifier(blocks=[([0, 1, 2, 3], "runs"), [4, 5, 6, 7, 8]]),
    "classifier hybrid with statistics": _classifier(
        training=Hybrid(penalty=1.0, n_folds=2), blocks=[([0, 1, 2, 3], "runs"), [4, 5, 6, 7, 8]]
    ),
    "mixture": _mixture(),
    "mixture average": _mixture(combine="average"),
    "mixture independent": _mixture(blocks="independent"),
    "mixture full": _mixture(blocks="full"),
    "mixture with settings of blocks": _mixture(
        blocks=Blocks("evidence", significance=0.2, start=0.4)
    ),
    "mixture given": _mixture(blocks=[[0, 1, 2], [3, 4, 5, 6, 7, 8]]),
    "mixture pooled": _mixture(pooling=1.0, validation_fraction=0.2),
    "mixture pooled average": _mixture(pooling=1.0, combine="average"),
    "mixture urns": _mixture(family="urns"),
    "mixture urns average": _mixture(family="urns", combine="average"),
    "mixture urns in blocks": _mixture(family="urns", blocks=[[0, 1, 2], [3, 4, 5, 6, 7, 8]]),
    "mixture trees": _mixture(family="tree"),
    "mixture trees average": _mixture(family="tree", combine="average"),
    "mixture trees over counts": _mixture(
        n_components=1, family="count tree", blocks=[[0, 3, 6], [1, 4, 7], [2, 5, 8]]
    ),
    "mixture trees over counts average": _mixture(
        family="count tree", blocks="welch", combine="average"
    ),
    "mixture weighted trees": _mixture(family="weighted tree"),
    "mixture weighted trees average": _mixture(family="weighted tree", combine="average"),
    "mixture hidden": _mixture(family="hidden tree"),
    "mixture hidden in blocks": _mixture(
        family="hidden tree", blocks=[[0, 1, 2], [3, 4, 5, 6, 7], [8]], combine="average"
    ),
    "mixture hidden with statistics": _mixture(
        family="hidden tree", blocks=[([0, 1, 2, 3], "runs"), ([6, 5, 4], "transitions")]
    ),
    "mixture hidden of kinds": _mixture(family="mixed tree", combine="average"),
    "mixture holes": lambda: ExchangeableMixture(2, max_iter=5, tol=0.1, random_state=0).fit(HOLES),
    "mixture with statistics": _mixture(
        blocks=[([0, 1, 2, 3], Transitions(4)), ([4, 5, 6], Count(3)), [7, 8]]
    ),
    "mixture with covariates": lambda: ExchangeableMixture(
        2, blocks="independent", max_iter=5, tol=0.1, random_state=0
    ).fit(X, covariates=TABLE[["age"]]),
    "density": lambda: ExchangeableDensity(
        families=["urns"], n_init=2, max_components=4, max_iter=10, random_state=0
    ).fit(X),
    "density trees": lambda: ExchangeableDensity(
        families=["tree"], n_init=1, max_components=2, max_iter=5, random_state=0
    ).fit(X),
    "density joined": lambda: ExchangeableDensity(
        families=["urns", "tree", "weighted tree", "hidden tree"],
        n_init=1,
        max_components=4,
        max_iter=5,
        random_state=0,
    ).fit(X),
    "mixture of factors": lambda: _factored(False),
    "mixture of factors of trees": lambda: _factored(True),
    "imputer": lambda: ExchangeableImputer(
        ExchangeableMixture(2, max_iter=5, tol=0.1, random_state=0)
    ).fit(HOLES),
    "Rasch": lambda: RaschModel().fit(HOLES),
    "partial credit": lambda: RaschModel().fit(FRAME + np.roll(X, 1, axis=0) * (np.arange(9) > 6)),
    "mixed Rasch": lambda: RaschModel(2, n_init=1, tol=1e-2, random_state=0).fit(HOLES),
    "count": lambda: EVM(Count(9)).fit(FRAME, alpha=0.5),
    "block counts": lambda: EVM(BlockCounts([[0, 3], [1, 2], [4, 5, 6, 7, 8]])).fit(X, alpha=0.5),
    "transitions": lambda: EVM(Transitions(9)).fit(X, alpha=0.5),
    "pooled": lambda: EVM(Pooled(3, 1)).fit(X, alpha=0.5),
    "nested": lambda: EVM(Nested(Transitions(9), Count(1), [[j] for j in range(9)])).fit(X),
    "categories": lambda: EVM(CategoricalCounts(9, 3)).fit(KIND[:234].reshape(26, 9)),
}
OTHERS = [["city"], ["member"]]
ITEMS = TABLE.drop(columns="city")
TABLE_MODELS = {
    "table": _table(),
    "table in blocks": _table(
        family="mixed", blocks=[["answer", "again"], ["age", "height"], *OTHERS, ["visits"]]
    ),
    "table of urns": _table(
        family="polya", blocks=[["answer", "again"], ["visits"], ["age"], ["height"], *OTHERS]
    ),
    "table tree": _table(family="mixed tree"),
    "table with covariates": lambda: ExchangeableMixture(
        2, max_iter=5, tol=1e-2, random_state=0
    ).fit(TABLE.drop(columns="age"), covariates=TABLE[["age", "city"]]),
    "table density": lambda: ExchangeableDensity(
        families=["mixed", "polya"], n_init=1, max_components=2, max_iter=5, random_state=0
    ).fit(TABLE),
    "table classifier": lambda: ExchangeableClassifier().fit(ITEMS, WORDS),
    "table classifier of urns": lambda: ExchangeableClassifier(
        family="polya", blocks="evidence"
    ).fit(ITEMS, WORDS),
    "table hybrid": lambda: ExchangeableClassifier(training=Hybrid(penalty=1.0, n_folds=2)).fit(
        ITEMS, WORDS
    ),
    "table imputer": lambda: ExchangeableImputer(
        ExchangeableMixture(2, max_iter=5, tol=0.1, random_state=0)
    ).fit(TABLE),
}
TEXTS = [" ".join(["word", *(f"w{j}" for j in np.flatnonzero(row))]) for row in X]
OTHER_MODELS = {
    "Chow-Liu tree": lambda: ChowLiuTree().fit(X),
    "latent tree": lambda: LatentTree().fit(X),
    "pipeline of texts": lambda: make_pipeline(CountVectorizer(), ExchangeableClassifier()).fit(
        TEXTS, KIND
    ),
    "pipeline that imputes": lambda: make_pipeline(
        ExchangeableImputer(ExchangeableMixture(2, max_iter=5, tol=0.1, random_state=0)),
        ExchangeableClassifier(),
    ).fit(HOLES, KIND),
}


def answers(model):
    """Return what a model says about the rows, whatever kind it is."""
    if isinstance(model, ExchangeableImputer):
        return [model.transform(HOLES)]
    if isinstance(model, RaschModel):
        rows = pd.DataFrame(X, columns=FRAME.columns) if _is_named(model) else HOLES
        found = [model.item_parameters_.standard_errors, model.score_distribution_]
        return [*found, model.abilities(rows).estimate, model.predict_proba(rows)]
    rows = KIND[:234].reshape(26, 9) if _is_categorical(model) else X
    named = _is_named(model)
    found = [model.score_samples(pd.DataFrame(rows, columns=FRAME.columns) if named else rows)]
    if _is_categorical(model):
        return [*found, model.marginals({0: 2})]
    found += [model.marginals({0: 1, 4: 0}), model.most_probable({2: 1}).X]
    if hasattr(model, "predict_proba") and not isinstance(model, ExchangeableDensity):
        found.append(model.predict_proba(FRAME if named else HOLES))
    drawn = model.sample(5, random_state=0)
    return [*found, drawn if isinstance(model, EVM) else drawn[0]]


def _is_named(model):
    return hasattr(model, "feature_names_in_")


def _is_categorical(model):
    return isinstance(model, EVM) and model.statistic.n_symbols > 2
