"""`exchangeable warmup`: compile all kernels ahead, for images of containers, clusters and CI."""

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

from exchangeable import ExchangeableClassifier, ExchangeableMixture, RaschModel
from exchangeable.cli.errors import one_line
from exchangeable.cli.texts import examples
from exchangeable.families import REGISTRY
from exchangeable.families.contract import Family
from exchangeable.runtime.kernel_cache import where_kept

Step = tuple[str, Callable[[], None]]
COMPILED = tuple(name for name, spec in REGISTRY.items() if issubclass(spec.family, Family))
"""The families that EM fits with compiled kernels; what JAX compiles for others is not kept."""


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
    """Return what must be done for some families, and what each part is called."""
    for kind, (X, y) in tables().items():
        for family in families:
            if "classes" not in REGISTRY[family].cannot:
                yield f"{family}, classes, {kind}", partial(_classify, X, y, family)
            yield f"{family}, components, {kind}", partial(_mix, X, family)
    for family in families:
        if REGISTRY[family].conditional is not None:
            highest = 2 if "ordinal" in REGISTRY[family].kinds else 1
            yield f"{family}, items of a test", partial(_test, highest)


def tables() -> dict[str, tuple[Any, Any]]:
    """Return small tables of the kinds that kernels tell apart, with classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    strength = np.where(y[:, None] == 0, rng.beta(2, 2, (60, 1)), 0.3)
    dense = (rng.random((60, 20)) < strength).astype(np.float64)
    wide = rng.random((60, 200)) < 0.05 * strength
    return {
        "dense": (dense, y),
        "bytes": (dense.astype(np.uint8), y),
        "wide": ((rng.random((60, 130)) < strength).astype(np.float64), y),
        "sparse": (sp.csr_matrix(wide.astype(np.float64)), y),
        "unknown entries": (np.where(rng.random(dense.shape) < 0.2, np.nan, dense), y),
        "sparse, unknown entries": (_with_unknown(wide, rng), y),
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
    model = ExchangeableMixture(2, family=family, max_iter=8, random_state=0).fit(X)
    model.score_samples(X)
    model.sample(5, random_state=0)
    model.marginals({0: 1, 1: 0})
    model.conditional([2, 3], {0: 1})
    model.information_gain({0: 1})
    first: Any = X[:4]
    rows = first.toarray() if hasattr(first, "toarray") else first.astype(np.float64)
    rows[:, :3] = np.nan
    model.score_samples(rows)
    for method in ("most_probable", "marginal", "draw"):
        model.impute(rows, method, random_state=0)


def _test(highest: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, highest + 1, size=(200, 4)).astype(np.float64)
    X[rng.random(X.shape) < 0.1] = np.nan
    model = RaschModel().fit(X)
    model.abilities(X)
    assert model.score_distribution_.size
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # there are no classes to be told apart
        RaschModel(2, n_init=1, max_iter=8, random_state=0).fit(X)
