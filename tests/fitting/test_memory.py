"""Fits that cannot have the memory they need are refused before they start."""

import time
import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from em_families import BY_EM
from exchangeable import ExchangeableClassifier, ExchangeableMixture
from exchangeable.families import REGISTRY
from exchangeable.fitting import restarts
from exchangeable.runtime import memory
from scaling_rows import cut

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def rows(n_rows: int, n_variables: int) -> Any:
    return (np.random.default_rng(0).random((n_rows, n_variables)) < 0.3).astype(np.uint8)


def mixture(family: str, n_components: int) -> ExchangeableMixture:
    return ExchangeableMixture(n_components, family=family, max_iter=2, random_state=0, n_jobs=1)


@pytest.mark.parametrize("family", BY_EM)
@pytest.mark.parametrize(("n_rows", "n", "k"), [(2000, 40, 30), (400, 200, 10), (300, 150, 30)])
def test_the_estimate_is_no_more_than_what_a_fit_takes(
    family: str, n_rows: int, n: int, k: int
) -> None:
    X = rows(n_rows, n)
    model = mixture(family, k)
    model.fit(X[: k + 10])  # compiles what it needs
    tracemalloc.start()
    try:
        model.fit(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    estimate = REGISTRY[family].memory(len(np.unique(X, axis=0)), n, k)
    assert peak / 50 < estimate <= peak


@pytest.mark.parametrize("family", BY_EM)
def test_too_little_memory_is_refused_and_changes_nothing(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = rows(300, 20)
    model = mixture(family, 3).fit(X)
    before = dict(vars(model))
    monkeypatch.setattr(memory, "available", lambda: 5_000.0)
    message = rf"family='{family}' with 3 components .* needs at least .* GB of memory, but only"
    with pytest.raises(MemoryError, match=message):
        model.fit(X)
    assert vars(model) == before
    if "classes" not in REGISTRY[family].cannot:
        holed = X.astype(float)
        holed[::3, 4] = np.nan
        with pytest.raises(MemoryError, match="choose fewer components"):
            ExchangeableClassifier(family).fit(holed, X[:, 1])


@pytest.mark.parametrize("family", [name for name in REGISTRY if REGISTRY[name].direct])
def test_the_estimate_without_rows_is_no_more_than_sums_take(family: str) -> None:
    X, y = rows(60, 4000), np.arange(60) % 30
    for form in (X, cut(X, (40, 20))):
        ExchangeableClassifier(family, n_jobs=1).fit(form, y)
        tracemalloc.start()
        try:
            ExchangeableClassifier(family, n_jobs=1).fit(form, y)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak / 50 < REGISTRY[family].memory(0, 4000, 30) <= peak


def test_sums_that_do_not_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of classes fitted in one go, of batches, and of rows in chunks."""
    X, y = rows(300, 20), np.arange(300) % 3
    monkeypatch.setattr(memory, "available", lambda: 300.0)
    message = "with 3 components to 20 variables needs at least .* GB of memory, but only"
    fits = (
        lambda: ExchangeableClassifier().fit(X, y),
        lambda: ExchangeableClassifier().partial_fit(X, y, classes=[0, 1, 2]),
        lambda: ExchangeableClassifier().fit(cut(X, (200, 100)), y),
        lambda: ExchangeableMixture(3).fit(cut(X, (200, 100))),
    )
    for fit in fits:
        with pytest.raises(MemoryError, match=message):
            fit()


@pytest.mark.parametrize(("room", "together"), [(1e12, 4), (2.5, 2), (1.5, 1)])
def test_runs_for_which_there_is_no_memory_wait(
    monkeypatch: pytest.MonkeyPatch, room: float, together: int
) -> None:
    X = rows(300, 20)
    need = REGISTRY["blocks"].memory(len(np.unique(X, axis=0)), 20, 3)
    free = ExchangeableMixture(3, n_init=4, max_iter=2, random_state=0, n_jobs=4).fit(X)
    monkeypatch.setattr(memory, "available", lambda: room * need)
    begun: list[object] = []
    begin = restarts.apart.begin
    monkeypatch.setattr(restarts.apart, "begin", lambda work: begun.append(work) or begin(work))
    model = ExchangeableMixture(3, n_init=4, max_iter=2, random_state=0, n_jobs=4).fit(X)
    assert len(begun) == together
    assert model.history_ == free.history_


def test_the_machine_says_how_much_there_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    assert memory.available() > 1e6
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable: 5 kB\nSwapFree: 1 kB\n")
    (tmp_path / "max").write_text("4000\n")
    (tmp_path / "current").write_text("1000\n")
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "CGROUP", (tmp_path / "nothing", tmp_path / "current"))
    assert memory.available() == 6 * 1024
    monkeypatch.setattr(memory, "CGROUP", (tmp_path / "max", tmp_path / "current"))
    assert memory.available() == 3000
    (tmp_path / "max").write_text("max\n")
    assert memory.available() == 6 * 1024
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "nothing")
    assert memory.available() == float("inf")


def test_hidden_trees_over_30000_variables_are_refused_at_once() -> None:
    X = sp.random_array((50, 30_000), density=0.001, random_state=0, format="csr") > 0
    began = time.process_time()
    with pytest.raises(ValueError, match=r"the limit is 4,000, X has 30,000"):
        mixture("hidden tree", 4).fit(X)
    assert time.process_time() - began < 5


def test_a_process_may_be_given_a_part_of_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    all_of_it = memory.available()
    monkeypatch.setenv(memory.LIMIT, "1e30")
    assert memory.available() == pytest.approx(all_of_it, rel=0.5)
    monkeypatch.setenv(memory.LIMIT, "2e9")
    assert memory.available() < 2e9
    monkeypatch.setenv(memory.LIMIT, "1")
    with pytest.raises(MemoryError, match="but only"):
        mixture("urns", 2).fit(rows(50, 5))
