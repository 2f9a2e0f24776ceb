"""`exchangeable rasch`: what it writes is what the estimator says."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import exchangeable
from exchangeable import RaschModel
from exchangeable.cli import main

rng = np.random.default_rng(0)
ITEMS = [f"<i>{j}" for j in range(5)]
ABILITY = rng.normal(size=(300, 1))
ANSWERS = pd.DataFrame(
    1.0 * (rng.random((300, 5)) < 1 / (1 + np.exp(np.linspace(-1, 1, 5) - ABILITY))), columns=ITEMS
).mask(rng.random((300, 5)) < 0.05)


@pytest.fixture
def table(tmp_path):
    whole = ANSWERS.astype("Int64").assign(person=[f"p{i}" for i in range(300)])
    whole["school"] = rng.choice(["a", "b"], 300)
    whole.to_csv(tmp_path / "answers.csv", index=False)
    return tmp_path


def run(folder, arguments):
    told = [
        "rasch",
        str(folder / "answers.csv"),
        *(part.replace("@", f"{folder}/") for part in arguments.split()),
    ]
    return CliRunner().invoke(main, told)


def test_everything_is_written(table):
    wanted = "--id person --groups school --report @r.html --tables @t --persons @p.csv -o @m.exch"
    result = run(table, wanted)
    assert result.exit_code == 0, result.output
    model = RaschModel().fit(ANSWERS)
    items = pd.read_csv(table / "t" / "items.csv")
    np.testing.assert_allclose(items["difficulty"], model.item_parameters_.thresholds[:, 0])
    np.testing.assert_allclose(items["s.e."], model.item_parameters_.threshold_errors[:, 0])
    persons = pd.read_csv(table / "p.csv")
    assert persons["person"].tolist() == [f"p{i}" for i in range(300)]
    np.testing.assert_allclose(persons["ability"], model.abilities(ANSWERS).estimate)
    kept = exchangeable.load(table / "m.exch")
    np.testing.assert_array_equal(
        kept.item_parameters_.thresholds, model.item_parameters_.thresholds
    )
    page = (table / "r.html").read_text()
    assert "&lt;i&gt;0" in page
    assert "<i>0" not in page
    assert "Andersen" in page
    assert "Andersen" in result.output
    assert "<svg" in page
    assert page.count('<i style="background') == 5  # which colour is which item
    groups = pd.read_csv(table / "t" / "groups.csv", dtype=str)
    assert groups["item"].tolist() == ITEMS
    test = model.andersen(ANSWERS, pd.read_csv(table / "answers.csv")["school"])
    assert groups["p"].tolist() == [f"{p:.3f}" for p in test.differences().p_value]
    assert str(replace(test, p_value=1e-9)).endswith("p < 0.001")
    assert str(replace(test, p_value=0.04)).endswith("p = 0.040")


def test_classes(table):
    wanted = "--id person --drop school --components 2 --n-init 1 --seed 0 --persons @p.csv -o @m"
    result = run(table, wanted)
    assert result.exit_code == 0, result.output
    kept = exchangeable.load(table / "m")
    persons = pd.read_csv(table / "p.csv")
    np.testing.assert_array_equal(persons["class"], kept.predict(ANSWERS))
    assert "difficulty, class 1" in result.output
    assert "Andersen" not in result.output


def test_what_cannot_be_done_is_said(table):
    text = run(table, "--id person")
    assert text.exit_code == 1
    assert "column 'school' holds" in text.output
    assert "--drop 'school'" in text.output
    missing = run(table, "--id person --groups none")
    assert missing.exit_code == 1
    assert "none" in missing.output
    run(table, "--id person --drop school -o @m.exch")
    for command in ("score", "impute"):
        result = CliRunner().invoke(
            main, [command, str(table / "m.exch"), str(table / "answers.csv")]
        )
        assert result.exit_code == 1
        assert "is a RaschModel, which has no answer to this" in result.output
