"""Fits on a real cluster of separate processes equal those in memory, whatever happens to it."""

import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from exchangeable import Blocks, ExchangeableClassifier, ExchangeableMixture, PackedBits
from exchangeable.fitting.restarts import FitProgress
from scaling_rows import assert_same_model, make_rows

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

MIXTURE: dict[str, Any] = dict(n_components=3, random_state=1, max_iter=25, tol=1e-4)
# What Dask itself leaves behind when processes are killed and connections are cut.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    with distributed.Client(cluster) as made:
        made.wait_for_workers(2, timeout=60)
        yield made


def test_classifier_equals_the_one_in_memory(rows: Any, client: Any) -> None:
    X, y = rows
    for blocks, chunks in (("welch", 1200), ("evidence", (1, 499, 700)), ("independent", 150)):
        local = ExchangeableClassifier(blocks=blocks).fit(X, y)
        there = da.from_array(X, chunks=(chunks, 17))
        labels = da.from_array(y, chunks=(chunks,))
        far = ExchangeableClassifier(blocks=blocks).fit(there, labels)
        assert_same_model(local, far)
        answer = far.predict_proba(there)
        assert isinstance(answer, da.Array)
        assert answer.shape == (1200, 3)
        np.testing.assert_allclose(answer.compute(), local.predict_proba(X), rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(far.predict(there).compute(), local.predict(X))
    assert_same_model(local, ExchangeableClassifier(blocks=blocks).fit(there, y))
    bits = PackedBits(da.from_array(PackedBits.pack(X).bits, chunks=(500, -1)), X.shape[1])
    packed = ExchangeableClassifier(blocks=blocks).fit(bits, y)
    assert_same_model(local, packed)
    np.testing.assert_array_equal(packed.predict(bits).compute(), local.predict(X))


def test_mixture_equals_the_one_in_memory(rows: Any, client: Any) -> None:
    X, _ = rows
    weight = np.arange(len(X)) % 4 / 2
    for options, chunks in (
        ({"blocks": Blocks("evidence", start=0.4), "init": "rows"}, (700, 500)),
        ({"blocks": "welch", "init": "random", "n_init": 2}, 130),
    ):
        local = ExchangeableMixture(**MIXTURE, **options).fit(X, sample_weight=weight)
        there = da.from_array(X, chunks=(chunks, -1))
        far = ExchangeableMixture(**MIXTURE, **options).fit(there, sample_weight=weight)
        assert_same_model(local, far)
        assert far.n_iter_ == local.n_iter_
        np.testing.assert_allclose(far.score_samples(there), local.score_samples(X), rtol=1e-10)


@pytest.mark.filterwarnings("ignore:EM ")
def test_other_families_equal_those_in_memory(rows: Any, client: Any) -> None:
    X = rows[0][:, :12].astype(float)
    X[::7, 3] = np.nan
    there = da.from_array(X, chunks=(300, -1))
    for options, holes in (
        ({"family": "hidden tree"}, True),
        ({"family": "count tree", "init": "random"}, False),
        ({"family": "weighted tree"}, False),
    ):
        near, far = (X, there) if holes else (np.nan_to_num(X), da.nan_to_num(there))
        settings = {**MIXTURE, **options, "max_iter": 3}
        local = ExchangeableMixture(**settings).fit(near)
        apart = ExchangeableMixture(**settings).fit(far)
        np.testing.assert_allclose(apart.score_samples(near), local.score_samples(near), rtol=1e-9)


@pytest.mark.parametrize("where", ["cluster", "this process"])
def test_data_frames_bring_names_and_labels(rows: Any, where: str, request: Any) -> None:
    import pandas as pd

    dd = pytest.importorskip("dask.dataframe")
    if where == "cluster":
        request.getfixturevalue("client")
    X, y = rows
    frame = pd.DataFrame(X, columns=[f"v{j}" for j in range(X.shape[1])])
    local = ExchangeableClassifier().fit(frame, y)
    table = dd.from_pandas(frame.assign(kind=y), npartitions=5)
    far = ExchangeableClassifier().fit(table, "kind")
    assert_same_model(local, far)
    assert far.feature_names_in_.tolist() == frame.columns.tolist()
    answer = far.predict(table.drop(columns="kind")).compute()
    np.testing.assert_array_equal(answer, local.predict(frame))
    few = table[table.v0 > 2]  # partitions without a row
    more = dd.concat([few, table])
    assert_same_model(local, ExchangeableClassifier().fit(more, "kind"))


def kill_after_first_iteration(monkeypatch: pytest.MonkeyPatch, action: Any) -> list[int]:
    """Let `action` run once, when the first iteration of EM is reported."""
    done: list[int] = []
    update = FitProgress.update

    def updating(self: Any, run: int, state: Any) -> None:
        update(self, run, state)
        if state.n_iter >= 1 and not done:
            done.append(state.n_iter)
            action()

    monkeypatch.setattr(FitProgress, "update", updating)
    return done


def test_a_killed_worker_does_not_change_the_fit(
    rows: Any, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, _ = rows
    options = dict(MIXTURE, blocks="welch", init="random")
    local = ExchangeableMixture(**options).fit(X)
    pids = client.run(os.getpid)
    victim = next(iter(pids.values()))
    done = kill_after_first_iteration(monkeypatch, lambda: os.kill(victim, signal.SIGKILL))
    far = ExchangeableMixture(**options).fit(da.from_array(X, chunks=(100, -1)))
    assert done == [1]
    assert far.n_iter_ == local.n_iter_ > 3
    assert_same_model(local, far)
    client.wait_for_workers(2, timeout=60)  # the nanny has started another in its place
    assert victim not in client.run(os.getpid).values()


def broken(number: int) -> Any:
    if number == 3:
        raise OSError("disk on fire")
    return make_rows()[0][100 * number : 100 * (number + 1)]


@pytest.mark.parametrize("where", ["cluster", "this process"])
def test_a_partition_that_raises_is_named(where: str, request: Any) -> None:
    if where == "cluster":
        request.getfixturevalue("client")
    parts = [
        da.from_delayed(dask.delayed(broken)(number), shape=(100, 40), dtype=np.uint8)
        for number in range(5)
    ]
    with pytest.raises(ValueError, match=r"partition 3 of X could not be computed.*disk on fire"):
        ExchangeableMixture(**MIXTURE).fit(da.concatenate(parts))
    bad = [make_rows()[0][:100], make_rows()[0][:100].astype(float)]
    bad[1][5, 5] = np.inf
    there = da.concatenate([da.from_array(part.astype(float)) for part in bad])
    with pytest.raises(ValueError, match="partition 1 of X: Input contains infinity"):
        ExchangeableMixture(**MIXTURE).fit(there)


def test_a_client_closed_in_the_middle_gives_an_error_and_no_hang(
    rows: Any, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, _ = rows
    with distributed.Client(cluster) as short_lived:
        closing = threading.Thread(target=short_lived.close)
        kill_after_first_iteration(monkeypatch, closing.start)
        model = ExchangeableMixture(**{**MIXTURE, "tol": 0.0, "max_iter": 5000})
        there = da.from_array(X, chunks=(100, -1))
        found: list[Exception] = []

        def fit() -> None:
            try:
                model.fit(there)
            except Exception as error:
                found.append(error)

        fitting = threading.Thread(target=fit, daemon=True)
        fitting.start()
        fitting.join(120)
        assert not fitting.is_alive()
        assert isinstance(found[0], RuntimeError)
        assert "the Dask client was closed during the fit" in str(found[0])
        closing.join()


def test_collections_that_do_not_go_together_are_refused(rows: Any) -> None:
    X, y = rows
    there = da.from_array(X, chunks=(400, -1))
    with pytest.raises(ValueError, match="y has 2 partitions, X has 3"):
        ExchangeableClassifier().fit(there, da.from_array(y, chunks=600))
    with pytest.raises(ValueError, match=r"y has shape \(7,\), expected \(1200,\)"):
        ExchangeableClassifier().fit(there, y[:7])
    with pytest.raises(ValueError, match="names a column, but X is a Dask array"):
        ExchangeableClassifier().fit(there, "kind")
    with pytest.raises(ValueError, match="y is missing"):
        ExchangeableClassifier().fit(there)
    with pytest.raises(ValueError, match="sample_weight is zero for every row"):
        ExchangeableClassifier().fit(there, y, sample_weight=np.zeros(1200))
    with pytest.raises(ValueError, match=r"partition 1 of X: .* is -1\.0; weights must be finite"):
        ExchangeableMixture(2).fit(there, sample_weight=np.where(np.arange(1200) == 500, -1, 1))
