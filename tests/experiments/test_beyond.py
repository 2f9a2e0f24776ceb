"""The experiment beyond the paper: cells that end are kept, and a run goes on where it was."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.utils import Bunch

from exchangeable.cli import main
from exchangeable.experiments import beyond
from exchangeable.experiments.beyond import (
    AVERAGE,
    FAMILIES,
    JOINED,
    KEY,
    MODELS,
    PAPERS,
    SETS,
    Beyond,
    search_starts,
)
from exchangeable.experiments.beyond_report import published, write_report
from exchangeable.experiments.store import Store

ROOT = Path(__file__).parents[2]


@pytest.fixture
def small_set(monkeypatch):
    """A small set in place of nltcs; every other set is absent."""

    def fetch(name, download_if_missing):
        if name != "nltcs":
            raise OSError(name)
        rng = np.random.default_rng(0)
        kind = rng.integers(0, 2, (300, 1))
        X = (rng.random((300, 16)) < np.where(kind == 0, 0.2, 0.7)).astype(np.uint8)
        return Bunch(train=X[:200], valid=X[200:250], test=X[250:])

    monkeypatch.setattr(beyond, "fetch_density", fetch)


def test_cells_are_kept_and_a_run_goes_on(tmp_path, small_set):
    told = []
    models = ["urns", "naive Bayes", AVERAGE, JOINED]
    store = Store(tmp_path / "folder" / "cells.csv", KEY)
    Beyond(store, search_seconds=0.5, n_averaged=2, tell=told.append).run(
        ["plants", "nltcs"], models, range(2)
    )
    assert any("plants is not in the data folder" in text for text in told)
    again = Store(store.path, KEY)
    assert len(again.rows) == 6  # two seeds of two families, one average, one of joined families
    seeds = again.find(dataset="nltcs", model="urns")
    assert seeds[0]["n_components"] == seeds[1]["n_components"]
    assert not seeds[1]["search_seconds"]
    told.clear()
    Beyond(again, tell=told.append).run(["nltcs"], models, range(2))
    assert told == []
    average, joined = again.find(model=AVERAGE)[0], again.find(model=JOINED)[0]
    assert float(joined["valid"]) > float(average["valid"]) - 1e-6
    assert "2 of" in joined["family"]
    write_report(again, tmp_path / "page.md")
    assert joined["family"] in (tmp_path / "page.md").read_text()


def test_a_store_refuses_what_it_did_not_write(tmp_path):
    path = tmp_path / "other.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="has no column 'dataset'"):
        Store(path, KEY)


def test_the_command_writes_the_page(tmp_path, small_set):
    options = ["reproduce", "--table", "beyond", "--dataset", "nltcs", "--seeds", "1"]
    options += ["--model", "naive Bayes", "--model", PAPERS, "--search-seconds", "0.5"]
    options += ["--results", str(tmp_path / "cells.csv"), "--page", str(tmp_path / "page.md")]
    result = CliRunner().invoke(main, options)
    assert result.exit_code == 0, result.output
    page = (tmp_path / "page.md").read_text()
    assert "| nltcs |" in page
    assert published()["nltcs"]["best"].replace("-", "\N{MINUS SIGN}") in page


def test_the_page_says_who_is_ahead(tmp_path):
    store = Store(tmp_path / "cells.csv", KEY)
    for name, test in (("nltcs", -5.9), ("plants", -12.5), ("msnbc", -6.031)):
        row = dict(dataset=name, model=AVERAGE, seed=0, test=test, valid=test, n_components=3)
        row |= dict(pooling=1.0, shrinkage=0.0, family="tree", n_averaged=2, seconds=1.0)
        store.add(row | dict(n_parameters=10, search_seconds=""))
    write_report(store, tmp_path / "page.md")
    lines = (tmp_path / "page.md").read_text().splitlines()
    assert any(line.startswith("Ahead: nltcs (+0.100)") for line in lines)
    assert any(line.startswith("Equal") and "msnbc" in line for line in lines)
    assert any(line.startswith("Behind: plants") for line in lines)


def test_stored_cells_belong_to_known_models_and_the_page_is_made_of_them(tmp_path):
    store = Store(ROOT / "results" / "beyond.csv", KEY)
    assert {row["model"] for row in store.rows} <= set(MODELS)
    named = {row["family"] for row in store.find(model=AVERAGE)}
    assert named <= set(FAMILIES)
    write_report(store, tmp_path / "page.md")
    assert (tmp_path / "page.md").read_text() == (ROOT / "docs" / "density.md").read_text()


def test_searches_begin_at_settings_of_known_models():
    for (dataset, model), settings in search_starts().items():
        assert dataset in SETS
        assert (settings.family, settings.blocks) == FAMILIES[model]
