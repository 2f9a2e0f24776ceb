"""`exchangeable warmup`: compile all kernels in advance, for containers, clusters and CI."""

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import click
import numpy as np
import scipy.sparse as sp
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from sklearn.exceptions import ConvergenceWarning

from exchangeable import ExchangeableClassifier, ExchangeableMixture, Hybrid, RaschModel
from exchangeable.cli.errors import one_line
from exchangeable.cli.texts import examples
from exchangeable.families import REGISTRY
from exchangeable.families.contract import Family
from exchangeable.runtime.kernels.cache import where_kept

Step = tuple[str, Callable[[], None]]
COMPILED = tuple(name for name, spec in REGISTRY.items() if issubclass(spec.family, Family))
"""The families fitted by EM with compiled kernels; what JAX compiles for others is not cached."""
N_ROWS = 300
"""Enough rows to trigger the kernels for many rows at a time."""


@click.command(epilog=examples("warmup", "warmup --family blocks --family urns"))
@click.option(
    "--family",
    "families",
    type=click.Choice(COMPILED),
    multiple=True,
    help="Compile for this family only; repeatable.",
)
@one_line
def warmup(families: tuple[str, ...]) -> None:
    """Compile everything ahead, so that no later fit or question has to.

    Small models of every family are fitted to dense and sparse rows, with and without unknown
    entries, and answer every kind of question. What is compiled is kept in the folder that is
    shown at the end; NUMBA_CACHE_DIR names another one.
    """
    work = list(steps(families or COMPILED))
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("compiling", total=len(work))
        for name, step in work:
            progress.update(task, description=f"compiling: {name}")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                step()
            progress.advance(task)
    click.echo(f"Compiled kernels are kept in {where_kept()}")


def steps(families: tuple[str, ...]) -> Iterator[Step]:
    """Return the work for some families, and a name for each part."""
    for kind, (X, y) in tables().items():
        for family in families:
            if "classes" not in REGISTRY[family].cannot:
                yield f"{family}, classes, {kind}", partial(_classify, X, y, family)
            yield f"{family}, components, {kind}", partial(_mix, X, family)
    for family in families:
        spec = REGISTRY[family]
        if "chunks" not in spec.cannot:
            yield f"{family}, chunks", partial(_mix_chunks, family)
        if {"count", "continuous"} <= set(spec.kinds):
            if "classes" not in spec.cannot:
                yield f"{family}, classes tested by bootstrap", partial(_bootstrap, family)
            for blocks in ("independent", "full"):
                for kind, table in typed_tables().items():
                    step = partial(_mix_kinds, table, family, blocks)
                    yield f"{family}, {blocks} columns, {kind}", step
        if "hybrid" not in spec.cannot and "classes" not in spec.cannot:
            yield f"{family}, hybrid training", partial(_train, family)
        if spec.conditional is not None:
            highest = 2 if "ordinal" in spec.kinds else 1
            yield f"{family}, items of a test", partial(_test, highest)


def tables() -> dict[str, tuple[Any, Any]]:
    """Return small tables of the types that kernels distinguish, with classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, N_ROWS)
    strength = np.where(y[:, None] == 0, rng.beta(2, 2, (N_ROWS, 1)), 0.3)
    dense = (rng.random((N_ROWS, 20)) < strength).astype(np.float64)
    wide = rng.random((N_ROWS, 200)) < 0.05 * strength
    return {
        "dense": (dense, y),
        "bytes": (dense.astype(np.uint8), y),
        "wide": ((rng.random((N_ROWS, 130)) < strength).astype(np.float64), y),
        "sparse": (sp.csr_matrix(wide.astype(np.float64)), y),
        "unknown entries": (np.where(rng.random(dense.shape) < 0.2, np.nan, dense), y),
        "sparse, unknown entries": (_with_unknown(wide, rng), y),
    }


def typed_tables() -> dict[str, dict[str, Any]]:
    """Return the settings and rows of tables with columns of several kinds."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, (N_ROWS, 1))
    levels = rng.binomial(2, 0.2 + 0.5 * group, (N_ROWS, 6)).astype(np.float64)
    counts = rng.poisson(1 + 3 * group, (N_ROWS, 3)).astype(np.float64)
    numbers = rng.normal(3 * group, 1.0, (N_ROWS, 3))
    words = ["nominal"] * 3 + ["ordinal"] * 3 + ["count"] * 3 + ["continuous"] * 3
    kinds = dict(enumerate(words))
    every = np.hstack([levels, counts, numbers])
    holed = np.where(rng.random(every.shape) < 0.2, np.nan, every)
    return {
        "several kinds": {"X": every, "kinds": kinds},
        "several kinds, unknown entries": {"X": holed, "kinds": kinds},
        "levels": {"X": levels, "kinds": "nominal"},
        "levels, many components": {"X": levels, "kinds": "nominal", "n_components": 20},
        "measurements": {"X": numbers, "kinds": "continuous"},
        "sparse counts": {"X": sp.csr_matrix(counts), "kinds": "count"},
    }


def _with_unknown(rows: Any, rng: np.random.Generator) -> sp.csr_matrix:
    values = rows.astype(np.float64)
    values[rng.random(rows.shape) < 0.02] = np.nan
    return sp.csr_matrix(values)


def _classify(X: Any, y: Any, family: str) -> None:
    model = ExchangeableClassifier(family=family).fit(X, y)
    model.fit(X, y, sample_weight=np.linspace(0.5, 1.5, len(y)))
    model.predict_proba(X)


def _mix(X: Any, family: str) -> None:
    model = ExchangeableMixture(2, family=family, max_iter=30, random_state=0).fit(X)
    first: Any = X[:4]
    rows = first.toarray() if hasattr(first, "toarray") else first.astype(np.float64)
    _ask(model, X, rows, {0: 1, 1: 0})


def _mix_chunks(family: str) -> None:
    named = tables()
    few, holed = named["dense"][0], named["unknown entries"][0]
    for chunks in ([few, few], [np.ones_like(few), few], [holed, few]):
        ExchangeableMixture(2, family=family, max_iter=3, random_state=0).fit(chunks)


def _mix_kinds(table: dict[str, Any], family: str, blocks: str) -> None:
    settings: dict[str, Any] = {
        "n_components": 2,
        "family": family,
        "blocks": blocks,
        "max_iter": 8,
    } | table
    X = settings.pop("X")
    model = ExchangeableMixture(**settings, random_state=0).fit(X)
    first: Any = X[:4]
    rows = first.toarray() if hasattr(first, "toarray") else first.copy()
    _ask(model, X, rows, {0: X[0, 0] if X[0, 0] == X[0, 0] else 0})


def _bootstrap(family: str) -> None:
    X = typed_tables()["levels"]["X"]
    settings: dict[str, Any] = {"family": family, "kinds": "nominal", "max_iter": 8}
    ExchangeableMixture.select(X, n_components=(1, 2), bootstrap=2, random_state=0, **settings)


def _ask(model: Any, X: Any, rows: Any, given: dict[int, Any]) -> None:
    """Run every kind of query on a model."""
    model.score_samples(X)
    model.sample(5, random_state=0)
    model.marginals(given)
    model.conditional([2], given)
    model.information_gain(given)
    model.most_probable(given)
    rows[:, :3] = np.nan
    model.score_samples(rows)
    for method in ("most_probable", "marginal", "draw"):
        model.impute(rows, method, random_state=0)


def _train(family: str) -> None:
    rng = np.random.default_rng(0)
    training = Hybrid(penalty=1.0, n_folds=2)
    for n_classes in (2, 3):
        y = rng.integers(0, n_classes, N_ROWS)
        X = (rng.random((N_ROWS, 12)) < 0.3 + 0.2 * y[:, None]).astype(np.float64)
        model = ExchangeableClassifier(family=family, training=training).fit(X, y)
        X[:, 0] = np.nan
        model.predict_proba(X)


def _test(highest: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, highest + 1, size=(200, 4)).astype(np.float64)
    for rows in (X, np.where(rng.random(X.shape) < 0.1, np.nan, X)):
        model = RaschModel().fit(rows)
        model.abilities(rows)
        assert model.score_distribution_.size
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # there are no classes to distinguish
        RaschModel(2, n_init=1, max_iter=8, random_state=0).fit(rows)
