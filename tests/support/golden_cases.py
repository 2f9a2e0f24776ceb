"""Named small fits, and what the fitted models say: all of it must survive a refactoring.

EM stops at `max_iter` while the
likelihood still grows, so that nothing depends on what exactly its stopping rule looks at; the
cases marked `loose` do depend on `tol`, since evidence merging begins where EM has settled, or have
nothing to gain after the first iteration.
"""

import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

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
    PackedBits,
    Pooled,
    Transitions,
    with_missing,
)

Array = npt.NDArray[Any]
Arrays = dict[str, Array]


ESTIMATORS: dict[str, Any] = {
    "classifier": ExchangeableClassifier,
    "density": ExchangeableDensity,
    "evm": EVM,
    "imputer": ExchangeableImputer,
    "mixture": ExchangeableMixture,
}


def make(kind: str, **options: Any) -> Any:
    """Return an estimator."""
    return ESTIMATORS[kind](**options)


def sample(model: Any, n_rows: int, given: Any) -> tuple[Array, Array]:
    """Return rows drawn, and their classes."""
    drawn = model.sample(n_rows, given, random_state=3)
    return (drawn, np.zeros(n_rows, dtype=np.int64)) if isinstance(model, EVM) else drawn


@dataclass(frozen=True)
class Case:
    """A fit with a name.

    Attributes
    ----------
    name : str
        Estimator, family, and what is special about it.
    run : callable
        Makes the fit and returns what it found.
    exact : bool
        Whether it must be equal to the last bit, on the machine where it was recorded.
    loose : bool
        Whether EM's stopping rule decides how it goes.
    """

    name: str
    run: Callable[[], Arrays]
    exact: bool
    loose: bool = False


def case(
    name: str, run: Callable[..., Arrays], *args: Any, loose: bool = False, **options: Any
) -> Case:
    """Return a case; those of blocks are exact, unless the prior is pooled or rows have holes."""
    pooled = bool(options.keys() & {"pooling", "families"})
    holes = any(form in args for form in ("holes", "csr holes"))
    exact = not pooled and not holes and options.get("family", "blocks") == "blocks"
    return Case(name, partial(run, *args, **options), exact, loose)


NARROW, REPEATED, WIDE = (240, 12), (300, 8), (150, 70)
LISTED = [[0, 1, 2], [3, 4, 5, 6, 7], [8], [9, 10, 11]]
OTHER = [[0, 11, 5], [1, 2, 3, 4], [6, 7, 8, 9, 10]]
LISTS = {0: LISTED, 1: OTHER, 2: [list(range(12))]}
SETTLED: dict[str, Any] = dict(tol=0.0, max_iter=5, n_jobs=2)
FREE = [1, 4]
KNOWN = {0: 1, 3: 0}


@cache
def planted(shape: tuple[int, int] = NARROW) -> tuple[Array, Array]:
    """Return rows of three kinds and their kinds.

    Neighbours have equal means, some rows have more ones than others, and every fourth variable
    often copies the one before it: so there are blocks, urns and trees to be found.
    """
    n_rows, n_variables = shape
    rng = np.random.default_rng([0, n_rows, n_variables])
    kind = rng.integers(0, 3, n_rows)
    rate = np.repeat(rng.random((3, -(-n_variables // 3))), 3, axis=1)[:, :n_variables]
    tilt = np.clip(2 * rng.random((n_rows, 1)), 0.4, 1.2)
    X = (rng.random(shape) < (0.1 + 0.7 * rate[kind]) * tilt).astype(np.uint8)
    for j in range(1, n_variables, 4):
        copies = rng.random(n_rows) < 0.6
        X[copies, j] = X[copies, j - 1]
    return X, kind


@cache
def separated() -> Array:
    """Return rows of kinds that lie apart, for which EM settles within a few iterations."""
    rng = np.random.default_rng([9, 0, 240, 12])
    kind = rng.integers(0, 3, 240)
    rate = np.stack([np.roll(np.linspace(0.05, 0.95, 4), shift) for shift in range(3)])
    logit = np.log(rate / (1 - rate)).repeat(3, axis=1)[kind] + rng.normal(size=(240, 1))
    return (rng.random((240, 12)) < 1 / (1 + np.exp(-logit))).astype(np.uint8)


def gaps(shape: tuple[int, int], seed: int, share: float = 0.15) -> Array:
    """Return where rows have holes."""
    return np.random.default_rng([seed, *shape]).random(shape) < share


def cut(X: Array) -> list[Array]:
    """Return rows in chunks of different sizes."""
    n_rows = len(X)
    return np.split(X, [n_rows // 3, n_rows // 3 + 1, n_rows - 50])


FORMS: dict[str, Callable[[Array], Any]] = {
    "bytes": lambda X: X,
    "floats": lambda X: 1.5 * X,
    "csr": sp.csr_array,
    "holes": lambda X: with_missing(X, gaps(X.shape, 1)),
    "csr holes": lambda X: with_missing(sp.csr_array(X), gaps(X.shape, 1)),
    "chunks": cut,
    "csr chunks": lambda X: [sp.csr_array(part) for part in cut(X)],
    "packed": PackedBits.pack,
    "packed chunks": lambda X: [PackedBits.pack(part) for part in cut(X)],
    "dask": lambda X: da.from_array(X, chunks=(90, 5)),
}
IN_MEMORY = ("bytes", "floats", "csr", "holes", "csr holes")
ELSEWHERE = ("chunks", "csr chunks", "packed", "packed chunks", "dask")


def fit(model: Any, *args: Any, **options: Any) -> Any:
    """Fit a model whose EM is not meant to converge."""
    with warnings.catch_warnings(), dask.config.set(scheduler="synchronous"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*args, **options)


def row_weights(n_rows: int) -> Array:
    """Return weights of rows, every fifth zero."""
    return np.arange(n_rows) % 5 / 2


def parameters(model: Any) -> Arrays:
    """Return the parameters of a fitted model, and how EM came there."""
    found: Arrays = {}
    for name in ("weights_", "class_log_prior_", "class_count_", "n_iter_", "best_init_"):
        if hasattr(model, name):
            found[name] = np.asarray(getattr(model, name))
    if hasattr(model, "log_likelihood_"):
        found["log_likelihood_"] = np.asarray(model.log_likelihood_)
    for name in ("history_", "valid_history_"):
        history = getattr(model, name, [])
        runs = history if history and isinstance(history[0], list) else [history]
        found |= {f"{name}[{i}]": np.array(run) for i, run in enumerate(runs) if len(run)}
    labels = np.empty((len(model.partitions_), model.n_features_in_), dtype=np.int64)
    for line, blocks in zip(labels, model.partitions_, strict=True):
        for number, block in enumerate(blocks):
            line[block] = number
    found["partitions_"] = labels
    counts = [np.concatenate(blocks) for blocks in model.count_probabilities_]
    found["count_probabilities_"] = np.concatenate(counts)
    found["urn_weights_"] = model.urn_weights_
    found["edges_"] = np.concatenate(model.edges_)
    found["n_edges"] = np.array([len(edges) for edges in model.edges_])
    return found


def dense(filled: Any) -> Array:
    """Return rows that may be sparse as an array."""
    return filled.toarray() if sp.issparse(filled) else np.asarray(filled)


def answers(model: Any, X: Any, plain: Array) -> Arrays:
    """Return what a model says of the rows it was fitted to, and of a few with holes.

    `plain` are the same rows as bytes.
    """
    with dask.config.set(scheduler="synchronous"):
        found = {"score_samples": np.asarray(model.score_samples(X))}
        if hasattr(model, "predict_proba"):
            found["predict_proba"] = np.asarray(model.predict_proba(X))
    few = plain[:8]
    missing = gaps(few.shape, 2, 0.4)
    missing[:, FREE] = True
    asked = with_missing(sp.csr_array(few) if sp.issparse(X) else few, missing)
    found["marginals"] = model.marginals(asked)
    found["marginals of one"] = model.marginals(KNOWN)
    found["conditional"] = model.conditional(FREE, asked)
    found["conditional of one"] = model.conditional(FREE, KNOWN)
    best = model.most_probable(asked)
    found["most_probable X"], found["most_probable log_prob"] = best.X, best.log_prob
    known = model.most_probable(KNOWN, label=best.y[0])
    found["most_probable of one"] = np.append(known.X, known.log_prob)
    rows, kinds = sample(model, 20, KNOWN)
    classes = getattr(model, "classes_", None)
    for name, y in (("most_probable y", best.y), ("sample y", kinds)):
        found[name] = y if classes is None else np.searchsorted(classes, y)
    found["sample X"] = rows
    for method in ("most_probable", "marginal", "draw"):
        found[f"impute {method}"] = dense(model.impute(asked, method, random_state=4))
    found["impute draws"] = model.impute(asked, "draw", n_draws=2, random_state=5)
    found["information_gain"] = model.information_gain(asked)
    found["information_gain of a variable"] = model.information_gain(asked, target=FREE[0])
    return found


def report(model: Any, X: Any, plain: Array) -> Arrays:
    """Return everything about a fitted model."""
    return parameters(model) | answers(model, X, plain)


def classify(
    form: str = "bytes",
    *,
    shape: tuple[int, int] = NARROW,
    weighted: bool = False,
    labels: Sequence[Any] | None = None,
    **options: Any,
) -> Arrays:
    plain, kind = planted(shape)
    X, y = FORMS[form](plain), kind if labels is None else np.array(labels)[kind]
    weight = row_weights(len(y)) if weighted else None
    model = fit(make("classifier", **SETTLED | options), X, y, sample_weight=weight)
    return report(model, X, plain)


def classify_half(form: str = "bytes", **options: Any) -> Arrays:
    """Two thirds of the labels are missing."""
    plain, kind = planted()
    X = FORMS[form](plain)
    y = np.where(np.arange(len(kind)) % 3 == 0, kind, -1)
    model = make("classifier", semi_supervised=True, **SETTLED | options)
    return report(fit(model, X, y), X, plain)


def classify_batches(**options: Any) -> Arrays:
    """One of the four classes never occurs."""
    X, y = planted()
    model = make("classifier", **dict(n_jobs=2) | options)
    for batch in np.split(np.arange(len(y)), [100, 150]):
        weight = row_weights(len(batch)) + 0.5
        model.partial_fit(X[batch], y[batch], classes=np.arange(4), sample_weight=weight)
    return report(model, X, X)


def mix(
    form: str = "bytes",
    *,
    shape: tuple[int, int] = NARROW,
    weighted: bool = False,
    held_out: bool = False,
    **options: Any,
) -> Arrays:
    plain = planted(shape)[0]
    X, given = FORMS[form](plain), dict[str, Any]()
    if weighted:
        given["sample_weight"] = row_weights(len(plain))
    if held_out:
        given["X_valid"] = FORMS[form]((plain ^ gaps(plain.shape, 6, 0.05))[::4])
    model = fit(mixture(**options), X, **given)
    return report(model, X, plain)


def mixture(**options: Any) -> Any:
    return make("mixture", **SETTLED | dict(n_components=3, random_state=1) | options)


def mix_settled(form: str = "bytes", **options: Any) -> Arrays:
    """The sweep's blocks settle, then those of evidence merging."""
    plain = separated()
    X = FORMS[form](plain)
    return report(fit(mixture(**options), X), X, plain)


def mix_twice(**options: Any) -> Arrays:
    """The second fit goes on from the first, with other rows."""
    first, second = planted()[0][:120], planted()[0]
    model = fit(mixture(warm_start=True, **options), first)
    return report(fit(model, second), second, second)


def mix_resumed(**options: Any) -> Arrays:
    """A run stopped after two iterations goes on from its checkpoint."""
    X = planted()[0]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.npz"
        fit(mixture(checkpoint=path, **options | dict(max_iter=2)), X)
        model = fit(mixture(checkpoint=path, **options), X)
    return report(model, X, X)


def search(form: str = "bytes", *, held_out: bool = False, **options: Any) -> Arrays:
    plain = separated()[:180]
    X = FORMS[form](plain)
    settings = dict(n_init=2, max_components=4, max_iter=6, random_state=2, n_jobs=2)
    valid = separated()[180:] if held_out else None
    model = fit(make("density", **settings | options), X, X_valid=valid)
    found = report(model, X, plain)
    names = ("n_components", "pooling", "shrinkage", "valid", "train")
    found["table_"] = np.array([[row.get(name, 0.0) for name in names] for row in model.table_])
    names = ("n_components", "pooling", "shrinkage", "n_fits", "share")
    found["members_"] = np.array([[row.get(name, 0.0) for name in names] for row in model.members_])
    found["scores"] = np.array([model.best_score_, model.valid_score_, model.n_fits_])
    return found


def fill(form: str, method: str, **options: Any) -> Arrays:
    plain = planted()[0]
    X = FORMS[form](plain)
    model = make("imputer", model=mixture(**options), method=method, random_state=6)
    fit(model, X, sample_weight=row_weights(len(plain)) + 0.5)
    return parameters(model.model_) | {"transform": dense(model.transform(X))}


def single(statistic: Any, *, weighted: bool = False) -> Arrays:
    """Fit one binary component."""
    plain = planted((240, statistic.n_variables))[0]
    weight = row_weights(len(plain)) if weighted else None
    model = make("evm", statistic=statistic).fit(plain, weight, alpha=0.0 if weighted else 0.5)
    return {"weights_": model.weights_, **answers(model, plain, plain)}


def categories() -> Arrays:
    """Fit one component whose variables have three values."""
    rng = np.random.default_rng(8)
    symbols = np.minimum(rng.poisson(rng.random((200, 1)) * 2, (200, 6)), 2)
    model = make("evm", statistic=CategoricalCounts(6, 3)).fit(symbols, alpha=0.2)
    best, log_prob = model.map({0: 2, 3: 0})
    return {
        "weights_": model.weights_,
        "score_samples": model.score_samples(with_missing(symbols, gaps(symbols.shape, 3))),
        "marginals": model.marginals({0: 2, 3: 0}),
        "most_probable X": best,
        "most_probable log_prob": np.array(log_prob),
        "sample X": sample(model, 20, {0: 2, 3: 0})[0],
    }


def growing(found: Arrays) -> bool:
    """Whether the training likelihood still grew with every iteration, without held-out rows."""
    held_out = any(name.startswith("valid_history_") for name in found)
    steps = [np.diff(run) for name, run in found.items() if name.startswith("history_")]
    return held_out or all((step > 1e-6).all() for step in steps)


WELCH, EVIDENCE = Blocks("welch"), Blocks("evidence", start=0.4)
SECOND, THIRD = Blocks("welch", conditions=(1, 2)), Blocks("evidence", conditions=(1, 2, 3))
STRICT = Blocks("evidence", start=0.2, prior=0.5)
LEARNED = {
    "welch": "welch",
    "independent": "independent",
    "full": "full",
    "listed": LISTED,
    "listed for each": LISTS,
    "conditions 1 2": SECOND,
}
OF_CLASSES: dict[str, dict[str, Any]] = {
    "blocks": {"blocks": "evidence"},
    "urns": {"family": "urns"},
    "tree": {"family": "tree"},
    "weighted tree": {"family": "weighted tree"},
    "count tree": {"family": "count tree", "blocks": "welch"},
}
OF_COMPONENTS = {
    "blocks": {"blocks": "welch"},
    "urns": {"family": "urns", "random_state": 10},
    "tree": {"family": "tree", "random_state": 5, "max_iter": 3},
    "weighted tree": {"family": "weighted tree", "random_state": 20},
    "count tree": {
        "family": "count tree",
        "blocks": "welch",
        "pooling": 2.0,
        "random_state": 24,
        "max_iter": 3,
    },
    "hidden tree": {"family": "hidden tree"},
}
SEEDS = {"mixture, count tree, random starts": 2, "mixture, count tree, average": 5}
"""Starts from which the likelihood grows throughout, where it does not from the usual one."""
SOON: dict[str, Any] = dict(blocks=EVIDENCE, tol=10.0, random_state=3)
"""One iteration with the sweep and one with evidence merging: EM has settled at once."""


def classifier_cases() -> list[Case]:
    cases = []
    for family, given in OF_CLASSES.items():
        named = f"classifier, {family}"
        cases += [case(f"{named}, {form}", classify, form, **given) for form in IN_MEMORY]
        cases += [
            case(f"{named}, weights", classify, weighted=True, n_jobs=1, **given),
            case(f"{named}, weights and holes", classify, "csr holes", weighted=True, **given),
            case(f"{named}, equal rows", classify, shape=REPEATED, **given),
            case(f"{named}, wide", classify, shape=WIDE, **given),
            case(f"{named}, wide csr", classify, "csr", shape=WIDE, n_jobs=1, **given),
        ]
    for form in ELSEWHERE:
        cases += [
            case(f"classifier, blocks, {form}", classify, form, blocks="evidence"),
            case(
                f"classifier, welch, {form}, weights", classify, form, weighted=True, blocks=WELCH
            ),
        ]
    for name, blocks in LEARNED.items():
        cases += [
            case(f"classifier, {name}", classify, blocks=blocks),
            case(f"classifier, {name}, holes", classify, "holes", blocks=blocks, max_iter=3),
        ]
    chances = [0.2, 0.3, 0.5]
    return [
        *cases,
        case("classifier, conditions 1 2 3", classify, blocks=THIRD),
        case("classifier, conditions 1 2 3, wide csr", classify, "csr", shape=WIDE, blocks=THIRD),
        case("classifier, strict evidence", classify, blocks=STRICT, alpha=1.0),
        case("classifier, no smoothing", classify, blocks="welch", alpha=0.0),
        case("classifier, words as labels", classify, labels=["low", "middle", "high"]),
        case("classifier, equal priors", classify, class_prior="uniform"),
        case("classifier, given priors", classify, class_prior=chances),
        case("classifier, given priors, holes", classify, "holes", class_prior=chances),
        case("classifier, urns, equal priors", classify, family="urns", class_prior="uniform"),
        case("classifier, tree, given priors", classify, family="tree", class_prior=chances),
        case("classifier, partial_fit, evidence", classify_batches, blocks="evidence"),
        case("classifier, partial_fit, listed", classify_batches, blocks=LISTED, n_jobs=1),
        case("classifier, semi-supervised", classify_half),
        case("classifier, semi-supervised, welch, csr", classify_half, "csr", blocks="welch"),
        case("classifier, semi-supervised, holes", classify_half, "holes", n_jobs=1),
        case("classifier, semi-supervised, listed", classify_half, blocks=LISTED),
        case("classifier, semi-supervised, equal priors", classify_half, class_prior="uniform"),
        case("classifier, blocks, pooling", classify, pooling=4.0, blocks="welch"),
        case("classifier, independent, pooling", classify, pooling=4.0, blocks="independent"),
        case("classifier, urns in blocks", classify, family="urns", blocks=LISTED),
        case("classifier, urns in learned blocks", classify, family="urns", blocks="welch"),
        case(
            "classifier, tree, priors",
            classify,
            family="tree",
            pooling=2.0,
            blocks=Blocks(shrinkage=5.0),
        ),
        case("classifier, count tree, evidence", classify, family="count tree", blocks=EVIDENCE),
        case("classifier, count tree, listed", classify, family="count tree", blocks=LISTS),
    ]


def component_cases(family: str) -> list[Case]:
    """Return the cases of mixtures that all families have, and those that all but blocks have."""

    def one(what: str, *args: Any, **more: Any) -> Case:
        name = f"mixture, {family}, {what}"
        seed = {"random_state": SEEDS[name]} if name in SEEDS else {}
        return case(name, mix, *args, **OF_COMPONENTS[family] | more | seed)

    cases = [one(form, form) for form in IN_MEMORY]
    cases += [
        one("weights", weighted=True, n_jobs=1),
        one("weights and holes", "csr holes", weighted=True),
        one("equal rows", shape=REPEATED),
        one("wide", shape=WIDE),
        one("wide csr", "csr", shape=WIDE, n_jobs=1),
        one("X_valid", held_out=True, n_init=2),
        one("three starts", n_init=3),
        one("random starts", init="random", n_init=2, n_jobs=1),
        one("average", combine="average", n_init=3, init="rows"),
    ]
    if family == "blocks":
        return cases
    priors: dict[str, Any] = dict(pooling=3.0)
    if family != "urns":
        given = OF_COMPONENTS[family].get("blocks", "auto")
        priors["blocks"] = Blocks(given, shrinkage=10.0)
    return [
        *cases,
        one("priors", **priors),
        one("validation_fraction", "csr", validation_fraction=0.2, max_iter=6),
        one("X_valid, holes", "holes", held_out=True, max_iter=6),
        one("until it stops", validation_fraction=0.2, max_iter=40, tol=5e-3),
    ]


def mixture_cases() -> list[Case]:
    cases = [found for family in OF_COMPONENTS for found in component_cases(family)]
    for form in ELSEWHERE:
        cases += [
            case(f"mixture, welch, {form}", mix, form, blocks="welch", init="rows"),
            case(f"mixture, welch, {form}, random", mix, form, blocks=WELCH, init="random"),
            case(f"mixture, independent, {form}", mix, form, blocks="independent", weighted=True),
        ]
    for name, blocks in LEARNED.items():
        cases.append(case(f"mixture, {name}, holes", mix, "holes", blocks=blocks, random_state=2))
        if name != "full":
            cases.append(case(f"mixture, {name}", mix, blocks=blocks, random_state=3))
    choosing, both = Blocks("welch", accept="component"), Blocks("welch", conditions=(1, 2, 3))
    each = SOON | dict(blocks=Blocks(**{**EVIDENCE.get_params(), **dict(accept="component")}))
    three = SOON | dict(blocks=THIRD)
    settled: dict[str, Any] = dict(blocks=EVIDENCE, tol=0.06, max_iter=20, random_state=68)
    gappy = settled | dict(tol=0.019, random_state=10)
    return [
        *cases,
        case("mixture, accept component", mix, blocks=choosing),
        case("mixture, accept component, holes", mix, "holes", blocks=choosing),
        case("mixture, accept component, chunks", mix, "chunks", blocks=choosing),
        case("mixture, conditions 1 2 3", mix, blocks=both),
        case("mixture, conditions 1 2, chunks", mix, "chunks", blocks=SECOND),
        case("mixture, listed, chunks", mix, "chunks", blocks=LISTED),
        case("mixture, three starts, chunks", mix, "chunks", blocks="welch", n_init=3),
        case("mixture, average, dask", mix, "dask", blocks="welch", n_init=2, combine="average"),
        case("mixture, one component", mix, blocks=LISTED, n_components=1, max_iter=1, loose=True),
        case("mixture, full", mix, blocks="full", max_iter=1, random_state=3, loose=True),
        case("mixture, warm start", mix_twice, blocks="welch", max_iter=3),
        case("mixture, warm start, listed", mix_twice, blocks=LISTED, max_iter=3, n_jobs=1),
        case("mixture, checkpoint", mix_resumed, blocks="welch", n_init=2),
        case("mixture, checkpoint, independent", mix_resumed, blocks="independent"),
        case("mixture, evidence", mix, **SOON, loose=True),
        case("mixture, evidence, csr, weights", mix, "csr", weighted=True, **SOON, loose=True),
        case("mixture, evidence, holes", mix, "holes", **SOON, loose=True),
        case("mixture, evidence, chunks", mix, "chunks", **SOON, loose=True),
        case("mixture, evidence, dask", mix, "dask", **SOON, loose=True),
        case("mixture, evidence, three starts", mix, n_init=3, **SOON, loose=True),
        case("mixture, evidence, accept component", mix, **each, loose=True),
        case("mixture, evidence, conditions 1 2 3", mix, **three, loose=True),
        case("mixture, evidence, settled", mix_settled, **settled, loose=True),
        case("mixture, evidence, settled, chunks", mix_settled, "chunks", **settled, loose=True),
        case("mixture, evidence, settled, holes", mix_settled, "holes", **gappy, loose=True),
        case("mixture, blocks, pooling", mix, pooling=4.0, blocks="welch"),
        case("mixture, listed, pooling, X_valid", mix, held_out=True, pooling=4.0, blocks=LISTED),
        case("mixture, independent, pooling", mix, pooling=4.0, blocks="independent"),
        case("mixture, urns in blocks", mix, family="urns", blocks=LISTED, random_state=10),
        case(
            "mixture, urns in learned blocks", mix, family="urns", blocks="welch", random_state=10
        ),
        case(
            "mixture, count tree, listed", mix, **OF_COMPONENTS["count tree"] | dict(blocks=LISTS)
        ),
        case("mixture, count tree, evidence", mix, family="count tree", **SOON, loose=True),
        case("mixture, hidden tree of blocks", mix, family="hidden tree", blocks=LISTED),
    ]


def other_cases() -> list[Case]:
    cases = [
        case(f"density, {family}", search, families=[family])
        for family in ("blocks", "urns", "tree", "weighted tree", "hidden tree")
    ]
    square = BlockCounts([[0, 3, 6], [1, 2], [4, 5, 7, 8]])
    return [
        *cases,
        case("density, joined", search, families=["urns", "tree"], held_out=True, n_jobs=1),
        case("density, joined, csr", search, "csr", families=["tree", "hidden tree"]),
        case("density, holes", search, "holes", families=["urns"]),
        case("imputer, most_probable", fill, "holes", "most_probable", blocks="welch"),
        case("imputer, marginal, csr", fill, "csr holes", "marginal", blocks=LISTED),
        case("imputer, draw", fill, "holes", "draw", blocks="independent", n_jobs=1),
        case("imputer, urns", fill, "holes", "most_probable", family="urns"),
        case("imputer, hidden tree, csr", fill, "csr holes", "marginal", family="hidden tree"),
        case("component, counts", single, Count(10)),
        case("component, counts, weights", single, Count(10), weighted=True),
        case("component, block counts", single, square),
        case("component, transitions", single, Transitions(10)),
        case("component, pooled", single, Pooled(4, 2, 1)),
        case("component, categories", categories),
    ]


CASES = [*classifier_cases(), *mixture_cases(), *other_cases()]
