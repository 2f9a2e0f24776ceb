"""EM that begins with steps over batches of rows."""

from threading import Event
from typing import Any

import numpy as np
import pytest

from exchangeable import ExchangeableMixture
from exchangeable.families import REGISTRY
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.problem import Problem
from exchangeable.fitting import steps
from exchangeable.fitting.em import StopRule
from exchangeable.fitting.runs import Runs
from exchangeable.partitions import Partition
from made_rows import examples_of

N = 12
SPEC = REGISTRY["hidden tree"]


def rows(n_rows: int, seed: int) -> Any:
    """Return rows of which some occur often."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, size=(n_rows, 1))
    return (rng.random((n_rows, N)) < np.where(np.arange(N) % 3 == kind, 0.85, 0.15)).astype(int)


def runs(X: Any, valid: Any, labels: Any = range(N), rule: StopRule | None = None) -> Runs:
    """Return runs of a hidden tree over blocks with some labels."""
    problem = Problem(
        4,
        [Partition.from_labels(list(labels))] * 4,
        examples=examples_of(X),
        valid=examples_of(valid),
        pooling=0.5,
        shrinkage=1.0,
    )
    data = InMemory(problem.examples, n_jobs=1)
    rule = rule or StopRule(1e-3, 40)
    return Runs(SPEC, problem, data, rule, "rows", [np.random.default_rng(0)])


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let few rows make batches."""
    monkeypatch.setattr(steps, "SMALLEST", 16)


class TestBatches:
    def test_every_row_is_in_the_batches_of_a_pass_with_all_its_weight(self) -> None:
        rng = np.random.default_rng(0)
        weights = rng.integers(1, 4, size=1000).astype(float)
        weights[:5] = 400.0
        found = steps.batches(weights, 3, rng)
        mass = np.zeros(1000)
        for batch in found:
            assert np.unique(batch.rows).size == batch.rows.size
            mass[batch.rows] += batch.weights / len(found)
        np.testing.assert_allclose(mass, weights)

    def test_a_heavy_row_makes_no_batch_much_heavier(self) -> None:
        weights = np.ones(2000)
        weights[7] = 3000.0
        heaviness = [b.weights.sum() for b in steps.batches(weights, 0, np.random.default_rng(1))]
        assert max(heaviness) < 1.1 * min(heaviness)

    def test_rates_fall(self) -> None:
        rng = np.random.default_rng(0)
        rates = [b.rate for e in range(steps.EPOCHS) for b in steps.batches(np.ones(999), e, rng)]
        assert rates == sorted(rates, reverse=True)
        assert rates[0] == 0.9
        assert rates[-1] < 0.02


def test_one_batch_of_all_rows_at_rate_one_is_a_step_of_em(
    small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, valid = rows(400, 0), rows(200, 1)
    monkeypatch.setattr(steps, "SMALLEST", 10_000)
    monkeypatch.setattr(steps, "LARGEST", 10_000)
    monkeypatch.setattr(steps, "SCHEDULE", ((0.0, 1.0), (1.0, 1.0)))
    monkeypatch.setattr(steps, "FEWEST", 0)
    by_steps = runs(X, valid, rule=StopRule(0, 5)).run(0)
    monkeypatch.setattr(steps, "FEWEST", 100)
    plainly = runs(X, valid, rule=StopRule(0, 6)).run(0)
    # Steps begin after the first step of EM, since they begin with sums.
    np.testing.assert_allclose(by_steps.valid_history[1:], plainly.valid_history[2:], rtol=1e-9)


def test_it_gets_far_in_a_few_passes(small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    X, valid = rows(1500, 0), rows(1500, 1)
    passes = StopRule(0, 6)
    found = runs(X, valid, rule=passes).run(0)
    monkeypatch.setattr(steps, "FEWEST", 10_000)
    plainly = runs(X, valid, rule=passes).run(0)
    assert found.worth > plainly.worth
    assert found.worth == max(found.valid_history)


def test_the_best_parameters_are_kept_and_probabilities_sum_to_one(small: None) -> None:
    valid = rows(600, 1)
    state = runs(rows(1200, 0), valid).run(0)
    each = state.best.model.log_likelihoods(state.best.log_prior, examples_of(valid))
    weights = examples_of(valid).weights
    np.testing.assert_allclose(weights @ each / weights.sum(), max(state.valid_history))
    everything = (np.arange(2**N)[:, None] >> np.arange(N)) & 1
    all_rows = examples_of(everything)
    log_p = state.best.model.log_likelihoods(state.best.log_prior, all_rows)
    np.testing.assert_allclose(np.exp(log_p).sum(), 1.0)


def test_steps_are_stopped(small: None) -> None:
    stop = Event()
    seen = []

    def report(state: Any) -> None:
        seen.append(state.n_iter)
        if len(seen) == 3:
            stop.set()

    state = runs(rows(1200, 0), rows(600, 1)).run(0, report=report, stop=stop)
    assert state.n_iter == 2
    assert not state.ended


def test_rows_may_have_holes(small: None) -> None:
    X = rows(1200, 0).astype(float)
    X[np.random.default_rng(2).random(X.shape) < 0.1] = np.nan
    model = ExchangeableMixture(3, family="hidden tree", random_state=0, n_jobs=1, tol=1e-2)
    held = model.fit(X, X_valid=rows(600, 1))
    assert np.isfinite(held.score(rows(300, 3)))
    assert held.score(rows(600, 1)) == pytest.approx(max(held.valid_history_[0]), abs=1e-9)


@pytest.mark.parametrize("labels", [range(N), [0, 0, 0, 1, 1, 2, 2, 3, 3, 3, 3, 4]])
def test_a_device_takes_the_same_steps(small: None, labels: Any) -> None:
    jax = pytest.importorskip("jax")
    X, valid = rows(900, 0), rows(300, 1)
    here, there = (runs(X, valid, labels, StopRule(0, 3)) for _ in range(2))
    there.data.device = jax.devices("cpu")[0]  # type: ignore[union-attr]
    one, other = here.run(0), there.run(0)
    np.testing.assert_allclose(one.valid_history, other.valid_history, rtol=1e-4)
    np.testing.assert_allclose(one.history, other.history, rtol=1e-4)
