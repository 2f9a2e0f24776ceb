"""Training of neural mixtures: what it learns, when it stops, and how it fails."""

import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import exchangeable
from exchangeable import ExchangeableDensity, ExchangeableMixture, Neural
from exchangeable.data.examples import merge_equal_rows
from exchangeable.data.observed import as_observed
from exchangeable.families import REGISTRY, as_family
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.neural import family as neural_family
from exchangeable.families.neural.family import work
from exchangeable.families.neural.settings import checked
from exchangeable.fitting.em import StopRule
from exchangeable.fitting.runs import Runs
from exchangeable.fitting.tasks import problem_of, spec_of
from exchangeable.runtime.clock import Clock, OutOfTime

pytest.importorskip("jax")
from exchangeable.devices.networks import batches, engine, training
from exchangeable.devices.networks import steps as device_steps

FAMILIES = ["neural independent", "neural urns", "neural tree"]
N = 8
rng = np.random.default_rng(0)
KIND = rng.integers(0, 2, size=500)
X = (rng.random((500, N)) < np.where(KIND[:, None] == np.arange(N) % 2, 0.85, 0.15)).astype(float)
VALID, X = X[400:], X[:400]
MEANS = X.mean(axis=0)
ALONE = float((X * np.log(MEANS) + (1 - X) * np.log1p(-MEANS)).sum(axis=1).mean())
"""What independent variables give to the rows."""


def fitted(family: Any = "neural independent", data: Any = X, **options: Any) -> Any:
    settings: dict[str, Any] = {"random_state": 0, "max_iter": 40} | options
    return ExchangeableMixture(4, family=family, **settings).fit(data)


def runs_of(**options: Any) -> Runs:
    """Return runs of a neural family as an estimator would make them."""
    estimator = ExchangeableMixture(4, family="neural independent", **options)
    examples = merge_equal_rows(as_observed(X, None), np.ones(len(X)))[0]
    problem = problem_of(estimator, spec_of(estimator), N, range(4), labelled=False)
    problem = replace(problem, examples=examples)
    generators = [np.random.default_rng(0)]
    spec = REGISTRY["neural independent"]
    return Runs(spec, problem, InMemory(examples), StopRule(max_iter=5), "both", generators)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.filterwarnings("ignore:training did not converge")
def test_training_finds_what_the_variables_have_in_common(family: str) -> None:
    model = fitted(family)
    assert model.score(VALID) > ALONE + 0.5
    assert len(model.history_[0]) == len(model.valid_history_[0]) == model.n_iter_ + 1
    again = fitted(family)
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))
    assert not np.array_equal(fitted(family, random_state=1).score_samples(X), model.score(X))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.filterwarnings("ignore:training did not converge")
def test_holes_are_summed_over_or_filled(family: str) -> None:
    holed = np.where(np.random.default_rng(1).random(X.shape) < 0.2, np.nan, X)
    assert fitted(family, holed).score(VALID) > ALONE + 0.4


def test_held_out_rows_end_training() -> None:
    model = ExchangeableMixture(4, family="neural independent", random_state=0, tol=0.05)
    model.fit(X, X_valid=VALID)
    assert model.converged_
    assert model.n_iter_ < 100
    assert model.valid_history_[0][-1] == pytest.approx(model.score(VALID), rel=1e-5)
    assert model.log_likelihood_ == pytest.approx(model.score(X), rel=1e-5)


def test_points_of_the_components_settle_where_held_out_rows_are_likelier() -> None:
    found = {
        steps: ExchangeableMixture(
            4, family=Neural(settle=steps), random_state=0, tol=0.05, max_iter=60
        ).fit(X, X_valid=VALID)
        for steps in (0, 64)
    }
    still, settled = found[0], found[64]
    iterations = 64 // training.SETTLE_STEPS
    assert still.n_iter_ < settled.n_iter_ <= still.n_iter_ + iterations
    assert settled.valid_history_[0][: still.n_iter_] == still.valid_history_[0][:-1]
    assert max(settled.valid_history_[0][still.n_iter_ : -1]) > still.valid_history_[0][-2]
    assert settled.score(VALID) >= max(settled.valid_history_[0][:-1]) - 1e-5
    assert np.ptp(settled.weights_) > 0


@pytest.mark.filterwarnings("ignore:training did not converge")
def test_weights_count_as_repeated_rows_do() -> None:
    weights = np.where(KIND[:400] == 0, 9.0, 1.0)
    marginals = fitted().marginals()
    weighted = ExchangeableMixture(4, family="neural independent", random_state=0, max_iter=40)
    found = weighted.fit(X, sample_weight=weights).marginals()
    expected = weights @ X / weights.sum()
    assert np.abs(found - expected).max() < 0.1
    assert np.abs(marginals - expected).max() > 0.2


@pytest.mark.filterwarnings("ignore:training did not converge")
def test_averages_of_several_fits_are_one_mixture() -> None:
    single = fitted(n_init=2)
    average = fitted(n_init=2, combine="average")
    assert average.weights_.size == 2 * single.weights_.size
    assert average.weights_.sum() == pytest.approx(1.0)
    assert len(average.history_) == 2


@pytest.mark.parametrize(
    ("family", "holes", "n_init"),
    [
        ("neural independent", False, 1),
        ("neural independent", False, 2),
        ("neural urns", False, 1),
        ("neural urns", True, 1),
        ("neural tree", False, 1),
    ],
)
@pytest.mark.filterwarnings("ignore:training did not converge")
def test_the_log_likelihood_is_that_of_the_mixture(family: str, holes: bool, n_init: int) -> None:
    data = X.copy()
    data[::3, 1] = np.nan if holes else data[::3, 1]
    weights = np.arange(len(X)) % 3 + 1.0
    model = ExchangeableMixture(
        4, family=family, n_init=n_init, combine="average", max_iter=4, random_state=0
    ).fit(data, X_valid=VALID, sample_weight=weights)
    expected = weights @ model.score_samples(data) / weights.sum()
    assert model.log_likelihood_ == pytest.approx(expected, rel=1e-5)
    if n_init == 1:
        assert model.valid_history_[0][-1] == pytest.approx(model.score(VALID), rel=1e-5)


def test_an_interrupt_keeps_the_best_so_far() -> None:
    stop, seen = threading.Event(), list[Any]()

    def report(state: Any) -> None:
        seen.append(state)
        stop.set()

    state = runs_of().run(0, None, report, stop)
    assert len(seen) == 1
    assert seen[0].n_iter == 1
    assert "held-out rows" in seen[0].told
    assert state.n_iter == 1
    assert not state.converged
    assert state.best.model.n_variables == N


def test_training_looks_at_the_clock_between_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps take ten seconds each, nothing else takes time, and an iteration has several."""
    now, steps = [0.0], engine.train_steps

    def slow(*arguments: Any) -> Any:
        now[0] += 10.0 * len(arguments[-1].rates)
        return steps(*arguments)

    monkeypatch.setattr(engine, "train_steps", slow)
    monkeypatch.setattr(neural_family, "TRAINING_PART", 1.0)
    monkeypatch.setattr(training, "SCAN", 1)
    monkeypatch.setattr(device_steps, "SCAN", 1)
    iteration = 10.0 * training.LEAST_STEPS

    def run(deadline: float, patient: bool = False) -> Any:
        now[0] = 0.0
        runs = runs_of()
        clock = Clock(deadline, lambda: now[0], patient)
        problem = replace(runs.problem, clock=clock, valid=runs.problem.examples)
        return replace(runs, problem=problem).run(0)

    for deadline, count in ((0.7, 0), (3.6, 3)):
        with pytest.raises(OutOfTime, match=f"there was time for {count} iterations, too few"):
            run(deadline * iteration)
        assert now[0] <= deadline * iteration
    assert len(run(0.7 * iteration, patient=True).history) == 2
    assert now[0] <= 1.2 * iteration
    cut = run(4.6 * iteration)
    assert not cut.converged
    assert len(cut.history) == 5
    assert now[0] <= 4.6 * iteration


def test_components_settle_in_time_kept_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    now, settled = [0.0], [0]
    train, learn = training.Training._train_steps, training.Training._learn_points

    def slow(self: Any, network: Any, handed: Any) -> Any:
        now[0] += 10.0 * len(handed.rates)
        return train(self, network, handed)

    def quick(self: Any, network: Any, handed: Any) -> Any:
        settled[0] += 1
        now[0] += 1.0
        return learn(self, network, handed)

    monkeypatch.setattr(training.Training, "_train_steps", slow)
    monkeypatch.setattr(training.Training, "_learn_points", quick)
    deadline = 10.0 * 10.0 * training.LEAST_STEPS
    runs = runs_of()
    clock = Clock(deadline, lambda: now[0])
    problem = replace(runs.problem, clock=clock, valid=runs.problem.examples)
    cut = replace(runs, problem=problem).run(0)
    assert settled[0] > 0
    assert not cut.converged
    assert now[0] <= deadline


def test_training_recovers_from_numbers_that_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    honest, calls = engine.train_steps, list[float]()

    def at_first_nan(*arguments: Any) -> Any:
        network, values = honest(*arguments)
        calls.append(float(arguments[-1].rates[-1]))
        return network, values * np.nan if len(calls) <= 2 else values

    monkeypatch.setattr(engine, "train_steps", at_first_nan)
    state = runs_of().run(0)
    assert np.isfinite(state.history).all()
    assert calls[-1] < 0.5 * Neural().learning_rate


def test_training_that_diverges_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = engine.train_steps

    def nan(*arguments: Any) -> Any:
        network, values = honest(*arguments)
        return network, values * np.nan

    monkeypatch.setattr(engine, "train_steps", nan)
    with pytest.raises(FloatingPointError, match=r"training diverged.*smaller learning_rate"):
        runs_of().run(0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"component": "oak"}, "family='neural oak' is unknown"),
        ({"latent": 0}, "latent must be at least 1, got 0"),
        ({"latent": 2000}, "latent must be at most 1,000, got 2,000"),
        ({"learning_rate": 2.0}, "learning_rate must lie between 0 and 1, got 2.0"),
        ({"points": 0}, "points must be at least 1, got 0"),
        ({"layers": (8, 0)}, "layers must be at least 1, got 0"),
        ({"patience": 0}, "patience must be at least 1, got 0"),
        ({"settle": -1}, "settle must be at least 0, got -1"),
    ],
)
def test_settings_that_make_no_sense_are_named(settings: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fitted(Neural(**settings))
    with pytest.raises(TypeError, match="layers must be a sequence of integers, got 'wide'"):
        fitted(Neural(layers="wide"))


def test_settings_travel_with_the_model(tmp_path: Path) -> None:
    neural = Neural("tree", latent=3, layers=(8,))
    model = fitted(neural, max_iter=4, tol=10.0)
    exchangeable.save(model, tmp_path / "model.exch")
    again = exchangeable.load(tmp_path / "model.exch")
    assert repr(again.family) == repr(neural)
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))
    spec, settings = as_family(again.family)
    assert (spec.name, settings.latent) == ("neural tree", 3)
    assert as_family("neural tree")[1].latent == Neural().latent
    with pytest.raises(ValueError, match="expected one of blocks"):
        as_family(7)


def test_a_density_takes_a_neural_family_where_it_is_named() -> None:
    density = ExchangeableDensity(
        ["neural independent", "blocks"], n_init=1, max_components=2, max_iter=2, random_state=0
    ).fit(X)
    families = {row["family"] for row in density.table_}
    assert families == {"neural independent", "blocks"}


def test_heavy_rows_are_dealt_out_in_parts() -> None:
    weights = np.array([1.0, 1.0, 10.0])
    epoch = batches.Dealt(weights, 1, np.random.default_rng(0)).most_left
    numbers, each = next(batches.Dealt(weights, epoch, np.random.default_rng(0)))
    found = np.bincount(numbers, each)
    np.testing.assert_allclose(found, weights / weights.mean())
    assert each.max() <= 1.0 + 1e-12
    dealt = batches.Dealt(np.ones(5), 4, np.random.default_rng(0))
    first = np.concatenate([next(dealt)[0] for _ in range(5)])
    assert np.bincount(first).tolist() == [4] * 5


def test_importing_the_package_does_not_import_jax_and_its_absence_is_explained() -> None:
    script = (
        "import sys, numpy as np, exchangeable\n"
        "assert not [name for name in sys.modules if name.split('.')[0] in ('jax', 'jaxlib')]\n"
        "sys.modules['jax'] = None\n"
        "X = np.eye(30)\n"
        "try:\n"
        "    exchangeable.ExchangeableMixture(family='neural tree').fit(X)\n"
        "except ModuleNotFoundError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == (
        "family='neural tree' needs jax, which is not installed; pip install 'exchangeable[neural]'"
    )


def test_memory_grows_with_the_layers_that_are_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow, wide = (checked(Neural(layers=layers)) for layers in [(8,), (1000, 1000)])
    assert work(100, N, 10**6, wide) > work(100, N, 10**6, narrow) + 7e9
    monkeypatch.setenv("EXCHANGEABLE_MEMORY", "4e9")
    with pytest.raises(MemoryError, match=r"needs at least .* GB of memory.*choose fewer"):
        ExchangeableMixture(10_000, family=Neural(layers=(100_000,))).fit(X)


def test_components_that_take_too_much_memory_do_not_settle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settled = fitted(max_iter=60)
    monkeypatch.setattr(training, "MOST_SETTLE_BYTES", 0.0)
    assert fitted(max_iter=60).n_iter_ < settled.n_iter_
