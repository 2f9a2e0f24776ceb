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


def cell(dataset, model, valid, test, **more):
    """Return a finished cell."""
    row = dict(dataset=dataset, model=model, seed=0, test=test, valid=valid, n_components=3)
    row |= dict(pooling=1.0, shrinkage=0.0, family="", n_averaged="", seconds=1.0)
    return row | dict(n_parameters=10, search_seconds="") | more


def test_the_family_of_the_average_is_chosen_by_validation_rows(tmp_path, small_set):
    """Test rows would choose another one."""
    store = Store(tmp_path / "cells.csv", KEY)
    store.add(cell("nltcs", "urns", -8.0, -7.0))
    store.add(cell("nltcs", "naive Bayes", -7.5, -9.0))
    store.add(cell("nltcs", "urns", -8.5, -6.0, seed=1, n_components=5))
    Beyond(store, n_averaged=1).run(["nltcs"], [AVERAGE, JOINED], range(1))
    (average,), (joined,) = store.find(model=AVERAGE), store.find(model=JOINED)
    assert average["family"] == "naive Bayes"
    assert [float(row["valid"]) for row in Beyond(store)._finished("nltcs")] == [-7.5, -8.0]
    assert "1 of" in joined["family"]


def test_the_verdict_is_about_the_model_that_validation_rows_choose(tmp_path):
    """The average is better on validation rows and worse on test rows, and the other way round."""
    best = {name: float(published()[name]["best"]) for name in ("nltcs", "plants")}
    store = Store(tmp_path / "cells.csv", KEY)
    for name, gap in (("nltcs", 0.1), ("plants", -0.1)):
        average = dict(family="tree", n_averaged=2)
        store.add(cell(name, AVERAGE, -5.0, best[name] + gap, **average))
        store.add(cell(name, JOINED, -6.0, best[name] - gap, family="2 of tree"))
    write_report(store, tmp_path / "page.md")
    lines = (tmp_path / "page.md").read_text().splitlines()
    assert "Ahead: nltcs (+0.100)." in lines
    assert "Behind: plants (\N{MINUS SIGN}0.100)." in lines
