"""Tables as people have them, by the commands that people type."""

import codecs
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import exchangeable
from exchangeable.cli import main

HEADER = "key;age;weight;city;member;date_in;empty;version;const;q_1;counts;buys"


def lines(n_rows=60, buys=lambda row, value: value):
    rng = np.random.default_rng(0)
    made = []
    for row in range(n_rows):
        kind = rng.random() < 0.5
        cells = [
            f"C{row:03d}",
            rng.integers(18, 80) if row % 7 else "",
            f"{rng.normal(70 + 5 * kind, 10):.1f}".replace(".", ","),
            ("Köln", "Rome", "Oslo")[rng.integers(3)],
            ("True", "False", "")[rng.integers(3)],
            f"{rng.integers(1, 29):02d}.{rng.integers(1, 13):02d}.{rng.integers(2022, 2025)}",
            "",
            "v1",
            7,
            rng.integers(0, 2),
            "0,5" if row % 2 else "2,0",
            buys(row, "yes" if kind else "no"),
        ]
        made.append(";".join(map(str, cells)))
    return "\n".join([HEADER, *made]) + "\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("m.csv").write_bytes(lines().encode("latin-1"))
    return tmp_path


def run(*arguments, code=0):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
    return result


def coded(name, *options):
    """Return the model of a file, and what was said about it."""
    result = run("fit", name, "--target", "buys", "--id", "key", *options, "-o", "m.exch")
    return exchangeable.load("m.exch"), result.stderr


def test_separators_encodings_and_marks_make_no_difference(folder):
    text = lines()
    forms = {
        "utf8.csv": text.encode(),
        "mark.csv": codecs.BOM_UTF8 + text.encode(),
        "u16.csv": text.encode("utf-16"),
        "tabs.csv": text.replace(";", "\t").encode(),
        "pipe.tsv": text.replace(";", "|").encode(),
        "numbered.csv": "\n".join(
            f"{row or ''};{line}" for row, line in enumerate(text.splitlines())
        ).encode(),
    }
    expected, said = coded("m.csv")
    assert "m.csv: not UTF-8: read as cp1252" in said
    for name, data in forms.items():
        Path(name).write_bytes(data)
        found, said = coded(name)
        assert found.kinds_ == expected.kinds_
        assert found.class_log_prior_.tolist() == expected.class_log_prior_.tolist()
        assert ("numbers the rows: left out" in said) == (name == "numbered.csv")
    answers = {
        name: run("predict", "m.exch", name, "-o", "p.csv") and pd.read_csv("p.csv")
        for name in ("m.csv", "u16.csv")
    }
    assert answers["m.csv"].columns.tolist() == ["key", "prediction", "probability"]
    assert answers["m.csv"]["key"].tolist() == [f"C{row:03d}" for row in range(60)]
    pd.testing.assert_frame_equal(answers["m.csv"], answers["u16.csv"])
    assert (
        "the file is not utf-8"
        in run("fit", "m.csv", "--encoding", "utf-8", "-o", "x", code=1).stderr
    )
    assert (
        "'martian' is unknown"
        in run("fit", "m.csv", "--encoding", "martian", "-o", "x", code=1).stderr
    )
    assert "one character" in run("fit", "m.csv", "--sep", "::", "-o", "x", code=1).stderr


def test_what_is_said_once_of_dates_commas_and_empty_columns(folder):
    model, said = coded("m.csv")
    assert said.count("decimal commas in 'weight', 'counts'") == 1
    assert said.count("'date_in' holds dates: split into year, month, weekday") == 1
    assert said.count("left out as empty: 'empty'") == 1
    assert model.kinds_["date_in.month"] == "nominal"
    assert model.kinds_["date_in.year"] == "ordinal"
    assert model.kinds_["weight"] == "continuous"
    assert model.kinds_["const"] == "nominal"
    assert "date_in.month" in run("query", "m.exch", "--given", "date_in.weekday=Monday").stdout
    said = run("predict", "m.exch", "m.csv").stderr
    assert "dates" not in said
    model, said = coded("m.csv", "--dates", "drop")
    assert "'date_in' holds dates: left out" in said
    assert not any(name.startswith("date_in") for name in model.kinds_)
    model, _ = coded("m.csv", "--drop", "date_*", "--drop", "q_?")
    assert {"date_in", "q_1"}.isdisjoint(model.kinds_)
    model, _ = coded("m.csv", "--keep", "q_*", "--keep", "city", "--decimal", ".")
    assert list(model.kinds_) == ["city", "q_1"]
    model, _ = coded("m.csv", "--keep", "weight", "--decimal", ".", "--kind", "w*=nominal")
    assert isinstance(model.columns_["columns"][0]["levels"][0], str)


def test_dates_of_several_forms(folder):
    Path("us.csv").write_text("when,a\n01/31/2024,1\n02/01/2023,0\n", encoding="utf-8")
    said = run("fit", "us.csv", "--components", 1, "-o", "m").stderr
    assert "split into year, month" in said
    assert "--date-format" not in said
    Path("either.csv").write_text("when,a\n01/02/2024,1\n03/02/2023,0\n", encoding="utf-8")
    assert "--date-format" in run("fit", "either.csv", "--components", 1, "-o", "m").stderr
    run("fit", "either.csv", "--components", 1, "--date-format", "%m/%d/%Y", "-o", "m")
    assert "when.month" in exchangeable.load("m").kinds_
    Path("bad.csv").write_text("when,a\nsoon,1\n,0\n", encoding="utf-8")
    said = run("score", "m", "bad.csv", code=1).stderr
    assert "row 1, column 'when' is 'soon'; expected a date written as %m/%d/%Y" in said
    Path("hole.csv").write_text("when,a\n,1\n03/02/2023,\n", encoding="utf-8")
    result = run("impute", "m", "hole.csv")
    assert "empty dates in 'when' stay empty" in result.stderr
    assert result.stdout.splitlines()[1] == ",1"
    frame = pd.DataFrame(
        {"when": pd.date_range("2024-01-01", periods=9, freq="40h"), "a": [1, 0, 1] * 3}
    )
    frame.to_parquet("t.parquet")
    assert (
        "split into weekday, hour" in run("fit", "t.parquet", "--components", 1, "-o", "m").stderr
    )


def test_all_problems_are_told_at_once(folder):
    text = lines(buys=lambda row, value: "" if row in (3, 4) else value).splitlines()
    text[0] = text[0].replace("q_1", "age").replace("const", "city")
    text[7] = text[7].replace(text[7].split(";")[1], "unknown", 1)
    text[9] = text[9].replace("2,0", "-1,0").replace("0,5", "-1,0")
    Path("bad.csv").write_text("\n".join(text), encoding="utf-8")
    options = ("--target", "buys", "--id", "nokey", "--weights", "counts", "--drop", "xx*")
    said = run("fit", "bad.csv", *options, "-o", "m", code=1).stderr
    for problem in (
        "Error: bad.csv: 7 problems:",
        "columns 2 and 10 are named 'age'",
        "columns 4 and 9 are named 'city'",
        "no column 'nokey'",
        "no column 'xx*' to drop",
        "column 'age' holds numbers, except for 1 cells such as 'unknown' in row 7",
        "row 4, column 'buys' is empty (2 rows are without a class): --unlabelled drop",
        "row 9, column 'counts' is -1; weights must be",
    ):
        assert problem in said, said
    assert not Path("m").exists()
    coded("m.csv")
    broken = pd.read_csv("m.csv", sep=";", encoding="latin-1").drop(columns="city")
    broken["const"], broken["weight"] = "x", "heavy"
    broken["date_in"] = "once"
    broken.to_csv("broken.csv", index=False)
    said = run("predict", "m.exch", "broken.csv", code=1).stderr
    assert "broken.csv: 3 problems" in said
    assert "row 1, column 'date_in' is 'once'; expected a date" in said
    assert "lacks columns that the model uses: 'city'" in said
    assert "column 'weight' is continuous, but holds 'heavy'" in said
    text = lines(30).replace("Rome", "Lima").replace("v1", "v2")
    Path("new.csv").write_text(text, encoding="utf-8")
    said = run("predict", "m.exch", "new.csv").stderr
    assert (
        "cells hold categories that the model has not seen, such as city=Lima, version=v2" in said
    )


def test_texts_that_mean_unknown(folder):
    text = lines().replace(";Oslo;", ";?;").splitlines()
    text[8] = text[8].replace(text[8].split(";")[1], "unknown", 1)
    Path("q.csv").write_text("\n".join(text), encoding="utf-8")
    model, _ = coded("q.csv", "--empty", "?", "--empty", "unknown")
    assert model.kinds_["age"] == "count"
    assert model.columns_["columns"][2]["levels"] == ["Köln", "Rome"]
    said = run("predict", "m.exch", "q.csv").stderr
    assert "not seen" not in said
    commas = 'a,b\n"1,200",1\n"2,300.5",0\n800,1\n'
    Path("thousands.csv").write_text(commas, encoding="utf-8")
    said = run("fit", "thousands.csv", "--components", 1, "-o", "m").stderr
    assert "commas between thousands in 'a'" in said
    assert exchangeable.load("m").kinds_["a"] == "continuous"


def test_rows_without_a_class(folder):
    Path("semi.csv").write_text(
        lines(buys=lambda row, value: value if row % 3 else ""), encoding="utf-8"
    )
    _, said = coded("semi.csv", "--unlabelled", "drop")
    assert "20 rows without a class: left out" in said
    dropped = exchangeable.load("m.exch")
    assert dropped.class_count_.sum() == 40
    model, said = coded("semi.csv", "--unlabelled", "learn")
    assert "20 rows without a class: learned from as well" in said
    assert model.semi_supervised
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.class_count_.sum() == pytest.approx(60)
    result = run("score", "m.exch", "semi.csv", "--json")
    assert "20 rows without a known 'buys' left out" in result.stderr
    measured = json.loads(result.stdout)
    assert (measured["rows"], measured["rows with a class"]) == (60, 40)
    frame = pd.read_csv("semi.csv", sep=";", decimal=",")
    known = frame[frame["buys"].notna()]
    known.to_csv("known.csv", index=False)
    again = json.loads(run("score", "m.exch", "known.csv", "--json").stdout)
    assert again["accuracy"] == measured["accuracy"]
    assert again["log-loss"] == pytest.approx(measured["log-loss"])
    known.assign(buys="maybe").to_csv("other.csv", index=False)
    result = run("score", "m.exch", "other.csv", "--json")
    assert "40 rows of a class unknown to the model: maybe" in result.stderr
    assert json.loads(result.stdout)["accuracy"] == 0
    known.drop(columns="buys").to_csv("none.csv", index=False)
    assert (
        "no column 'buys', so that there is no accuracy"
        in run("score", "m.exch", "none.csv").stderr
    )
    Path("labels.txt").write_text("\n".join(["1", "", "2"] * 20), encoding="utf-8")
    assert (
        "line 2 is empty" in run("fit", "m.csv", "--labels", "labels.txt", "-o", "l", code=1).stderr
    )
    run("fit", "m.csv", "--labels", "labels.txt", "--unlabelled", "drop", "-o", "l")
    assert exchangeable.load("l").classes_.tolist() == [1, 2]


def test_truth_values_keep_their_words(folder):
    frame = pd.DataFrame({"member": [True, False, None, True] * 10, "a": [1, 0, 1, 1] * 10})
    frame.to_csv("t.csv", index=False)
    run("fit", "t.csv", "--components", 1, "--family", "urns", "-o", "m")
    for word in ("True", "true", "1"):
        answer = json.loads(run("query", "m", "--given", f"member={word}", "--json").stdout)
        assert answer["given"] == {"member": True}
    said = run("query", "m", "--given", "member=maybe", code=1).stderr
    assert "'member' must be False or True, got 'maybe'" in said
    run("impute", "m", "t.csv", "-o", "filled.csv")
    filled = pd.read_csv("filled.csv")
    assert filled["member"].dtype == bool
    assert filled["member"][[0, 1, 3]].tolist() == [True, False, True]
    assert "True" in run("sample", "m", "-n", 5, "--given", "member=True").stdout
    coded("m.csv")
    answer = json.loads(run("query", "m.exch", "--given", "member=True", "--json").stdout)
    assert answer["given"] == {"member": True}
    assert answer["most probable"]["row"]["member"] is True


def test_weights_by_column(folder):
    weighted, _ = coded("m.csv", "--weights", "counts")
    plain, _ = coded("m.csv", "--drop", "counts")
    frame = pd.read_csv("m.csv", sep=";", decimal=",", encoding="latin-1")
    by_class = frame.groupby("buys")["counts"].sum()
    assert weighted.class_count_.tolist() == by_class.tolist()
    assert plain.class_count_.sum() == 60
    run("fit", "m.csv", "--weights", "counts", "--id", "key", "--components", 2, "-o", "w.exch")
    assert exchangeable.load("w.exch").n_samples_weight_ == pytest.approx(frame["counts"].sum())
    each = run("score", "w.exch", "m.csv", "--each", "-o", "each.csv") and pd.read_csv("each.csv")
    assert each.columns.tolist() == ["key", "row", "log_probability"]
    mean = json.loads(run("score", "w.exch", "m.csv", "--weights", "counts", "--json").stdout)
    expected = np.average(each["log_probability"], weights=frame["counts"])
    assert mean["mean log-probability"] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        (["--estimator", "density", "--time-budget", "0.2", "--n-init", "1"], "Density"),
        (["--estimator", "density", "--family", "tree", "--n-init", "1"], "Density"),
        (["--estimator", "imputer", "--components", "2"], "Imputer"),
        (["--estimator", "evm", "--statistic", "runs"], "EVM"),
        (["--components", "auto"], "Mixture"),
        (["--target", "a", "--class-weight", "balanced"], "Classifier"),
    ],
)
def test_every_estimator_is_reachable(options, kind, folder):
    rng = np.random.default_rng(0)
    group = rng.random((200, 1)) < 0.5
    rows = (rng.random((200, 6)) < np.where(group == np.arange(6) % 2, 0.9, 0.1)).astype(int)
    pd.DataFrame(rows, columns=list("abcdef")).to_csv("t.csv", index=False)
    seed = [] if kind in ("EVM", "Classifier") else ["--seed", "0"]
    said = run("fit", "t.csv", *options, *seed, "-o", "m").stderr
    model = exchangeable.load("m")
    assert type(model).__name__.endswith(kind)
    assert "mean log-probability" in run("score", "m", "t.csv").stdout
    assert len(run("sample", "m", "-n", 3).stdout.splitlines()) == 4
    assert "probability" in run("query", "m", "--given", "b=1").stdout
    if "auto" in options:
        assert "2 components have the lowest BIC of 1, 2, 3, 5" in said
        assert model.weights_.size == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--estimator", "classifier"], "--estimator classifier predicts classes; give them"),
        (["--estimator", "evm", "--target", "q_1"], "does not predict classes"),
        (
            ["--time-budget", "3"],
            "--time-budget does not go with --estimator mixture, but with density",
        ),
        (
            ["--target", "buys", "--components", "auto"],
            "--components does not go with a classifier",
        ),
        (["--components", "none"], "neither a number of at least 1 nor 'auto'"),
        (["--components", "auto", "--estimator", "imputer"], "fit a mixture instead"),
        (["--family", "urns", "--family", "tree"], "several go with --estimator density"),
        (["--estimator", "evm", "--family", "urns"], "--family does not go with"),
        (["--statistic", "runs"], "--statistic does not go with"),
        (["--unlabelled", "drop"], "--unlabelled is about classes"),
    ],
)
def test_options_that_do_not_go_together(options, message, folder):
    said = run("fit", "m.csv", *options, "-o", "m", code=2).stderr
    assert message in " ".join(said.split())


LEVELS = "never,rarely,often"


@pytest.fixture
def survey(tmp_path, monkeypatch):
    """A survey as it comes: row numbers, remarks, a constant, an order that is no alphabet's."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    kind, words = rng.integers(0, 2, 120), np.array(LEVELS.split(","))
    items = {
        f"q_{j}": words[np.clip(rng.integers(0, 2, 120) + kind, 0, 2)].astype(object)
        for j in range(4)
    }
    for answers in items.values():
        answers[rng.random(120) < 0.1] = None
    frame = pd.DataFrame({"no": np.arange(1, 121), **items, "land": "DE"})
    frame["remark"] = [f"remark {row}" if row % 4 == 0 else None for row in range(120)]
    frame["w"] = np.where(kind, "1,5", "0,5")
    frame.to_csv("survey.csv", sep=";", index=False, encoding="utf-8-sig")
    return frame


def test_classes_of_a_survey_as_it_comes(survey):
    options = ["--components", "2", "--weights", "w", "--draws", "10", "--seed", "0"]
    made = run("classes", "survey.csv", *options, "--levels", f"q_*={LEVELS}", "--report", "r.html")
    for note in (
        "left out as numbers of rows: 'no'",
        "left out as constant: 'land'",
        "left out as another text in every row: 'remark'",
    ):
        assert note in made.stderr
    told = [line.split()[:2] for line in made.stdout.splitlines() if line.startswith("q_1")]
    assert told == [["q_1", level] for level in LEVELS.split(",")]
    page = Path("r.html").read_text(encoding="utf-8")
    assert "q_3: often" in page
    assert "remark" not in page
    assert "fitted to 120 rows with sampling weights of 4 ordinal items" in page
    kept = run("classes", "survey.csv", *options, "--kind", "no=continuous", "--keep", "[nq]*")
    assert "numbers of rows" not in kept.stderr
    nothing = run("classes", "survey.csv", *options, "--keep", "land", code=1)
    assert "no items are left that tell rows apart" in nothing.stderr


def test_the_order_of_levels_is_said_or_told(survey):
    fit = ["fit", "survey.csv", "--keep", "q_*", "--components", "2", "--seed", "0", "-o", "m"]
    told = run(*fit, "--kind", "q_*=ordinal").stderr
    assert "levels are in the order of the alphabet in 'q_0', 'q_1', 'q_2', 'q_3'" in told
    assert "never < often < rarely (--levels 'q_0=…' says otherwise)" in told
    assert "alphabet" not in run(*fit, "--levels", f"q_*={LEVELS}").stderr
    columns = exchangeable.load("m").columns_["columns"]
    assert all(column["levels"] == LEVELS.split(",") for column in columns)
    assert all(column["kind"] == "ordinal" for column in columns)
    run("predict", "m", "survey.csv")
    wrong = run(*fit, "--levels", "q_*=never,often", "--levels", "z=a,b", code=1).stderr
    assert "column 'q_0' holds 'rarely', which --levels leaves out" in wrong
    assert "--levels names 'z', which is not a column" in wrong
    assert "expected COLUMN=LOWEST,…,HIGHEST" in run(*fit, "--levels", "q_1", code=1).stderr


def test_a_class_can_be_known(folder):
    model, _ = coded("m.csv")
    answer = json.loads(run("query", "m.exch", "--class", "yes", "--json").stdout)
    assert answer["classes"] == {"no": 0.0, "yes": 1.0}
    assert answer["most probable"]["class"] == "yes"
    shares = model.marginals(given_class="yes")["city"]
    assert answer["columns"]["city"] == pytest.approx(dict(shares))
    wrong = run("query", "m.exch", "--class", "maybe", code=1).stderr
    assert "--class maybe: the model has 'no', 'yes'" in wrong
    wrong = run("query", "m.exch", "--given", "buys=yes", code=1).stderr
    assert "takes it as --class yes" in wrong


@pytest.fixture
def answers(tmp_path, monkeypatch):
    """Answers to a test, some of them missing."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    chance = 1 / (1 + np.exp(np.linspace(-1, 1, 5) - rng.normal(size=(300, 1))))
    made = pd.DataFrame(1.0 * (rng.random((300, 5)) < chance), columns=list("abcde"))
    return made.mask(rng.random(made.shape) < 0.05)


def test_a_mixed_rasch_model_of_words(answers):
    words = answers.replace({0.0: "wrong", 1.0: "right"})
    words.to_csv("w.csv", index=False)
    options = ["--components", "2", "--n-init", "1", "--seed", "0", "--persons", "p.csv"]
    said = run("rasch", "w.csv", *options, code=1).stderr
    assert "column 'a' holds 'wrong'; answers are 0, 1, 2, …" in said
    assert "column 'e' holds 'wrong'" in said
    run("rasch", "w.csv", "--levels", "*=wrong,right", *options)
    model = exchangeable.RaschModel(2, n_init=1, random_state=0).fit(answers)
    assert pd.read_csv("p.csv")["class"].tolist() == model.predict(answers).tolist()
