"""A refit that fails, for whatever reason, leaves the estimator exactly as it was."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import exchangeable
from em_families import BY_EM
from exchangeable import (
    EVM,
    Count,
    ExchangeableClassifier,
    ExchangeableDensity,
    ExchangeableImputer,
    ExchangeableMixture,
    RaschModel,
)
from exchangeable.baselines import ChowLiuTree, LatentTree
from exchangeable.families import REGISTRY
from exchangeable.runtime.attempts import all_or_nothing

RNG = np.random.default_rng(0)
KIND = RNG.integers(0, 2, 80)
X = (RNG.random((80, 5)) < np.where(KIND[:, None] == 0, 0.2, 0.8)).astype(float)
FRAME = pd.DataFrame(X, columns=list("abcde"))
OTHER = pd.DataFrame(X[:, :4], columns=list("vwxy"))
HOLED = np.where(RNG.random(X.shape) < 0.2, np.nan, X)


def mixture(family: str = "blocks", **options: Any) -> ExchangeableMixture:
    return ExchangeableMixture(2, family=family, random_state=0, tol=1e-2, **options)


def density() -> ExchangeableDensity:
    return ExchangeableDensity(["urns"], n_init=1, max_components=2, tol=0.1, random_state=0)


def predictions(model: Any) -> Any:
    if isinstance(model, ExchangeableImputer):
        return model.transform(HOLED)
    if isinstance(model, ExchangeableClassifier):
        return model.predict_joint_log_proba(FRAME)
    return model.score_samples(X)


def interrupt(*arguments: Any, **options: Any) -> Any:
    raise KeyboardInterrupt


def weigh(value: float) -> Callable[[Any, Any], Any]:
    return lambda model, refit: refit(sample_weight=np.where(np.arange(80) == 7, value, 1.0))


def setting(**options: Any) -> Callable[[Any, Any], Any]:
    def fail(model: Any, refit: Any) -> None:
        model.set_params(**options)
        refit()

    return fail


def interrupted(*methods: tuple[type[Any], str]) -> Callable[[Any, Any], Any]:
    """Fail with Ctrl-C where the fit would take over what it has found."""

    def fail(model: Any, refit: Any) -> None:
        with pytest.MonkeyPatch.context() as patch:
            for owner, name in methods:
                patch.setattr(owner, name, interrupt)
            refit()

    return fail


def with_X(rows: Any, y: Any = None) -> Callable[[Any, Any], Any]:
    return lambda model, refit: refit(X=rows, **({} if y is None else {"y": y}))


DAMAGED = {
    "infinite entries": with_X(np.where(np.eye(80, 4) > 0, np.inf, 1.0)),
    "complex numbers": with_X(OTHER.to_numpy().astype(complex)),
    "one dimension": with_X(np.ones(80)),
    "no rows": with_X(np.ones((0, 4))),
}
COMMON = {**DAMAGED, "bad alpha": setting(alpha=-1.0)}
WEIGHTS = {"negative weights": weigh(-1.0), "NaN as a weight": weigh(np.nan)}
MIXTURES = {
    **COMMON,
    **WEIGHTS,
    "too many components": setting(n_components=81),
    "unknown family": setting(family="oak"),
    "Ctrl-C": interrupted((ExchangeableMixture, "_keep")),
}
CLASSES = {
    **COMMON,
    **WEIGHTS,
    "regression labels": with_X(OTHER, np.linspace(0, 1, 80)),
    "too few labels": with_X(OTHER, KIND[:-1]),
    "labels of mixed types": with_X(OTHER, np.array([1, "a"] * 40, dtype=object)),
    "a bad prior": setting(class_prior=[0.5, 0.6]),
    "Ctrl-C": interrupted((ExchangeableClassifier, "_keep")),
}
CASES: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    **{
        f"mixture of {family}": ((lambda family=family: mixture(family)), MIXTURES)
        for family in BY_EM
    },
    "warm mixture": (lambda: mixture(warm_start=True), MIXTURES),
    "classifier": (ExchangeableClassifier, CLASSES),
    "classifier of urns": (lambda: ExchangeableClassifier("urns"), CLASSES),
    "density": (
        density,
        {**COMMON, "Ctrl-C": interrupted((ExchangeableDensity, "_take_over"))},
    ),
    "imputer": (
        lambda: ExchangeableImputer(mixture()),
        {
            **DAMAGED,
            **WEIGHTS,
            "bad alpha": setting(model__alpha=-1.0),
            "too many components": setting(model__n_components=81),
            "bad method": setting(method="guess"),
            "Ctrl-C": interrupted((ExchangeableMixture, "_keep")),
        },
    ),
    "one block": (
        lambda: EVM(Count(5)),
        {
            **WEIGHTS,
            **DAMAGED,
            "bad alpha": lambda model, refit: refit(alpha=-1.0),
            "no number": with_X(np.full((3, 5), 0.5)),
        },
    ),
    "Chow-Liu tree": (ChowLiuTree, COMMON),
    "latent tree": (LatentTree, COMMON),
}
EVERY = [(name, failure) for name, (_, failures) in CASES.items() for failure in failures]


def start(name: str) -> Any:
    model = CASES[name][0]()
    if isinstance(model, ExchangeableClassifier):
        return model.fit(FRAME, KIND)
    return model.fit(X)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("name", "failure"), EVERY, ids=lambda value: value)
def test_a_failed_refit_changes_nothing(name: str, failure: str) -> None:
    model = start(name)
    answers = predictions(model)
    labelled = isinstance(model, ExchangeableClassifier)
    warm = getattr(model, "warm_start", False)
    rows = FRAME if labelled else X if warm or isinstance(model, EVM) else OTHER
    before: dict[str, Any] = {}

    def refit(**given: Any) -> None:
        before.update(vars(model))  # with the parameters that were just set
        before["copies"] = copy.deepcopy(
            {key: value for key, value in vars(model).items() if key.endswith("_")}
        )
        arguments = {"X": rows, **({"y": KIND} if labelled else {}), **given}
        model.fit(**arguments)

    with pytest.raises((ValueError, TypeError, KeyboardInterrupt)):
        CASES[name][1][failure](model, refit)
    copies = before.pop("copies")
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[key] is value for key, value in before.items())
    for key, value in copies.items():
        if isinstance(value, np.ndarray | float | int | str | list):
            np.testing.assert_equal(vars(model)[key], value)
    if failure == "bad method":
        model.set_params(method="most_probable")
    np.testing.assert_array_equal(predictions(model), answers)


def test_a_failed_partial_fit_changes_nothing() -> None:
    model = ExchangeableClassifier().partial_fit(FRAME, KIND, classes=[0, 1])
    answers, before = predictions(model), dict(vars(model))
    batches: tuple[tuple[Any, Any, dict[str, Any]], ...] = (
        (OTHER, KIND, {}),
        (FRAME, KIND + 1, {}),
        (FRAME, KIND, {"classes": [0, 1, 2]}),
        (FRAME, KIND, {"sample_weight": np.full(80, -1.0)}),
    )
    for rows, y, options in batches:
        with pytest.raises(ValueError):  # noqa: PT011
            model.partial_fit(rows, y, **options)
        assert vars(model).keys() == before.keys()
        assert all(vars(model)[key] is value for key, value in before.items())
        np.testing.assert_array_equal(predictions(model), answers)


def test_a_first_fit_that_fails_leaves_no_fit() -> None:
    for name, (make, failures) in CASES.items():
        model = make()
        arguments = {"y": np.linspace(0, 1, 80)} if "classifier" in name else {}
        with pytest.raises((ValueError, TypeError)):
            model.fit(FRAME if arguments else np.full((80, 5), np.inf), **arguments)
        assert not [key for key in vars(model) if key.endswith("_")], name
        assert failures


def test_a_warm_start_with_other_columns_is_refused() -> None:
    for family, spec in REGISTRY.items():
        if "warm_start" in spec.cannot:
            continue
        model = mixture(family, warm_start=True, max_iter=500).fit(X)
        answers = model.score_samples(X)
        with pytest.raises(ValueError, match=r"goes on from a fit to 5 columns, but X has 4"):
            model.fit(OTHER)
        np.testing.assert_array_equal(model.score_samples(X), answers)
        assert model.n_features_in_ == 5


@pytest.mark.parametrize("n_components", [1, 2])
def test_a_rasch_model_is_left_as_it_was(n_components: int) -> None:
    model = RaschModel(n_components, n_init=1, tol=1e-2, random_state=0).fit(FRAME)
    before, answers = dict(vars(model)), model.abilities(FRAME).estimate
    for rows, options in ((OTHER - 1, {}), (OTHER, {"sample_weight": [-1.0] * 80})):
        with pytest.raises(ValueError, match=r"answers must be|sample_weight"):
            model.fit(rows, **options)
        assert vars(model).keys() == before.keys()
        assert all(vars(model)[key] is value for key, value in before.items())
    np.testing.assert_array_equal(model.abilities(FRAME).estimate, answers)


def test_every_estimator_undoes_fits_that_fail() -> None:
    kinds = [getattr(exchangeable, name) for name in exchangeable.__all__]
    methods = [
        method
        for kind in [*kinds, ChowLiuTree, LatentTree]
        for name in ("fit", "partial_fit")
        if isinstance(kind, type) and (method := vars(kind).get(name)) is not None
    ]
    methods = [getattr(method, "fn", method) for method in methods]  # of `available_if`
    assert len(methods) >= 9
    undone = all_or_nothing(lambda: None).__code__
    assert [method.__qualname__ for method in methods if method.__code__ is not undone] == []
