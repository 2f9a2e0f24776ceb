"""Profiles, classification, tables, the page and the command say what the model says."""

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from exchangeable import (
    ExchangeableClassifier,
    ExchangeableDensity,
    ExchangeableMixture,
    load,
)
from exchangeable.classes import analyse, classification, standard_errors
from exchangeable.classes.tables import Table, Tabular
from exchangeable.cli import main
from exchangeable.report.classes import classes_html
from made_classes import answers


@pytest.fixture(scope="module")
def mixed():
    """Return a mixture of columns of all kinds, and its table."""
    X, kind = answers(300, holes=0.05, seed=1)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame["city"] = pd.Categorical(
        np.array(["Rome", "Oslo", "Bonn"])[kind + rng.integers(0, 2, 300)]
    )
    frame["visits"] = rng.poisson(1 + 4 * kind)
    frame["hours"] = rng.normal(10 + 5 * kind, 2)
    model = ExchangeableMixture(2, n_init=3, random_state=0, kinds={"visits": "count"}).fit(frame)
    return model, frame


def test_profiles_are_the_marginals_of_classes(mixed):
    model, frame = mixed
    found = model.profiles()
    assert found.items == list(frame.columns)
    lines = {(e.item, e.answer): found.values[i] for i, e in enumerate(found.entries)}
    towns = np.stack([lines["city", name] for name in ("Bonn", "Oslo", "Rome")])
    np.testing.assert_allclose(towns.sum(axis=0), 1.0)
    for y in range(2):
        share = model.predict_proba(frame)[:, y]
        assert lines["hours", "mean"][y] == pytest.approx(
            np.average(frame["hours"], weights=share), rel=0.02
        )
        assert lines["visits", "mean"][y] == pytest.approx(
            np.average(frame["visits"], weights=share), rel=0.05
        )
        known = frame["a"].notna()
        mean = np.average(frame["a"][known], weights=share[known])
        assert lines["a", "1"][y] == pytest.approx(mean, abs=0.02)
    assert lines["hours", "SD"].min() > 1.5


def test_profiles_of_classifiers_and_densities():
    X, kind = answers(200)
    model = ExchangeableClassifier("tree").fit(X, np.where(kind, "yes", "no"))
    found = model.profiles()
    assert found.names == ["class no", "class yes"]
    np.testing.assert_allclose(found.sizes, np.exp(model.class_log_prior_))
    for y, label in enumerate(("no", "yes")):
        np.testing.assert_allclose(found.values[:, y], model.marginals(given_class=label))
    frame = found.to_frame().set_index("item")
    np.testing.assert_array_equal(frame.loc["class size", ["class no", "class yes"]], found.sizes)
    np.testing.assert_array_equal(frame[["class no", "class yes"]][1:], found.values)
    largest = found.ordered(by_size=True)
    assert largest.sizes[0] == found.sizes.max()
    assert largest.labels[0] == model.classes_[found.sizes.argmax()]
    density = ExchangeableDensity("urns", n_init=1, max_components=2, random_state=0).fit(X)
    shares = density.profiles()
    np.testing.assert_allclose(shares.values @ shares.sizes, density.marginals())


def test_profiles_of_binary_arrays_and_their_order():
    X, _ = answers(200)
    model = ExchangeableMixture(2, blocks="independent", random_state=0).fit(X)
    found = model.profiles()
    for j in range(5):
        joint = model.conditional([j])
        assert joint[1] == pytest.approx(found.values[j] @ model.weights_)
    turned = found.ordered(["x3", "x0"], by_size=True)
    order = np.argsort(-model.weights_)
    np.testing.assert_allclose(turned.values, found.values[[3, 0]][:, order])
    with pytest.raises(ValueError, match="items names 'z'"):
        found.ordered(["z"])
    errors = standard_errors(model, X, method="information").profiles
    frame = errors.to_frame()
    assert list(frame["estimate"][:2]) == pytest.approx([model.weights_[0], found.values[0, 0]])
    assert list(frame["SE"][:2]) == pytest.approx([errors.size_errors[0], errors.errors[0, 0]])
    assert len(frame) == 2 * 6


def test_classification_adds_up_posteriors(mixed):
    model, frame = mixed
    weight = np.random.default_rng(0).uniform(0.5, 2, len(frame))
    found = classification(model, frame, sample_weight=weight, random_state=0)
    posterior, modal = model.predict_proba(frame), model.predict(frame)
    for y in range(2):
        np.testing.assert_allclose(
            found.counts[y], (weight[:, None] * posterior)[modal == y].sum(axis=0)
        )
        own = np.average(posterior[modal == y], axis=0, weights=weight[modal == y])
        np.testing.assert_allclose(found.average_posterior[y], own)
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1.0)
    assert found.error_rate == pytest.approx(1 - weight @ posterior.max(axis=1) / weight.sum())
    np.testing.assert_allclose(found.entropy, -(posterior * np.log(posterior)).sum(axis=1))
    n = found.outlying.size
    assert str(found).endswith(f", {n} outlying row{'' if n == 1 else 's'}.")


def test_outlying_rows_are_rare_where_the_model_is_true_and_found_where_not():
    X, _ = answers(1500, holes=0.1, seed=2)
    model = ExchangeableMixture(2, blocks="independent", n_init=3, random_state=0).fit(X)
    found = classification(model, X, random_state=0)
    assert found.outlying.size < 0.03 * len(X)
    rates = np.tile([0.95, 0.05], 6)
    Y = (np.random.default_rng(0).random((800, 12)) < rates).astype(float)
    Y[0] = 1 - (rates > 0.5)
    single = ExchangeableMixture(1, blocks="independent").fit(Y)
    assert 0 in classification(single, Y, random_state=0).outlying
    assert np.isnan(classification(single, Y).entropy_r2)


class Odd(Tabular):
    """A table with what names may hold."""

    def as_table(self):
        columns = {"a|b_%": ["x & y", "=1+1"], "n": [0.5, float("nan")]}
        return Table(columns, "Odd <things>", note="R² and χ²")


def test_tables_escape_what_their_formats_read(tmp_path):
    odd = Odd()
    assert r"a\|b_%" in odd.to_markdown()
    latex = odd.to_latex(tmp_path / "t.tex")
    assert r"x \& y" in latex
    assert r"a|b\_\%" in latex
    assert r"$R^2$ and $\chi^2$" in latex
    assert (tmp_path / "t.tex").read_text() == latex
    assert "'=1+1" in odd.to_csv()
    assert odd.to_csv().splitlines()[2].endswith(",")
    assert "Odd &lt;things&gt;" in odd.to_html()
    assert str(odd).splitlines()[-1] == "R² and χ²"


def test_without_pandas_there_are_records(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    assert Odd().to_frame()[0] == {"a|b_%": "x & y", "n": 0.5}


def test_the_display_draws_the_profiles(mixed):
    plt = pytest.importorskip("matplotlib.pyplot")
    from exchangeable.plotting import ProfileDisplay

    model, frame = mixed
    errors = standard_errors(model, frame, n_draws=5, restarts=0, random_state=0)
    display = ProfileDisplay.from_errors(errors, items=["b", "city", "hours"], names=["x", "y"])
    shown = np.concatenate([line.get_ydata() for line in display.ax_.lines[:3]])
    values = {
        (e.item, e.answer): v
        for e, v in zip(errors.profiles.entries, errors.profiles.values, strict=True)
    }
    assert shown[0] == pytest.approx(values["b", "1"][0])
    np.testing.assert_allclose(shown[1:4], [values["city", c][0] for c in ("Bonn", "Oslo", "Rome")])
    assert shown[4] in (0.0, 1.0)
    bars = ProfileDisplay.from_estimator(model, items=["a", "b"], style="bars")
    heights = sorted(patch.get_height() for patch in bars.ax_.patches)
    expected = sorted([*values["a", "1"], *values["b", "1"]])
    np.testing.assert_allclose(heights, expected)
    with pytest.raises(ValueError, match="style='pie' is unknown"):
        ProfileDisplay.from_estimator(model, style="pie")
    with pytest.raises(ValueError, match="names has 1 entries for 2 classes"):
        ProfileDisplay.from_estimator(model, names=["x"])
    plt.close("all")


def test_the_page_escapes_names_and_holds_all_numbers():
    X, kind = answers(200, seed=1)
    frame = pd.DataFrame(X, columns=["<b>&", "b", "c", "d", "e"])
    options = {"blocks": "independent", "n_init": 2, "random_state": 0, "n_draws": 5}
    rng = np.random.default_rng(0)
    given = {"covariates": rng.normal(kind), "outcome": rng.normal(kind), "bootstrap": 2}
    found = analyse(ExchangeableMixture, frame, n_components=[1, 2], **given, **options)
    page = classes_html(found, title="A <survey>")
    assert "<b>&" not in page.replace("<b>&lt;", "")
    assert "&lt;b&gt;&amp;" in page
    assert "A &lt;survey&gt;" in page
    assert f"{found.model.weights_[0]:.1%}" in page
    assert f"{found.selection.table[1].bic:,.1f}" in page
    for heading in ("Classes", "How many classes", "Classification", "Covariates", "Outcomes"):
        assert f"<h2>{heading}</h2>" in page
    assert "bootstrap likelihood-ratio test with 2 draws" in found.methods


def test_the_command_writes_report_tables_and_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, kind = answers(200, seed=1)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(X.astype(int), columns=list("abcde"))
    frame = frame.assign(w=1.0, age=rng.normal(kind), income=rng.normal(kind), id=range(200))
    frame.to_csv("survey.csv", index=False)
    asked = (
        "classes survey.csv --components 1-3 --id id --weights w --covariate age --outcome income"
    )
    wanted = "--draws 5 --n-init 2 --seed 0 --report r.html --tables out -o m.exch"
    result = CliRunner().invoke(main, f"{asked} {wanted}".split())
    assert result.exit_code == 0, result.output
    assert "Equal in all classes?" in result.output
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"models.csv", "profiles.tex", "covariates.csv", "outcomes.tex"} <= names
    assert load("m.exch").weights_.size == 2
    for arguments, message in {
        "classes survey.csv --components many": "expected a number, a range",
        "classes survey.csv --criterion blrt": "needs --bootstrap",
        "classes survey.csv --weights nothing": "no column 'nothing'",
    }.items():
        refused = CliRunner().invoke(main, arguments.split())
        assert refused.exit_code != 0
        assert message in refused.output
