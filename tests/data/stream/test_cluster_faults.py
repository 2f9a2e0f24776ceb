"""Workers that die or dawdle in any phase of a fit: the same fit to the bit, or a clear error."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exchangeable import ExchangeableClassifier, ExchangeableMixture
from exchangeable.data.stream import waiting
from exchangeable.data.stream.cluster import ClusterRows
from scaling_rows import make_rows

da = pytest.importorskip("dask.array")
cloudpickle = pytest.importorskip("cloudpickle")
distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.filterwarnings("ignore")  # what Dask says when processes are killed


@pytest.fixture(scope="module")
def client(cluster: Any) -> Iterator[Any]:
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import it
    with distributed.Client(cluster) as made:
        yield made


class Fault:
    """A pass in which the first task to get there kills its worker, or takes its time."""

    def __init__(self, function: Any, marker: Path, seconds: float) -> None:
        self.function, self.marker, self.seconds = function, str(marker), seconds

    def __call__(self, chunk: Any) -> Any:
        try:
            os.close(os.open(self.marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return self.function(chunk)
        if not self.seconds:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(self.seconds)
        return self.function(chunk)


def fit(kind: str, X: Any, y: Any) -> Any:
    there = da.from_array(X, chunks=(200, -1))
    if kind == "classifier":
        return ExchangeableClassifier(blocks="evidence").fit(there, y)
    return ExchangeableMixture(3, blocks="welch", random_state=1, max_iter=3, tol=0.0).fit(there)


def disturbed(kind: str, at: int, marker: Path, seconds: float = 0.0) -> tuple[Any, int]:
    """Return a fit with a fault in one of its passes, and the number of passes."""
    passes: list[int] = []
    total = ClusterRows.total

    def faulty(self: Any, function: Any) -> Any:
        passes.append(len(passes))
        return total(self, Fault(function, marker, seconds) if passes[-1] == at else function)

    X, y = make_rows()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ClusterRows, "total", faulty)
        return fit(kind, X[:600], y[:600]), len(passes)


def answers(model: Any) -> Any:
    return model.score_samples(make_rows()[0])


@pytest.mark.parametrize("kind", ["classifier", "mixture"])
def test_a_worker_that_dies_in_any_phase_does_not_change_a_bit(
    kind: str, client: Any, tmp_path: Path
) -> None:
    whole, n_passes = disturbed(kind, -1, tmp_path / "never")
    assert not (tmp_path / "never").exists()
    assert n_passes > 1
    # The first pass and that which learns blocks, or one of EM.
    for at in (0, 1) if kind == "classifier" else (n_passes // 2,):
        marker = tmp_path / f"killed in {at}"
        model, again = disturbed(kind, at, marker)
        assert marker.exists()
        assert again == n_passes
        np.testing.assert_array_equal(answers(model), answers(whole))
        if kind == "mixture":
            assert model.history_ == whole.history_


def test_a_slow_worker_does_not_change_a_bit(client: Any, tmp_path: Path) -> None:
    whole, _ = disturbed("mixture", -1, tmp_path / "never")
    model, _ = disturbed("mixture", 2, tmp_path / "slow", seconds=0.7)
    assert (tmp_path / "slow").exists()
    assert model.history_ == whole.history_
    np.testing.assert_array_equal(answers(model), answers(whole))


class Deadly:
    """A pass that kills every worker that makes it."""

    def __call__(self, chunk: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)


def test_workers_that_always_die_give_an_error(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    total = ClusterRows.total
    monkeypatch.setattr(ClusterRows, "total", lambda self, function: total(self, Deadly()))
    monkeypatch.setattr(client.cluster.scheduler, "allowed_failures", 1)
    X, y = make_rows()
    with pytest.raises(RuntimeError, match="Dask workers died again and again during the fit"):
        fit("classifier", X[:200], y[:200])


@pytest.fixture
def one_thread() -> Iterator[Any]:
    """A cluster whose scheduler and worker are threads of this process."""
    with (
        distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            processes=False,
            dashboard_address=":0",
            silence_logs=50,
        ) as cluster,
        distributed.Client(cluster) as made,
    ):
        yield made


def broken(monkeypatch: pytest.MonkeyPatch, breaks: Any) -> None:
    """Fit a mixture, something breaking in its second pass."""
    total, passes = ClusterRows.total, []

    def breaking(self: Any, function: Any) -> Any:
        passes.append(function)
        if len(passes) == 2:
            breaks()
        return total(self, function)

    monkeypatch.setattr(ClusterRows, "total", breaking)
    fit("mixture", *(rows[:600] for rows in make_rows()))


def test_a_cluster_that_has_lost_all_workers_gives_an_error(
    one_thread: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "LOOK", 0.01)
    monkeypatch.setattr(waiting, "WITHOUT_WORKERS", 0.05)
    (worker,) = one_thread.cluster.workers.values()
    with pytest.raises(RuntimeError, match="the Dask cluster has had no workers for"):
        broken(monkeypatch, lambda: one_thread.sync(worker.close))


def test_a_lost_connection_to_the_scheduler_gives_an_error(
    one_thread: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def cut() -> None:
        one_thread.scheduler_comm.comm.abort()

    with pytest.raises(RuntimeError, match=r"connection to the Dask scheduler was lost|was closed"):
        broken(monkeypatch, lambda: one_thread.sync(cut))
