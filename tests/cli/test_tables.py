"""The commands for those who have a table: from file to answers, and what is said when it fails."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from click.testing import CliRunner
from sklearn.datasets import dump_svmlight_file

import exchangeable
from em_families import BY_EM
from exchangeable.cli import main
from exchangeable.families import REGISTRY
from exchangeable.structure.learner import METHODS

COMMAND = str(Path(sys.executable).with_name("exchangeable"))
RNG = np.random.default_rng(0)
KIND = RNG.integers(0, 2, size=200)
X = (RNG.random((200, 6)) < np.where(KIND[:, None] == np.arange(6) % 2, 0.8, 0.2)).astype(int)


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Return a folder, made the current one, with the same table in every format."""
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(kind=np.where(KIND, "yes", "no"))
    frame.to_csv("t.csv", index=False)
    frame.to_csv("t.tsv", index=False, sep="\t")
    frame.to_csv("t.csv.gz", index=False)
    frame.to_parquet("t.parquet")
    dump_svmlight_file(X, KIND, "t.svm", zero_based=False)
    sp.save_npz("t.npz", sp.csr_array(X))
    Path("labels.txt").write_text("\n".join(map(str, KIND)))
    holes = frame.astype(object)
    holes.loc[0, "a"] = holes.loc[3, "f"] = None
    holes.to_csv("holes.csv", index=False)
    mixed = frame.assign(
        age=RNG.integers(18, 80, 200), city=RNG.choice(["Rome", "Oslo", "Bonn"], 200)
    )
    mixed.to_csv("mixed.csv", index=False)
    texts = [
        " ".join(
            w for w, on in zip(["tea", "bus", "sun", "war", "sea", "art"], row, strict=True) if on
        )
        for row in X
    ]
    pd.DataFrame({"body": texts, "kind": frame["kind"]}).to_csv("texts.csv", index=False)
    return tmp_path


def run(*arguments, code=0, given=None):
    result = CliRunner().invoke(main, [str(a) for a in arguments], input=given)
    told = f"{result.output}\n{result.exception!r}"
    assert result.exit_code == code, told
    if code:
        assert "Traceback" not in result.output
    return result


def error(*arguments, code=1):
    message = run(*arguments, code=code).stderr.strip()
    if code == 1:
        assert message.startswith("Error: ")
        assert "\n" not in message
    return message


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "t.parquet"])
def test_all_table_formats_give_the_same_model(name, table):
    run("fit", name, "--target", "kind", "-o", "m")
    expected = exchangeable.ExchangeableClassifier().fit(
        pd.DataFrame(X, columns=list("abcdef")), np.where(KIND, "yes", "no").astype(object)
    )
    found = exchangeable.load("m")
    np.testing.assert_array_equal(
        found.predict_proba(pd.DataFrame(X, columns=list("abcdef"))),
        expected.predict_proba(pd.DataFrame(X, columns=list("abcdef"))),
    )


def test_sparse_formats(table):
    run("fit", "t.svm", "--target", "label", "-o", "a")
    run("fit", "t.npz", "--labels", "labels.txt", "-o", "b")
    one, other = exchangeable.load("a"), exchangeable.load("b")
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
    assert one.classes_.tolist() == [0, 1]
    assert run("predict", "b", "t.npz").stdout == run("predict", "a", "t.svm").stdout
    assert "accuracy" in run("score", "a", "t.svm").stdout


def test_predict_writes_every_format(table):
    run("fit", "t.csv", "--target", "kind", "-o", "m")
    model = exchangeable.load("m")
    expected = model.predict_proba(pd.DataFrame(X, columns=list("abcdef")))
    run("predict", "m", "t.csv", "--all", "-o", "out.csv")
    found = pd.read_csv("out.csv")
    assert found.columns.tolist() == ["prediction", "P(no)", "P(yes)"]
    np.testing.assert_array_equal(found[["P(no)", "P(yes)"]], expected)
    run("predict", "m", "t.csv", "-o", "out.parquet")
    assert (pd.read_parquet("out.parquet")["probability"] == expected.max(axis=1)).all()
    lines = [
        json.loads(line) for line in run("predict", "m", "t.csv", "--json").stdout.splitlines()
    ]
    assert len(lines) == 200
    assert lines[0]["probability"] == expected[0].max()
    piped = run("predict", "m", "-", given=Path("t.csv").read_text()).stdout
    assert piped == run("predict", "m", "t.csv").stdout


def test_a_classifier_trained_for_its_predictions(table):
    run("fit", "t.csv", "--target", "kind", "--training", "hybrid", "-o", "m")
    model = exchangeable.load("m")
    assert model.training == "hybrid"
    holes = pd.read_csv("holes.csv").drop(columns="kind")
    run("predict", "m", "holes.csv", "--all", "-o", "out.csv")
    found = pd.read_csv("out.csv")[["P(no)", "P(yes)"]]
    np.testing.assert_array_equal(found, model.predict_proba(holes))
    assert "accuracy" in run("score", "m", "t.csv").stdout
    run("fit", "t.csv", "--target", "kind", "--training", "fast", "-o", "n", code=2)


def test_mixture_sample_impute_and_score(table):
    run("fit", "t.csv", "--drop", "kind", "--components", 2, "--n-init", 2, "--seed", 0, "-o", "m")
    model = exchangeable.load("m")
    assert (model.n_components, model.n_init, model.random_state) == (2, 2, 0)
    run("impute", "m", "holes.csv", "-o", "filled.csv")
    filled, before = pd.read_csv("filled.csv"), pd.read_csv("holes.csv")
    assert filled.columns.tolist() == before.columns.tolist()
    holes = before.isna()
    assert not filled.isna().any().any()
    assert ((filled == before) | holes).all().all()
    row = before[list("abcdef")].iloc[[0]]
    assert filled.loc[0, "a"] == model.impute(row).iloc[0, 0]
    drawn = pd.read_csv(
        pd.io.common.StringIO(
            run("sample", "m", "-n", 7, "--given", "a=1, b=0", "--seed", 3).stdout
        )
    )
    assert len(drawn) == 7
    assert (drawn["a"] == 1).all()
    assert (drawn["b"] == 0).all()
    run("score", "m", "t.csv", "--each", "-o", "each.csv")
    expected = model.score_samples(pd.DataFrame(X, columns=list("abcdef")))
    np.testing.assert_array_equal(pd.read_csv("each.csv")["log_probability"], expected)
    summary = json.loads(run("score", "m", "t.csv", "--json").stdout)
    assert summary["mean log-probability"] == expected.mean()


def test_query_is_exact(table):
    run("fit", "t.csv", "--target", "kind", "-o", "m")
    model = exchangeable.load("m")
    answer = json.loads(run("query", "m", "--given", "a=1,b=0", "--ask", "c,d", "--json").stdout)
    assert answer["given"] == {"a": 1, "b": 0}
    marginals = model.marginals({"a": 1, "b": 0})
    assert [entry["given"] for entry in answer["variables"]] == marginals[[2, 3]].tolist()
    row = pd.DataFrame([[1, 0, *[np.nan] * 4]], columns=list("abcdef"))
    assert answer["classes"]["yes"] == model.predict_proba(row)[0, 1]
    found = model.most_probable({"a": 1, "b": 0})
    assert answer["most probable"]["on"] == [
        n for n, on in zip("abcdef", found.X, strict=True) if on
    ]
    shown = run("query", "m").stdout
    assert "Given nothing" in shown


def test_query_says_whether_a_completion_is_the_maximum(table, monkeypatch):
    run("fit", "t.csv", "--drop", "kind", "--family", "hidden tree", "--components", "3", "-o", "m")
    best = json.loads(run("query", "m", "--json").stdout)["most probable"]
    assert best["exact"]
    assert best["gap"] == 0
    assert "the best that was found" not in run("query", "m").stdout
    monkeypatch.setattr("exchangeable.families.hidden_trees.rooted.SHORT_SEARCH", 0)
    monkeypatch.setattr("exchangeable.families.hidden_trees.search.MOST_BRANCHES", 0)
    monkeypatch.setattr("exchangeable.families.hidden_trees.search.AT_ONCE", 0)
    best = json.loads(run("query", "m", "--json").stdout)["most probable"]
    assert not best["exact"]
    assert best["gap"] > 0
    assert f"is higher by more than {best['gap']:.3g}" in run("query", "m").stdout


def test_text_becomes_words(table):
    run("fit", "texts.csv", "--text", "body", "--target", "kind", "-o", "m")
    assert "words of the column 'body'" in run("info", "m").stdout
    answer = json.loads(run("query", "m", "--given", "tea=1", "--json").stdout)
    assert {entry["name"] for entry in answer["variables"]} == {"art", "bus", "sea", "sun", "war"}
    assert "accuracy" in json.loads(run("score", "m", "texts.csv", "--json").stdout)
    assert "words" in run("sample", "m", "-n", 2).stdout.splitlines()[0]
    run("fit", "texts.csv", "--text", "body", "--min-documents", 201, "-o", "none", code=1)


def test_binarize_is_recorded_and_applied(table):
    message = error("fit", "mixed.csv", "--target", "kind", "--family", "urns", "-o", "m")
    assert "'age' (numbers), 'city' (3 categories)" in message
    assert "--binarize auto" in message
    run("fit", "mixed.csv", "--target", "kind", "--binarize", "auto", "-o", "m")
    frame = pd.read_csv("mixed.csv")
    names = exchangeable.load("m").feature_names_in_
    assert names[6] == f"age>{frame['age'].median():g}"
    assert names[7:].tolist() == ["city=Bonn", "city=Oslo", "city=Rome"]
    answer = json.loads(run("query", "m", "--given", "city=Rome,age=20", "--json").stdout)
    assert answer["given"] == {"city=Bonn": 0, "city=Oslo": 0, "city=Rome": 1, names[6]: 0}
    frame.assign(city="Lima").to_csv("other.csv", index=False)
    result = run("predict", "m", "other.csv")
    assert "200 cells hold categories that the model has not seen" in result.stderr
    assert "city=Bonn" in run("impute", "m", "mixed.csv").stdout.splitlines()[0]


def test_columns_of_any_kind_are_fitted_as_they_are(table):
    frame = pd.read_csv("mixed.csv")
    run("fit", "mixed.csv", "--target", "kind", "--kind", "age=continuous", "-o", "c")
    assert exchangeable.load("c").kinds_["city"] == "nominal"
    assert exchangeable.load("c").kinds_["age"] == "continuous"
    assert run("predict", "c", "mixed.csv").stdout.startswith("prediction,probability")
    run("fit", "mixed.csv", "--components", "2", "--seed", "0", "--drop", "kind", "-o", "m")
    run("sample", "m", "-n", "20", "--seed", "0", "--given", "city=Rome", "-o", "new.csv")
    new = pd.read_csv("new.csv")
    assert (new["city"] == "Rome").all()
    assert new.columns.tolist()[1:] == frame.columns.drop("kind").tolist()
    holed = frame.assign(city=frame["city"].where(frame.index % 2 == 0))
    holed.to_csv("holed.csv", index=False)
    run("impute", "m", "holed.csv", "-o", "full.csv")
    full = pd.read_csv("full.csv")
    assert full["city"].isin(frame["city"]).all()
    assert (full["city"] == frame["city"])[::2].all()
    answer = json.loads(run("query", "m", "--given", "city=Rome,age=20", "--json").stdout)
    assert answer["given"] == {"city": "Rome", "age": 20}
    assert sum(answer["classes"].values()) == pytest.approx(1)
    assert "Most probable completion: " in run("query", "m", "--ask", "city").stdout
    assert "nominal" in run("info", "m").stdout
    assert "is not one of its levels" in error("query", "m", "--given", "city=Lima")
    assert "expected COLUMN=KIND" in error("fit", "mixed.csv", "--kind", "age", "-o", "x")
    run("inspect", "m", "-o", "p.html")
    assert '["city", "Rome", ' in Path("p.html").read_text(encoding="utf-8")


def test_info_and_inspect(table):
    run("fit", "t.csv", "--target", "kind", "-o", "m")
    facts = json.loads(run("info", "m", "--json").stdout)
    assert facts["classes"] == ["no", "yes"]
    assert facts["written by"]["exchangeable"] == exchangeable.__version__
    assert "blocks" in run("inspect", "m").stdout
    run("inspect", "m", "-o", "page.html")
    assert Path("page.html").read_text().startswith("<!doctype html>")
    exchangeable.save(exchangeable.ExchangeableMixture(2, tol=0.1, random_state=0).fit(X), "own")
    assert "numbered columns" in run("info", "own").stdout
    assert "P" not in run("query", "own", "--given", "0=1", "--json").stderr


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("family", [*BY_EM, "neural independent"])
def test_every_family_is_fitted_and_inspected(family, table):
    options = ["--drop", "kind", "--family", family, "--components", 3, "--seed", 0]
    run("fit", "t.csv", *options, "-o", "m")
    facts = json.loads(run("info", "m", "--json").stdout)
    assert facts["components"] == 3
    assert facts["parameters"]["family"] == family
    run("inspect", "m", "-o", "page.html")
    assert REGISTRY[family].summary in Path("page.html").read_text()
    assert len(json.loads(run("query", "m", "--given", "a=1", "--json").stdout)["variables"]) == 5


def test_families_and_blocks_are_those_of_the_library(table):
    shown = " ".join(run("fit", "--help").stdout.split())
    for name, spec in REGISTRY.items():
        assert f"{name} {spec.summary}" in shown
    for method in METHODS:
        run("fit", "t.csv", "--target", "kind", "--blocks", method, "-o", "m")
        assert exchangeable.load("m").blocks == method


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            [
                "fit",
                "t.csv",
                "--target",
                "kind",
                "--family",
                "mixed",
                "--blocks",
                "welch",
                "-o",
                "m",
            ],
            "does not go with family='mixed'",
        ),
        (
            ["fit", "t.csv", "--drop", "kind", "--family", "tree", "--blocks", "welch", "-o", "m"],
            "blocks='welch' does not go with family='tree'",
        ),
        (["fit", "none.csv", "-o", "m"], "none.csv: no such file"),
        (["fit", "t.csv", "--target", "x", "-o", "m"], "no column 'x'; it has 'a', 'b'"),
        (["fit", "t.csv", "--drop", "x", "-o", "m"], "no column 'x'"),
        (["fit", "labels.txt", "-o", "m"], "the format is not clear from the ending"),
        (
            ["fit", "bad.csv", "-o", "m"],
            "bad.csv: the file is not a valid table: line 3 has 4 cells",
        ),
        (["fit", "empty.csv", "-o", "m"], "empty.csv: the file is empty"),
        (["fit", "head.csv", "-o", "m"], "head.csv: it has no rows"),
        (["fit", "twice.npz", "-o", "m"], "twice.npz"),
        (["fit", "texts.csv", "--text", "kinds", "-o", "m"], "no column 'kinds'"),
        (["fit", "gap.csv", "--target", "b", "-o", "m"], "gap.csv: row 2, column 'b' is empty"),
        (["fit", "t.csv", "--target", "kind", "-o", "none/m"], "none/m: the folder none does not"),
        (["fit", "t.csv", "--target", "kind", "--alpha", "-1", "-o", "m"], "alpha must be"),
        (["predict", "t.csv", "t.csv"], "t.csv is not a model file"),
        (["predict", "none", "t.csv"], "none"),
        (["predict", "ok", "gap.csv"], "gap.csv: lacks columns that the model uses: 'c'"),
        (["predict", "ok", "two.csv"], "two.csv: row 2, column 'c' is 7; expected 0 or 1"),
        (["predict", "ok", "word.csv"], "word.csv: row 1, column 'c' is 'x'; expected a number"),
        (["predict", "ok", "t.csv", "-o", "out.xyz"], "out.xyz"),
        (["query", "ok", "--given", "zz=1"], "no variable 'zz'"),
        (["query", "ok", "--given", "a"], "expected NAME=VALUE"),
        (["query", "ok", "--given", "a=2"], "'a' must be 0 or 1, got '2'"),
        (["query", "ok", "--given", "a=1,a=0"], "sets 'a' to both 1 and 0"),
        (["query", "ok", "--ask", "zz"], "no such variable"),
    ],
)
def test_errors_are_one_line_that_names_the_place(arguments, told, table):
    Path("bad.csv").write_text("a,b\n1,0\n1,0,1,1\n")
    Path("empty.csv").write_text("")
    Path("head.csv").write_text("a,b\n")
    Path("gap.csv").write_text("a,b\n1,0\n1,\n")
    Path("two.csv").write_text("a,b,c,d,e,f\n1,0,1,1,1,1\n1,0,7,1,1,1\n")
    Path("word.csv").write_text("a,b,c,d,e,f\n1,0,x,1,1,1\n")
    np.savez("twice.npz", a=np.zeros(3))
    run("fit", "t.csv", "--target", "kind", "-o", "ok")
    before = sorted(os.listdir())
    assert told in error(*arguments)
    assert sorted(os.listdir()) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", "t.csv"],
        ["fit", "t.csv", "--target", "kind", "--components", "3", "-o", "m"],
        ["fit", "t.csv", "--target", "kind", "--labels", "labels.txt", "-o", "m"],
        ["fit", "t.csv", "--min-documents", "2", "-o", "m"],
        ["fit", "texts.csv", "--text", "body", "--binarize", "auto", "-o", "m"],
        ["predict", "m"],
        ["sample", "m", "-n", "-1"],
    ],
)
def test_wrong_usage_exits_with_2(arguments, table):
    assert "Usage:" in error(*arguments, code=2)


@pytest.mark.parametrize(
    "name", ["fit", "predict", "score", "sample", "impute", "query", "inspect", "info"]
)
def test_help_has_examples(name):
    shown = run(name, "--help").stdout
    assert "Examples:" in shown
    assert f"exchangeable {name} " in shown.partition("Examples:")[2]


def test_debug_shows_the_traceback(table):
    result = CliRunner().invoke(main, ["fit", "none.csv", "-o", "m", "--debug"])
    assert result.exit_code == 1
    assert isinstance(result.exception, ValueError)


def test_pipes_as_a_shell_has_them(table):
    with Path("t.csv").open() as source:
        done = subprocess.run(
            [COMMAND, "fit", "-", "--target", "kind", "-o", "m"],
            stdin=source,
            capture_output=True,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("m: 200 rows, 6 variables, 2 classes")
    done = subprocess.run(
        [COMMAND, "predict", "m", "none.csv"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "Error: none.csv: no such file\n")
