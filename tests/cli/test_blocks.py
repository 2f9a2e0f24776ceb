"""Blocks with statistics from the command line."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import exchangeable
from exchangeable import ExchangeableClassifier
from exchangeable.cli import main

rng = np.random.default_rng(0)
KIND = np.repeat([0, 1], 100)
TURNS = np.cumsum(rng.random((200, 6)) < np.where(KIND[:, None] == 0, 0.1, 0.6), axis=1)
HOURS = (TURNS + rng.integers(0, 2, (200, 1))) % 2
NAMES = [f"hour_{j}" for j in range(6)]


@pytest.fixture
def hours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(HOURS, columns=NAMES).assign(kind=KIND)
    frame.to_csv("hours.csv", index=False)
    return "hours.csv"


def test_columns_by_pattern_and_the_statistic_by_evidence(hours: str) -> None:
    asked = ["--target", "kind", "--block", "hour_*=count|runs", "--output", "model.exch"]
    result = CliRunner().invoke(main, ["fit", hours, *asked])
    assert result.exit_code == 0, result.output
    model = exchangeable.load("model.exch")
    by_hand = ExchangeableClassifier(blocks=[(range(6), "runs")]).fit(HOURS, KIND)
    frame = pd.DataFrame(HOURS, columns=NAMES)
    np.testing.assert_allclose(model.predict_proba(frame), by_hand.predict_proba(HOURS))


def test_columns_are_read_in_the_order_in_which_they_are_named(hours: str) -> None:
    asked = ["--drop", "kind", "--components", "1", "--output", "model.exch"]
    asked += ["--block", "hour_5,hour_0,hour_3=first and last"]
    result = CliRunner().invoke(main, ["fit", hours, *asked])
    assert result.exit_code == 0, result.output
    (block,) = exchangeable.load("model.exch")._fitted().blocks
    assert block.variables.tolist() == [5, 0, 3]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--block", "hour_*"], "has no '='"),
        (["--block", "hour_*=hops"], "'hops' is not a statistic; expected one of count"),
        (["--block", "day_*=runs"], "there is no variable 'day_*'"),
        (["--block", "hour_*=runs", "--blocks", "full"], "cannot be used together"),
        (["--block", "hour_*=runs", "--estimator", "evm"], "--block does not go with"),
        (["--block", "hour_*=runs", "--family", "urns"], "do not go with family='urns'"),
    ],
)
def test_what_makes_no_sense(hours: str, options: list[str], message: str) -> None:
    asked = ["fit", hours, "--drop", "kind", "--output", "model.exch", *options]
    result = CliRunner().invoke(main, asked)
    assert result.exit_code in (1, 2)
    assert message in result.stderr.replace("\n", " ")
