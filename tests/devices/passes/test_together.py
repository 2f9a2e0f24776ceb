"""Restarts whose passes are one program on a device end as they do one after the other."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from exchangeable import ExchangeableMixture
from exchangeable.devices.passes.together import Together, make_pass

rng = np.random.default_rng(0)
KIND = rng.integers(0, 3, size=(300, 1))
X = (rng.random((300, 12)) < np.where(np.arange(12) % 3 == KIND, 0.8, 0.2)).astype(float)
BLOCKS = [[0, 3, 6], [1, 4, 7, 10], [2], [5, 8, 9, 11]]
CASES = [
    ("blocks", "independent"),
    ("blocks", BLOCKS),
    ("urns", "auto"),
    ("tree", "auto"),
    ("weighted tree", "auto"),
    ("hidden tree", "auto"),
    ("hidden tree", [([0, 3, 6], "runs")]),
    ("blocks", [([0, 3, 6], "runs"), (range(7, 12), "transitions"), ([1, 2, 4, 5], "count")]),
]


@pytest.mark.parametrize(("family", "blocks"), CASES)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_restarts_together_end_as_those_one_by_one(
    family: str, blocks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    jax = pytest.importorskip("jax")
    cpu = jax.devices("cpu")[0]
    monkeypatch.setattr("exchangeable.fitting.tasks.find_device", lambda *_: cpu)
    sizes = list[int]()

    def noted(self: Together, *arguments: Any) -> None:
        sizes.append(len(self._waiting))
        make_all(self)

    make_all = Together._make_all
    monkeypatch.setattr(Together, "_make_all", noted)

    def fitted() -> Any:
        return ExchangeableMixture(
            3, family=family, blocks=blocks, n_init=3, max_iter=6, random_state=0, device="gpu"
        ).fit(X)

    together = fitted()
    assert max(sizes) == 3
    monkeypatch.setattr("exchangeable.fitting.runs.MOST_TOGETHER", 1)
    sizes.clear()
    alone = fitted()
    assert not sizes
    for one, other in zip(together.history_, alone.history_, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    assert together.score(X) == pytest.approx(alone.score(X), abs=1e-6)


def test_passes_are_made_when_all_members_wait() -> None:
    together, calls = Together(3, 1), list[list[int]]()

    def make(given: Any) -> list[int]:
        calls.append(list(given))
        return [2 * each for each in given]

    def one(number: int) -> list[int]:
        with together:
            return [together.ask("a", 10 * number + step, make) for step in range(number + 1)]

    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(one, range(3)))
    assert found == [[0], [20, 22], [40, 42, 44]]
    assert [sorted(set(call)) for call in calls] == [[0, 10, 20], [11, 21], [22]]
    assert [len(call) for call in calls] == [3, 3, 1]


def test_an_error_ends_all_that_wait_for_the_pass() -> None:
    together, told = Together(2, 2), list[str]()

    def make(given: Any) -> list[int]:
        raise MemoryError(f"no room for {len(given)}")

    def one() -> None:
        with together:
            try:
                together.ask("a", 1, make)
            except MemoryError as error:
                told.append(str(error))

    threads = [threading.Thread(target=one) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == ["no room for 2"] * 2


def test_those_who_never_come_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exchangeable.devices.passes.together.LONGEST_WAIT", 0.01)
    together = Together(2, 1)
    with together:
        assert make_pass(together, "a", 3, lambda given: [each + 1 for each in given]) == 4
    assert make_pass(None, "a", 3, lambda given: [each + 1 for each in given]) == 4
