"""The density benchmark in several processes: what they leave is packed, and merged again."""

import numpy as np

from exchangeable.experiments.beyond.cells import DEFAULT, KEY, PAPERS, Beyond
from exchangeable.experiments.beyond.side_by_side import CELLS, OWN, ROWS, SideBySide, merge
from exchangeable.experiments.store import Store


def left_by_a_process(job, name, model, budget, each):
    experiment = Beyond(Store(job.own(name) / OWN, KEY))
    cell = {"dataset": name, "model": model, "budget": budget, "seed": "0"}
    experiment.keep_rows(cell, each)
    experiment.store.add({**cell, "test": f"{each.mean():.5f}"})


def test_what_processes_leave_is_packed_and_merged(tmp_path):
    rng = np.random.default_rng(0)
    mine, peers, others = (rng.normal(-6.0, 1.0, 50) for _ in range(3))
    first, second = (SideBySide(tmp_path / name, [], 1) for name in ("one", "two"))
    for job in (first, second):
        job.folder.mkdir()
    left_by_a_process(first, "nltcs", DEFAULT, "30", mine)
    left_by_a_process(first, "plants", DEFAULT, "30", others)
    left_by_a_process(second, "nltcs", PAPERS, "0", peers)
    for job in (first, second):
        job.pack()
        assert sorted(path.name for path in job.folder.iterdir()) == [CELLS, "log.txt", ROWS]
    experiment = Beyond(Store(tmp_path / "results" / "beyond.csv", KEY))
    experiment.store.add({"dataset": "nltcs", "model": DEFAULT, "budget": 30, "seed": 0, "test": 1})
    merge(experiment, [first.folder, second.folder])
    assert len(experiment.store.rows) == 3
    (cell,) = experiment.store.find(dataset="nltcs", model=DEFAULT)
    assert cell["test"] == f"{mine.mean():.5f}"
    (pair,) = experiment.paired.rows
    assert (pair["dataset"], pair["peer"]) == ("nltcs", PAPERS)
    assert pair["difference"] == f"{(mine - peers).mean():.5f}"


def test_a_process_that_fails_does_not_end_the_others(tmp_path, monkeypatch):
    monkeypatch.setenv("EXCHANGEABLE_DATA", str(tmp_path / "nothing"))
    told = []
    job = SideBySide(tmp_path / "job", ["--models", DEFAULT], 2, tell=told.append)
    job.run(["nltcs", "no such set"])
    (failed,) = told
    assert failed.startswith("no such set has failed (2)")
    assert "nltcs is not in the data folder" in (job.folder / "log.txt").read_text()


def test_processes_that_are_late_are_stopped(tmp_path):
    told = []
    SideBySide(tmp_path / "job", [], 1, 0.5, told.append).run(["nltcs", "plants"])
    assert told == ["nltcs is stopped: there is no time left", "there was no time for plants"]
