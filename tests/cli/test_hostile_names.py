"""Names of columns and classes that would harm a terminal, a spreadsheet, a plot or a page."""

import io
import json
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.base import clone

from exchangeable import ExchangeableClassifier, ExchangeableMixture, RaschModel
from exchangeable.cli import main
from exchangeable.report import report_html, write_report
from exchangeable.runtime.text import UNPRINTABLE
from exchangeable.tables import writing

NAMES = ["\x1b[2Jtea", "=cmd|' /C calc'!A0", "mi\x07lk\x9b", "@sum", "$\\frac{$", "plain"]
TAGS = {"div", "strong", "table", "thead", "tbody", "tr", "th", "td", "details", "summary", "pre"}
CLASSES = ["\x1b]0;owned\x07", "+1+1", "$x$ $"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("hostile")
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, 120)
    rows = (rng.random((120, len(NAMES))) < 0.2 + 0.3 * kind[:, None]).astype(int)
    frame = pd.DataFrame(rows, columns=NAMES)
    frame.to_csv(made / "rows.csv", index=False)
    frame.assign(kind=np.array(CLASSES)[kind]).to_csv(made / "labelled.csv", index=False)
    frame.astype(float).mask(rng.random(frame.shape) < 0.2).to_csv(made / "holes.csv", index=False)
    run(made, "fit", "labelled.csv", "--target", "kind", "--output", "kinds.exch")
    return made


def run(folder: Path, *command: str, status: int = 0) -> tuple[str, str]:
    """Run a command in a folder; return what it has written to stdout and stderr."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        result = CliRunner().invoke(main, command)
    assert result.exit_code == status, result.output
    return result.stdout, result.stderr


def raw(text: str) -> list[str]:
    return [found for line in text.split("\n") for found in UNPRINTABLE.findall(line)]


@pytest.mark.parametrize(
    ("command", "status"),
    [
        (("inspect", "kinds.exch"), 0),
        (("info", "kinds.exch"), 0),
        (("query", "kinds.exch", "--given", "plain=1"), 0),
        (("query", "kinds.exch", "--given", "\x1b[2Jtea=1,plain=0"), 0),
        (("query", "kinds.exch", "--given", "\x1b[2J=1"), 1),
        (("query", "kinds.exch", "--given", "\x1b[2Jtea=5"), 1),
        (("score", "kinds.exch", "\x1b[2J.csv"), 1),
        (("fit", "labelled.csv", "--target", "\x1b[2J", "--output", "x.exch"), 1),
        (("fit", "labelled.csv", "--family", "urns", "--output", "x.exch"), 1),
        (("fit", "labelled.csv", "--components", "1", "--output", "x.exch"), 0),
        (("fit", "rows.csv", "--components", "1", "--output", "\x1b[2J.exch"), 0),
    ],
    ids=lambda value: str(value),
)
def test_control_characters_never_reach_a_terminal(
    folder: Path, command: tuple[str, ...], status: int
) -> None:
    out, err = run(folder, *command, status=status)
    assert raw(out) == raw(err) == []
    assert status == 0 or err.startswith("Error: ")


@pytest.mark.parametrize(
    "command",
    [
        ("\x1b[2J",),
        ("--\x1b[2J",),
        ("demo", "\x1b[2J"),
        ("query", "kinds.exch", "\x1b[2J", "\x07"),
        ("fit", "rows.csv", "--\x1b[2J=1"),
        ("fit", "rows.csv", "--components", "\x1b[2J"),
        ("fit", "rows.csv", "--family", "\x9b2J"),
        ("datasets", "\x1b[2J"),
        ("datasets", "path", "\x1b[2J", "\x1b[2J"),
    ],
    ids=str,
)
def test_errors_of_usage_are_escaped(folder: Path, command: tuple[str, ...]) -> None:
    """On a terminal: elsewhere click itself leaves out some of what could do harm."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        result = CliRunner().invoke(main, command, color=True)
    assert result.exit_code == 2
    assert "Error: " in result.stderr
    assert raw(result.stdout) == raw(result.stderr) == []


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", "a\ud800", "\x1b[2J\x00", "\u202e&\"'"]
)
def test_notebooks_show_hostile_names_as_text(name: str) -> None:
    names = pd.Index([name, "tea", "milk"], dtype=object)
    X = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (60, 3)), columns=names)
    y = np.array([name, "plain"], dtype=object)[np.arange(60) % 2]
    fitted = ExchangeableClassifier(blocks="full").fit(X, y)
    given = ExchangeableMixture(2, blocks=[[name], ["tea", "milk"]])
    odd = ExchangeableMixture(family=name)
    for model in (fitted, given, clone(given).fit(X), odd):
        html = model._repr_html_()
        assert raw(html) == []
        assert "<script" not in html
        html.encode()
        plain = ET.fromstring(html)
        assert {each.tag for each in plain.iter()} <= TAGS
        assert model._repr_mimebundle_()["text/html"] == html


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("as_json", [False, True])
def test_tables_written_to_a_terminal_are_escaped(
    as_json: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stdout", screen)
    writing.write_table({name: np.array(CLASSES) for name in NAMES}, "-", as_json)
    assert raw(screen.getvalue()) == []
    assert screen.getvalue().count("\n") == 3 + (not as_json)


@pytest.mark.parametrize(
    "command",
    [
        ("predict", "kinds.exch", "rows.csv", "--all"),
        ("sample", "kinds.exch", "-n", "20", "--seed", "0"),
        ("impute", "kinds.exch", "holes.csv"),
    ],
    ids=lambda value: value[0],
)
@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_no_cell_of_an_answer_is_a_formula(
    folder: Path, command: tuple[str, ...], ending: str
) -> None:
    run(folder, *command, "--output", f"answers.{ending}")
    table = pd.read_csv(
        folder / f"answers.{ending}", sep="," if ending == "csv" else "\t", header=None, dtype=str
    )
    cells = [cell for cell in table.to_numpy().ravel() if isinstance(cell, str)]
    assert not [cell for cell in cells if cell[0] in "=+-@\t\r"]
    assert [cell for cell in cells if cell.startswith(("'=", "'@", "'+"))]


def test_plain_numbers_are_not_quoted(tmp_path: Path) -> None:
    cells = ["-1", "+2.5", "-1e-3", "-1+1", "-", "@a", "\tb", "\rc", "d", "="]
    writing.write_table({"x": cells, "y": np.linspace(-1, 0, 10)}, str(tmp_path / "a.csv"), False)
    read = pd.read_csv(tmp_path / "a.csv", dtype=str, keep_default_na=False)
    assert read["x"].tolist() == cells[:3] + [f"'{cell}" for cell in cells[3:8]] + ["d", "'="]
    assert read["y"][0] == "-1.0"
    writing.write_table({"x": cells}, str(tmp_path / "a.parquet"), False)
    assert pd.read_parquet(tmp_path / "a.parquet")["x"].tolist() == cells


def test_lone_surrogates_break_no_file_page_or_plot(tmp_path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from exchangeable.plotting import (
        BlockMapDisplay,
        ContributionsDisplay,
        CountDistributionDisplay,
        ExchangeabilityDisplay,
        ItemCurvesDisplay,
        ProfileDisplay,
    )

    names = ["a\ud800", "$\\frac{$", "\x1b[2J", "tea"]
    for ending in ("csv", "tsv", "parquet"):
        writing.write_table(
            {name: ["\udfff", "x"] for name in names}, str(tmp_path / f"t.{ending}"), False
        )
    writing.write_table({names[0]: ["\udfff"]}, str(tmp_path / "t.json"), True)
    assert json.loads((tmp_path / "t.json").read_text()) == {"a\ufffd": "\ufffd"}
    rng = np.random.default_rng(0)
    y = np.array(["$\\x $", "b\ud800", "\x1b"])[rng.integers(0, 3, 90)]
    X = pd.DataFrame((rng.random((90, 4)) < 0.4).astype(int), columns=pd.Index(names, dtype=object))
    model = ExchangeableClassifier().fit(X, y)
    write_report(model, tmp_path / "page.html", title="\ud800")
    assert "\ufffd" in report_html(model)
    row = X.iloc[[0]] * 0 + 1
    classes = ExchangeableMixture(2, blocks="independent", random_state=0, tol=1e-2).fit(X)
    for display in (
        BlockMapDisplay.from_estimator(model),
        CountDistributionDisplay.from_estimator(model, target=y[0]),
        ContributionsDisplay.from_estimator(model, row, target="$\\x $", against="\x1b"),
        ExchangeabilityDisplay.from_data(X),
        ItemCurvesDisplay.from_estimator(RaschModel().fit(X)),
        ProfileDisplay.from_estimator(classes, names=["$\\x $", "b\ud800"], style="bars"),
        ProfileDisplay.from_estimator(classes, names=["\x1b", "<b>"]),
    ):
        display.figure_.savefig(tmp_path / "figure.png")
        display.figure_.savefig(tmp_path / "figure.svg")


def test_titles_of_pages_are_escaped() -> None:
    X = pd.DataFrame(np.eye(4, dtype=int), columns=["<script>", "\x1b", "$\\frac{$", "x" * 5000])
    model = ExchangeableMixture(1, random_state=0).fit(X)
    page = report_html(model, title="<script>\x1b\ud800")
    assert "<title>&lt;script&gt;\\x1b\\ud800</title>" in page
    assert not [found for found in UNPRINTABLE.findall(page) if found not in "\n\t"]


@pytest.mark.parametrize(
    ("command", "status"),
    [
        (("classes", "rows.csv", "--components", "2", "--seed", "0", "--report", "c.html"), 0),
        (("classes", "rows.csv", "--keep", "\x1b[2J", "--report", "c.html"), 1),
        (("rasch", "rows.csv", "--report", "r.html"), 0),
        (("rasch", "rows.csv", "--keep", "\x1b[2J", "--report", "r.html"), 1),
    ],
    ids=lambda value: str(value),
)
def test_names_in_reports_of_analyses(folder: Path, command: tuple[str, ...], status: int) -> None:
    output, errors = run(folder, *command, status=status)
    assert not raw(output + errors)
    if status == 0:
        page = (folder / command[-1]).read_text()
        assert not [found for found in UNPRINTABLE.findall(page) if found != "\n"]
