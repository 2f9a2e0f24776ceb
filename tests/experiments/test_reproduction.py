"""The experiments: what their cells hold, how they are kept, and what pages say about them."""

import csv
import dataclasses
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

from exchangeable.cli.commands.reproduce import reproduce
from exchangeable.experiments.classifiers import BY_NAME, ENTRANTS, run_entrant
from exchangeable.experiments.density import density_tasks
from exchangeable.experiments.problems import Problem, load, run_names
from exchangeable.experiments.reproduction import all_tasks, run_experiments
from exchangeable.experiments.scale import FULL, QUICK
from exchangeable.experiments.tasks import Task, open_stores, open_tasks, run_tasks
from exchangeable.experiments.views import classification as classification_view
from exchangeable.experiments.views import pages
from exchangeable.experiments.views.parts import AGREES, BETTER, WORSE, ChartView, state_of
from exchangeable.experiments.views.svg import line_chart

TINY = dataclasses.replace(
    QUICK, boolean_rows=2_000, boolean_runs=1, slow_rows=200, curve_sizes=(50, 500), n_init=1
)
QUIET = Console(quiet=True)


def test_runs_are_those_of_the_paper():
    count = {name: len(run_names("two-class", name, FULL)) for name in ("20newsgroups", "mnist")}
    assert count == {"20newsgroups": 190, "mnist": 45}
    assert run_names("multi-class", "polarity2", FULL) == []


def test_boolean_cells_hold_accuracies_sizes_and_blocks():
    problem = load("parity", "0", TINY)
    ours = run_entrant(BY_NAME["MEVM, evidence"], problem, None, 1, keep_right=False)
    assert float(ours["accuracy"]) > 0.9
    assert ours["n_train"] == 2000
    assert ours["blocks"] == "1 1"
    nearest = run_entrant(BY_NAME["5-NN"], problem, 200, 1, keep_right=True)
    assert nearest["n_train"] == 200
    assert len(bytes.fromhex(nearest["right"])) == 250
    bits = np.unpackbits(np.frombuffer(bytes.fromhex(nearest["right"]), dtype=np.uint8))
    assert bits.mean() == pytest.approx(float(nearest["accuracy"]), abs=1e-6)


@pytest.mark.parametrize("name", [entrant.name for entrant in ENTRANTS])
def test_every_entrant_takes_rows_of_one_class(name):
    X = np.eye(12, dtype=np.uint8)
    problem = Problem(X, np.zeros(12, dtype=int), X, np.zeros(12, dtype=int))
    assert run_entrant(BY_NAME[name], problem, None, 1, False)["accuracy"] == "1.000000"


def test_learning_in_parts_is_learning(monkeypatch):
    problem = load("counting", "0", TINY)
    whole = run_entrant(BY_NAME["NB"], problem, None, 1, keep_right=True)
    monkeypatch.setattr("exchangeable.experiments.classifiers.IN_PARTS", 100)
    monkeypatch.setattr("exchangeable.experiments.classifiers.ROWS_PER_PART", 300)
    assert run_entrant(BY_NAME["NB"], problem, None, 1, True)["right"] == whole["right"]


def test_an_interrupted_run_goes_on_where_it_was(tmp_path):
    done = []

    def work(number):
        def inner():
            if number == 2 and done == [0, 1]:
                raise KeyboardInterrupt
            done.append(number)
            return {"test": number}

        return inner

    cells = [{"dataset": f"set{n}", "model": "CL"} for n in range(4)]
    tasks = [Task("density", cell, work(n), rank=(n,)) for n, cell in enumerate(cells)]
    with pytest.raises(KeyboardInterrupt):
        run_tasks(open_tasks(tasks, open_stores(tmp_path)), open_stores(tmp_path), QUIET)
    assert [row["test"] for row in open_stores(tmp_path)["density"].rows] == ["0", "1"]
    done.append("interrupted")
    run_experiments(tasks, tmp_path, QUIET)
    assert done == [0, 1, "interrupted", 2, 3]
    run_experiments(tasks[:1], tmp_path, QUIET, again=True)
    assert done[-1] == 0
    assert len(open_stores(tmp_path)["density"].rows) == 4


def test_missing_data_leave_a_cell_out_and_are_told(tmp_path, monkeypatch):
    monkeypatch.setenv("EXCHANGEABLE_DATA", str(tmp_path / "nothing"))
    tasks = density_tasks(["nltcs"], TINY)
    told = run_experiments(tasks, tmp_path, QUIET)
    assert len(told) == 1
    assert told[0].startswith("nltcs: ")


def test_a_slice_of_the_quick_run_and_its_pages(tmp_path):
    tasks = all_tasks(["two-class"], TINY, ["parity"])
    tasks += all_tasks(["theorem", "speed"], TINY)
    tasks = [
        task
        for task in tasks
        if (task.table != "theorem" or (task.cell["function"], task.cell["seed"]) == ("parity", 0))
        and (task.table != "speed" or task.cell["dataset"] == "drawn 50")
    ]
    assert run_experiments(tasks, tmp_path, QUIET) == []
    html = pages.write_pages(tmp_path, tmp_path / "page.md", TINY)
    told, drawn = (tmp_path / "page.md").read_text(), html.read_text()
    assert "| parity | " in told
    assert "[200 rows]" in told
    assert "not run" in told
    assert "images/reproduction_theorem_parity.svg" in told
    assert (tmp_path / "images" / "reproduction_theorem_parity.svg").exists()
    assert drawn.count("<svg ") == 3
    assert "http" not in drawn.replace("http://www.w3.org/2000/svg", "")
    with (tmp_path / "summary.csv").open() as file:
        rows = {(row["dataset"], row["model"]): row for row in csv.DictReader(file)}
    assert float(rows["parity", "MEVM, evidence"]["ours"]) > 0.9
    assert rows["parity", "NB"]["paper"] == "0.497"


def test_a_slice_of_density_with_real_rows(tmp_path, real_data):
    real_data("density/nltcs.ts.data.gz", "density/nltcs.valid.data.gz")
    run_experiments(density_tasks(["nltcs"], TINY), tmp_path, QUIET)
    section = pages.density_section(open_stores(tmp_path)["density"])
    states = {d.model: d.state for d in section.differences}
    assert states["CL"] == AGREES
    assert states["LTM"] == AGREES
    assert set(states) == {"MEVM", "MEVM, evidence", "NB", "NB, from rows", "LTM", "CL"}


def test_the_best_are_marked_by_a_paired_test():
    rng = np.random.default_rng(0)
    base = rng.uniform(0.6, 0.9, size=30)
    accuracies = {"a": base, "b": base + rng.normal(0, 0.02, 30), "c": base - 0.05}
    by_model = {
        name: [{"run": str(n), "accuracy": v} for n, v in enumerate(values)]
        for name, values in accuracies.items()
    }
    assert classification_view.best_models("two-class", by_model) == {"a", "b"}


def test_states():
    assert state_of(0.905, 0.900, 0.005) == AGREES
    assert state_of(0.906, 0.900, 0.005) == BETTER
    assert state_of(-6.2, -6.0, 0.06) == WORSE


@pytest.mark.parametrize("log_y", [False, True])
def test_charts_are_well_formed(log_y):
    lines = {"a & b": [(10, 0.5), (1000, 0.9)], "empty": [], "one": [(100, 0.7)]}
    found = ElementTree.fromstring(
        line_chart(ChartView("name", "1 < 2", "x", "y", lines, log_y=log_y))
    )
    assert sum(element.tag.endswith("polyline") for element in found.iter()) == 2
    assert sum(element.tag.endswith("circle") for element in found.iter()) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--seed", "2"], "--table beyond"),
        (["--table", "beyond", "--quick"], "not for --table beyond"),
        (["--table", "density", "--dataset", "mnist"], "has no cells"),
        (["--table", "beyond", "--dataset", "mnist"], "'mnist'"),
        (["--table", "nonsense"], "'nonsense'"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, message, tmp_path):
    done = CliRunner().invoke(reproduce, [*options, "--page", str(tmp_path / "page.md")])
    assert done.exit_code == 2
    assert message in done.output


def test_the_command_writes_pages(tmp_path):
    where = ["--results", str(tmp_path), "--page", str(tmp_path / "page.md")]
    options = ["--quick", "--table", "speed", "--model", "NB", "--n-jobs", "1"]
    done = CliRunner().invoke(reproduce, [*options, *where])
    assert done.exit_code == 0, done.output
    assert "drawn 800" in (tmp_path / "page.md").read_text()
    assert (tmp_path / "speed.csv").exists()
    before = (tmp_path / "speed.csv").read_text()
    assert CliRunner().invoke(reproduce, [*options, *where]).exit_code == 0
    assert (tmp_path / "speed.csv").read_text() == before
