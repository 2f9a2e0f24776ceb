"""Tables of columns of any kind: what is decided, and answers in the user's values."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.model_selection import cross_val_score

import exchangeable
from exchangeable import (
    ExchangeableClassifier,
    ExchangeableDensity,
    ExchangeableImputer,
    ExchangeableMixture,
    Kinds,
)
from exchangeable.report import report_html

N = 240
rng = np.random.default_rng(2)
GROUP = rng.integers(0, 2, N)
GRADES = ["no", "so-so", "yes"]
TABLE = pd.DataFrame(
    {
        "city": pd.Categorical(np.where(rng.random(N) < 0.1 + 0.8 * GROUP, "Rome", "Oslo")),
        "grade": pd.Categorical.from_codes(
            rng.binomial(2, 0.2 + 0.6 * GROUP), GRADES, ordered=True
        ),
        "age": rng.normal(30 + 20 * GROUP, 4.0),
        "income": np.exp(rng.normal(1 + GROUP, 0.7)),
        "kids": rng.poisson(0.5 + 3 * GROUP) + 0,
        "member": rng.random(N) < 0.3 + 0.4 * GROUP,
        "words": np.where(rng.random(N) < 0.2, "b", "a"),
    }
)
KINDS = dict(
    city="nominal", grade="ordinal", age="continuous", income="continuous", kids="count",
    member="binary", words="nominal",
)  # fmt: skip
HOLES = rng.random(TABLE.shape) < 0.2
HOLED = TABLE.astype({"kids": "Int64", "member": "boolean"}).mask(HOLES)


@pytest.fixture(scope="module")
def mixture() -> ExchangeableMixture:
    return ExchangeableMixture(2, random_state=0).fit(TABLE)


def test_types_of_a_table_decide(mixture: ExchangeableMixture) -> None:
    assert mixture.kinds_ == KINDS
    assert ExchangeableMixture(2, random_state=0).fit(HOLED).kinds_ == KINDS
    told = ExchangeableMixture(2, kinds={"kids": "ordinal", 2: "count"}, random_state=0)
    with pytest.raises(ValueError, match="column 'age' is a count, but holds"):
        told.fit(TABLE)
    bits = pd.DataFrame(rng.integers(0, 2, (50, 3)), columns=list("abc"))
    assert ExchangeableMixture(2, random_state=0).fit(bits).kinds_ == dict.fromkeys("abc", "binary")


@pytest.mark.parametrize("library", [pl.from_pandas, pa.Table.from_pandas], ids=["polars", "Arrow"])
def test_other_libraries_give_the_same_fit(library: Any, mixture: ExchangeableMixture) -> None:
    table = library(HOLED)
    model = ExchangeableMixture(2, random_state=0).fit(table)
    expected = ExchangeableMixture(2, random_state=0).fit(HOLED).score_samples(HOLED)
    np.testing.assert_allclose(model.score_samples(table), expected, atol=1e-9)
    filled = model.impute(table)
    assert type(filled) is type(table)
    assert (
        filled.schema.types == table.schema.types
        if library is not pl.from_pandas
        else (filled.schema == table.schema)
    )
    assert type(model.sample(3, random_state=0)[0]) is type(table)


def test_questions_are_in_the_users_values(mixture: ExchangeableMixture) -> None:
    city = mixture.conditional("city", given={"age": 52, "grade": "yes"})
    assert set(city) == {"Rome", "Oslo"}
    assert sum(city.values()) == pytest.approx(1)
    assert city["Rome"] > 0.7
    assert city.most_probable == "Rome"
    both = mixture.conditional(["city", "grade"], {"kids": 4})
    assert sum(both.values()) == pytest.approx(1)
    alone = mixture.conditional("city", {"kids": 4})
    assert sum(both["Rome", g] for g in GRADES) == pytest.approx(alone["Rome"])
    age = mixture.conditional("age", {"city": "Rome", "kids": 5})
    assert 45 < age.mean < 55
    assert age.quantile(0.1) < age.quantile(0.9)
    assert isinstance(age.density(40), float)
    assert isinstance(age.cdf(40), float)
    assert age.density([40.0, 50.0]).shape == (2,)
    kids = mixture.conditional("kids", {"age": 50.0})
    assert kids.mean == pytest.approx(3.5, abs=0.6)
    told = mixture.marginals({"age": 50.0})
    assert "age" not in told
    assert told["city"]["Rome"] == pytest.approx(mixture.conditional("city", {"age": 50.0})["Rome"])
    assert len(mixture.marginals(TABLE.head(3).assign(age=np.nan))) == 3
    best = mixture.most_probable({"city": "Rome"})
    assert best.X["city"].tolist() == ["Rome"]
    assert best.log_prob == pytest.approx(
        mixture._mixture().joint(mixture._observed(best.X))[0, best.y]
    )
    with pytest.raises(ValueError, match=r"to be 'Paris', which is not one of its levels.*leave"):
        mixture.conditional("age", {"city": "Paris"})
    with pytest.raises(ValueError, match="names the continuous column 'age' among others"):
        mixture.conditional(["age", "city"])


def test_information_gain_is_the_expected_loss_of_entropy(mixture: ExchangeableMixture) -> None:
    given = {"kids": 2}
    gain = mixture.information_gain(given)
    assert gain[list(KINDS).index("kids")] == 0

    def entropy(known: dict[str, object]) -> float:
        row = pd.DataFrame([known]).reindex(columns=list(KINDS)).astype(object)
        p = mixture.predict_proba(row)[0]
        return float(-(p * np.log(p)).sum())

    before = entropy(given)
    cities = mixture.conditional("city", given)
    after = sum(share * entropy({**given, "city": city}) for city, share in cities.items())
    assert gain[0] == pytest.approx(before - after, abs=1e-9)
    age = mixture.conditional("age", given)
    grid = np.linspace(0, 90, 1500)
    values = [entropy({**given, "age": x}) for x in grid[::5]]
    after = np.trapezoid(np.interp(grid, grid[::5], values) * age.density(grid), grid)
    assert gain[2] == pytest.approx(before - after, abs=2e-3)


def test_information_about_a_column_is_mutual(mixture: ExchangeableMixture) -> None:
    names, given = list(KINDS), {"kids": 2}
    told = {name: mixture.information_gain(given, target=name) for name in names}
    assert (told["kids"] == 0).all()  # it is known
    for one in ("city", "grade", "age"):
        assert told[one][names.index(one)] == told[one][names.index("kids")] == 0
        for other in ("city", "grade", "age"):
            if one != other:
                mutual = told[other][names.index(one)]
                assert told[one][names.index(other)] == pytest.approx(mutual, abs=1e-4)
    both = np.array([*mixture.conditional(["city", "grade"], given).values()]).reshape(2, -1)
    alone = both.sum(axis=1, keepdims=True) * both.sum(axis=0)
    expected = float((both * np.log(both / alone)).sum())
    assert told["city"][names.index("grade")] == pytest.approx(expected, abs=1e-12)
    grid = np.linspace(0, 90, 400)
    cities = mixture.conditional("city", given)
    density = [mixture.conditional("age", {**given, "city": city}).density(grid) for city in cities]
    whole = mixture.conditional("age", given).density(grid)
    each = [np.trapezoid(own * np.log(own / whole), grid) for own in density]
    expected = float(np.dot([*cities.values()], each))
    assert told["age"][names.index("city")] == pytest.approx(expected, abs=1e-4)
    rows = pd.DataFrame({"kids": [2, 3]}).reindex(columns=names)
    several = mixture.information_gain(rows, target="city")
    np.testing.assert_allclose(np.asarray(several)[0], told["city"], atol=1e-12)
    with pytest.raises(ValueError, match="'height' is not a"):
        mixture.information_gain(target="height")


def test_frames_come_back_with_their_types(mixture: ExchangeableMixture) -> None:
    rows, component = mixture.sample(300, random_state=1)
    assert rows.dtypes.equals(TABLE.dtypes)
    assert component.shape == (300,)
    assert rows["grade"].cat.ordered
    model = ExchangeableMixture(2, random_state=0).fit(HOLED)
    for method in ("most_probable", "draw"):
        filled = model.impute(HOLED, method, random_state=0)
        assert filled.dtypes.equals(HOLED.dtypes)
        assert not filled.isna().any().any()
        for name in HOLED:
            known = ~HOLED[name].isna()
            assert (filled[name][known] == HOLED[name][known]).all()
    assert len(model.impute(HOLED, "draw", n_draws=2, random_state=0)) == 2
    imputer = ExchangeableImputer(ExchangeableMixture(2, random_state=0), method="marginal")
    assert not imputer.fit_transform(HOLED).isna().any().any()
    middle = imputer.transform(HOLED)["age"].to_numpy()[HOLES[:, 2]]
    assert np.corrcoef(middle, TABLE["age"].to_numpy()[HOLES[:, 2]])[0, 1] > 0.7


def test_unseen_levels_are_holes_or_errors() -> None:
    other = TABLE.head(4).assign(city="Paris")
    model = ExchangeableMixture(2, random_state=0).fit(TABLE)
    blank = TABLE.head(4).assign(city=None)
    np.testing.assert_array_equal(model.score_samples(other), model.score_samples(blank))
    strict = ExchangeableMixture(2, kinds=Kinds(unseen="error"), random_state=0).fit(TABLE)
    with pytest.raises(ValueError, match="row 0 of column 'city' is 'Paris'"):
        strict.score_samples(other)


def test_classifiers_and_weights_take_them() -> None:
    model = ExchangeableClassifier().fit(HOLED, GROUP)
    assert model.score(HOLED, GROUP) > 0.9
    assert cross_val_score(ExchangeableClassifier(), TABLE, GROUP, cv=3).mean() > 0.9
    twice = pd.concat([TABLE, TABLE.head(100)], ignore_index=True)
    weights = np.where(np.arange(N) < 100, 2.0, 1.0)
    one = ExchangeableClassifier(kinds=Kinds(transform="none")).fit(TABLE, GROUP, weights)
    labels = np.concatenate([GROUP, GROUP[:100]])
    other = ExchangeableClassifier(kinds=Kinds(transform="none")).fit(twice, labels)
    # Means and spreads of columns, which the prior is made of, are those of the rows themselves.
    np.testing.assert_allclose(one.predict_proba(TABLE), other.predict_proba(TABLE), atol=1e-3)
    half = np.where(np.arange(N) % 2 == 0, -1, GROUP)
    semi = ExchangeableClassifier(semi_supervised=True, max_iter=100).fit(TABLE, half)
    assert (semi.predict(TABLE) == GROUP).mean() > 0.9
    added = ExchangeableClassifier().partial_fit(TABLE, GROUP, classes=[0, 1])
    np.testing.assert_allclose(
        added.predict_proba(TABLE), ExchangeableClassifier().fit(TABLE, GROUP).predict_proba(TABLE)
    )


@pytest.mark.parametrize("blocks", ["independent", "full"])
def test_models_are_saved_with_what_was_decided(blocks: str, tmp_path: Path) -> None:
    model = ExchangeableMixture(2, blocks=blocks, kinds=Kinds(unseen="error"), random_state=0)
    model.fit(HOLED)
    exchangeable.save(model, tmp_path / "m.exch")
    again = exchangeable.load(tmp_path / "m.exch")
    assert again.kinds_ == KINDS
    np.testing.assert_array_equal(again.score_samples(HOLED), model.score_samples(HOLED))
    same = model.sample(5, random_state=0)[0]
    pd.testing.assert_frame_equal(again.sample(5, random_state=0)[0], same)
    assert report_html(again) == report_html(model)


@pytest.mark.filterwarnings("ignore:numbers greater than binarize:UserWarning")
def test_arrays_take_kinds_that_are_told() -> None:
    codes = rng.integers(0, 4, (100, 3))
    model = ExchangeableMixture(2, kinds="nominal", random_state=0).fit(codes)
    assert model.kinds_ == dict.fromkeys(range(3), "nominal")
    assert np.isin(model.sample(10, random_state=0)[0], range(4)).all()
    assert ExchangeableMixture(2, random_state=0).fit(codes).kinds_ == dict.fromkeys(
        range(3), "binary"
    )
    with pytest.raises(ValueError, match="kinds='text' is unknown"):
        ExchangeableMixture(2, kinds="text").fit(codes)
    with pytest.raises(ValueError, match="kinds names 7, which is not a column"):
        ExchangeableMixture(2, kinds={7: "count"}).fit(codes)
    with pytest.raises(ValueError, match="is for columns of 0 and 1"):
        ExchangeableMixture(2, family="urns", kinds="nominal").fit(codes)


def test_numbers_are_not_cut_without_a_word() -> None:
    table = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    with pytest.warns(UserWarning, match="column 'a' is continuous"):
        ExchangeableMixture(2, family="urns", random_state=0, max_iter=3, tol=10.0).fit(table)


def test_zeros_and_long_tails_need_no_care() -> None:
    source = np.random.default_rng(0)
    spent = np.where(source.random(400) < 0.5, 0.0, np.exp(source.normal(3, 1, 400)))
    table = pd.DataFrame({"spent": spent, "tail": source.standard_t(2, 400), "same": 1.5})
    model = ExchangeableMixture(3, random_state=0).fit(table)
    assert np.isfinite(model.score_samples(table)).all()
    drawn = model.sample(2000, random_state=0)[0]
    assert 0.35 < (drawn["spent"].abs() < 0.5).mean() < 0.65
    assert drawn["spent"].median() < 40


def test_a_density_of_a_table_is_searched(tmp_path: Path) -> None:
    """Blocks of their own are families to join; answers, files and refusals are as everywhere."""
    density = ExchangeableDensity(n_init=2, max_components=4, random_state=0, n_jobs=1).fit(HOLED)
    assert density.kinds_ == KINDS
    tried = {(row["family"], row.get("blocks", "auto")) for row in density.table_}
    assert tried == {("mixed", "independent"), ("mixed", "full"), ("polya", "full")}
    city = density.conditional("city", {"age": 52})
    assert city["Rome"] > 0.7 > city["Oslo"]
    parts = {level: density.score_samples(HOLED.assign(city=level)) for level in city}
    unknown = density.score_samples(HOLED.assign(city=None))
    np.testing.assert_allclose(np.logaddexp(*parts.values()), unknown, atol=1e-9)
    exchangeable.save(density, tmp_path / "density.exch")
    same = exchangeable.load(tmp_path / "density.exch")
    np.testing.assert_array_equal(same.score_samples(HOLED), density.score_samples(HOLED))
    with pytest.raises(ValueError, match="family='urns' is for columns of 0 and 1"):
        ExchangeableDensity("urns").fit(TABLE)
    bits = TABLE[["member"]].assign(other=GROUP)
    few = ExchangeableDensity(["tree"], n_init=1, max_components=2, random_state=0).fit(bits)
    assert few.kinds_ == {"member": "binary", "other": "binary"}
