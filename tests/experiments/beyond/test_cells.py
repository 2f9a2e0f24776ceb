"""The density benchmark: cells that end are kept, differences have errors, and the page says so."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.utils import Bunch

from exchangeable import ExchangeableMixture
from exchangeable.cli import main
from exchangeable.experiments.beyond import cells as beyond
from exchangeable.experiments.beyond import command as beyond_command
from exchangeable.experiments.beyond.cells import (
    CONTINUOUS,
    DEFAULT,
    KEY,
    MODELS,
    PAPERS,
    SETS,
    Beyond,
)
from exchangeable.experiments.beyond.report import published, write_report
from exchangeable.experiments.store import Store

ROOT = Path(__file__).parents[3]


@pytest.fixture
def small_set(monkeypatch):
    """A small set in place of nltcs; every other set is absent. The search is a small one, too."""

    def fetch(name, download_if_missing):
        if name != "nltcs":
            raise OSError(name)
        rng = np.random.default_rng(0)
        kind = rng.integers(0, 2, (300, 1))
        X = (rng.random((300, 16)) < np.where(kind == 0, 0.2, 0.7)).astype(np.uint8)
        return Bunch(train=X[:200], valid=X[200:250], test=X[250:])

    density = beyond.ExchangeableDensity

    def small(**options):
        return density(["urns", "tree"], max_components=3, max_iter=4, n_init=2, **options)

    monkeypatch.setattr(beyond, "fetch_density", fetch)
    monkeypatch.setattr(beyond, "ExchangeableDensity", small)
    return fetch("nltcs", False)


def test_cells_are_kept_and_a_run_goes_on(tmp_path, small_set):
    told = []
    store = Store(tmp_path / "folder" / "cells.csv", KEY)
    Beyond(store, told.append, device="cpu").run(
        ["plants", "nltcs"], [DEFAULT, PAPERS], [0.0, 0.2], [0, 1]
    )
    assert any("plants is not in the data folder" in text for text in told)
    again = Store(store.path, KEY)
    assert len(again.rows) == 5  # two budgets of two seeds, and one peer
    told.clear()
    Beyond(again, told.append).run(["nltcs"], [DEFAULT, PAPERS], [0.0, 0.2], [0, 1])
    assert told == []
    row = again.find(model=DEFAULT, budget="0", seed=0)[0]
    assert "urns" in row["members"] or "tree" in row["members"]
    assert row["left_out"] == ""
    assert (row["device"], int(row["n_settings"]) > 2) == ("cpu", True)


def test_differences_are_means_over_pairs_of_test_rows(tmp_path, small_set):
    store = Store(tmp_path / "cells.csv", KEY)
    experiment = Beyond(store, device="cpu")
    experiment.run(["nltcs"], [PAPERS, DEFAULT], [0.0], [3])
    (row,) = experiment.paired.rows
    assert (row["model"], row["peer"], row["seed"]) == (DEFAULT, PAPERS, "3")
    settings = dict(beyond.PAPER, random_state=3)
    peer = ExchangeableMixture(**settings).fit(small_set.train).score_samples(small_set.test)
    mine = np.load(experiment.rows_of(store.find(model=DEFAULT)[0]))
    assert float(store.find(model=PAPERS)[0]["test"]) == pytest.approx(peer.mean(), abs=1e-5)
    assert float(row["difference"]) == pytest.approx((mine - peer).mean(), abs=1e-5)
    error = (mine - peer).std(ddof=1) / np.sqrt(len(peer))
    assert float(row["error"]) == pytest.approx(error, abs=1e-5)
    assert settings["n_init"] == 10


def test_a_peer_that_was_run_by_other_means_is_compared(tmp_path, small_set, monkeypatch):
    results = ["--results", str(tmp_path / "cells.csv")]
    few = replace(beyond.DENSITY_SETS["nltcs"], n_rows=(200, 50, len(small_set.test)))
    monkeypatch.setitem(beyond.DENSITY_SETS, "nltcs", few)
    plain = ["--sets", "nltcs", "--models", DEFAULT, "--time-budget", "0", "--device", "cpu"]
    beyond_command.main([*plain, *results])
    np.save(tmp_path / "peer.npy", np.full(len(small_set.test), -9.0))
    added = ["--sets", "nltcs", "--peer", "HCLT", str(tmp_path / "peer.npy")]
    beyond_command.main([*added, *results])
    experiment = Beyond(Store(tmp_path / "cells.csv", KEY))
    (row,) = experiment.paired.rows
    mine = experiment.store.find(model=DEFAULT)[0]
    assert row["peer"] == "HCLT"
    assert float(row["difference"]) == pytest.approx(float(mine["test"]) + 9.0, abs=1e-4)
    write_report(experiment.store, tmp_path / "page.md")
    assert "beside **HCLT**" in (tmp_path / "page.md").read_text()
    with pytest.raises(ValueError, match="expected 50 log-probabilities"):
        experiment.add("nltcs", "HCLT", np.zeros(3))
    with pytest.raises(ValueError, match="is run by the benchmark itself"):
        experiment.add("nltcs", PAPERS, np.zeros(50))


def test_a_density_can_be_made_smaller_too(tmp_path, small_set):
    store = Store(tmp_path / "cells.csv", KEY)
    Beyond(store, device="cpu", loss=0.01).run(["nltcs"], [DEFAULT], [0.0], [0])
    (row,) = store.rows
    assert float(row["small_loss"]) <= 0.01
    assert int(row["small_parameters"]) <= int(row["n_parameters"])
    assert 0 < int(row["small_bytes"]) <= int(row["file_bytes"])
    write_report(store, tmp_path / "page.md")
    assert f"{100 * float(row['small_loss']):.3f} %" in (tmp_path / "page.md").read_text()


def test_a_peer_that_is_run_later_is_compared_too(tmp_path, small_set):
    store = Store(tmp_path / "cells.csv", KEY)
    experiment = Beyond(store, device="cpu")
    experiment.run(["nltcs"], [DEFAULT], [0.0], [0])
    assert experiment.paired.rows == []
    experiment.run(["nltcs"], [PAPERS], [0.0], [0])
    assert [row["peer"] for row in experiment.paired.rows] == [PAPERS]


def test_a_store_refuses_what_it_did_not_write(tmp_path):
    path = tmp_path / "other.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="has no column 'dataset'"):
        Store(path, KEY)


def test_both_commands_write_the_same_cells(tmp_path, small_set):
    options = ["reproduce", "--table", "beyond", "--dataset", "nltcs", "--seed", "1"]
    options += ["--model", DEFAULT, "--model", PAPERS, "--time-budget", "0", "--device", "cpu"]
    options += ["--results", str(tmp_path / "cells.csv"), "--page", str(tmp_path / "page.md")]
    result = CliRunner().invoke(main, options)
    assert result.exit_code == 0, result.output
    page = (tmp_path / "page.md").read_text()
    assert "| nltcs |" in page
    assert published()["nltcs"]["best"].replace("-", "\N{MINUS SIGN}") in page
    plain = ["--sets", "nltcs", "--models", DEFAULT, PAPERS, "--seed", "1", "--time-budget", "0"]
    beyond_command.main([*plain, "--device", "cpu", "--results", str(tmp_path / "plain.csv")])
    tests = [
        [row["test"] for row in csv.DictReader((tmp_path / name).read_text().splitlines())]
        for name in ("cells.csv", "plain.csv")
    ]
    assert len(tests[0]) == 2
    assert tests[0] == tests[1]


def cell(dataset, model, test, budget="600", **more):
    """Return a finished cell."""
    row = dict(dataset=dataset, model=model, budget=budget, seed=0, valid=test, test=test)
    row |= dict(error=0.1, n_parameters=10, seconds=1.0, scoring_seconds=0.1, members="2 of tree")
    return row | dict(n_fits=5, n_settings=3, cores=2, device="cpu") | more


def test_ahead_means_by_more_than_two_standard_errors(tmp_path):
    store = Store(tmp_path / "cells.csv", KEY)
    gaps = {"nltcs": 0.21, "plants": 0.19, "msnbc": -0.19, "kdd": -0.21}
    for name, gap in gaps.items():
        store.add(cell(name, PAPERS, -6.0, budget="0"))
        store.add(cell(name, DEFAULT, -6.0 + gap))
        paired = dict(dataset=name, model=DEFAULT, budget="600", seed=0, peer=PAPERS)
        Beyond(store).paired.add(paired | dict(difference=gap, error=0.1, n_rows=9))
    write_report(store, tmp_path / "page.md")
    page = (tmp_path / "page.md").read_text().replace("\N{MINUS SIGN}", "-")
    assert "ahead: nltcs (+0.210 ± 0.100); level: msnbc (-0.190" in page
    assert "behind: kdd (-0.210 ± 0.100)." in page
    assert f"Not run: {', '.join(name for name in beyond.DENSITY_SETS if name not in gaps)}" in page


def test_the_verdict_is_about_the_largest_budget(tmp_path):
    best = float(published()["nltcs"]["best"])
    store = Store(tmp_path / "cells.csv", KEY)
    store.add(cell("nltcs", DEFAULT, best - 0.3, budget="60"))
    store.add(cell("nltcs", DEFAULT, best + 0.1, budget="3600"))
    store.add(cell("nltcs", DEFAULT, best - 0.2, budget="600"))
    write_report(store, tmp_path / "page.md")
    page = (tmp_path / "page.md").read_text()
    assert "nltcs +0.100" in page
    assert "default, 60 s | default, 600 s | default, 3,600 s" in page


def test_stored_cells_belong_to_known_models_and_the_page_is_made_of_them(tmp_path):
    store = Store(ROOT / "results" / "beyond.csv", KEY)
    known = {row["dataset"] for row in store.rows}
    assert known <= set(SETS)
    named = {row["model"] for row in store.rows}
    assert named - set(MODELS) <= {"HCLT (pyjuice)"}
    write_report(store, tmp_path / "page.md")
    assert (tmp_path / "page.md").read_text() == (ROOT / "docs" / "density.md").read_text()
    assert CONTINUOUS in (tmp_path / "page.md").read_text()


def test_the_page_is_about_the_newest_cells_and_names_their_sources(tmp_path):
    best = float(published()["nltcs"]["best"])
    store = Store(tmp_path / "cells.csv", KEY)
    store.add(cell("nltcs", PAPERS, best - 0.2, budget="0") | {"error": 0.03})
    store.add(cell("nltcs", DEFAULT, best - 0.1, budget="390"))
    newer = dict(date="2030-01-01", code="abcdef12", error=0.04)
    store.add(cell("nltcs", DEFAULT, best + 0.1, budget="240") | newer)
    write_report(store, tmp_path / "page.md")
    page = (tmp_path / "page.md").read_text()
    assert "- before sources were noted: default, 390 s (sets: 1)" in page
    assert "- abcdef12 (2030-01-01): default, 240 s (sets: 1)" in page
    assert "nltcs +0.100" in page
    assert "ahead: nltcs (+0.300 ± 0.050, not paired)" in page
    assert len(beyond.code()) == 8
