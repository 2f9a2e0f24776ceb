"""What is decided about columns, their values as numbers and back, and transforms."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from exchangeable.data.columns.kinds import decide
from exchangeable.data.columns.schema import Schema, typed, typed_rows
from exchangeable.data.columns.transforms import Transform, fit_transform, yeo_johnson
from exchangeable.data.examples import merge_equal_rows
from exchangeable.data.observed import Observed
from exchangeable.data.rows import ColumnType


def kind_of(values: object, kinds: object = None) -> str:
    schema = decide(pd.DataFrame({"a": values, "text": ["u", "v", "w", "x", "y"]}), kinds)
    assert schema is not None
    return schema.columns[0].kind


def test_types_and_ranges_decide() -> None:
    assert kind_of([True, False, True, True, False]) == "binary"
    assert kind_of([0.0, 1.0, np.nan, 1.0, 0.0]) == "binary"
    assert kind_of([1, 5, 3, 3, 2]) == "ordinal"
    assert kind_of([0, 5, 3, 3, 2]) == "count"
    assert kind_of([0, 5000, 3, 3, 2]) == "continuous"
    assert kind_of([2001, 2003, 2002, 2005, 2001]) == "continuous"
    assert kind_of([-1, 5, 3, 3, 2]) == "continuous"
    assert kind_of([0.5, 2, 3, 3, 2]) == "continuous"
    assert kind_of(["a", None, "b", "a", "a"]) == "nominal"
    assert kind_of(pd.Categorical(["a", "b", "a", "a", "b"], ordered=True)) == "ordinal"
    assert kind_of([1, 5, 3, 3, 2], {"a": "count"}) == "count"
    assert kind_of([1, 5, 3, 3, 2], {0: "nominal"}) == "nominal"


def test_what_cannot_be_is_refused_by_name() -> None:
    table = pd.DataFrame({"a": ["u", "v", "w"], "b": [0.5, np.inf, 1.0]})
    with pytest.raises(ValueError, match="column 'b' holds inf"):
        decide(table, None)
    with pytest.raises(ValueError, match="column 'a' is continuous, but holds 'u'"):
        decide(table, {"a": "continuous"})
    with pytest.raises(ValueError, match="column 'a' is binary, but has 3 levels"):
        decide(table[["a"]], {"a": "binary"})
    with pytest.raises(ValueError, match="column 'a' is empty"):
        decide(pd.DataFrame({"a": [None, None]}, dtype=object), {"a": "nominal"})
    many = pd.DataFrame({"a": [f"name {j}" for j in range(1001)]})
    with pytest.raises(ValueError, match="column 'a' has 1,001 levels, the limit is 1,000"):
        decide(many, None)


WHEN = pd.date_range("2024-01-31", periods=3)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (WHEN, "column 'a' of X holds points or lengths of time, such as '2024-01-31"),
        (WHEN - WHEN[0], "column 'a' of X holds points or lengths of time, such as '0:00:00"),
        ([date.date() for date in WHEN], "such as '2024-01-31' .type object.; split them"),
        ([0.5, 1e300, 2.0], r"column 'a' holds 1e\+300; numbers must lie between"),
        ([[1], [2], [3]], r"column 'a' holds \[1\] \(list\); levels are text"),
        ([1j, 2.0, 3.0], r"column 'a' is nominal, but holds 1j \(complex\); levels are text"),
        (pd.cut([1.0, 2.0, 3.0], 2), "column 'a' is ordinal, but holds Interval"),
    ],
)
def test_the_column_that_cannot_be_is_named(column: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decide(pd.DataFrame({"text": ["u", "v", "w"], "a": column}), None)


def test_counts_that_are_too_large_are_named() -> None:
    table = pd.DataFrame({"a": [0, 3, 10**6], "b": ["u", "v", "w"]})
    with pytest.raises(ValueError, match="column 'a' is a count, but holds 1,000,000; the limit"):
        decide(table, {"a": "count"})


def test_names_of_columns_are_text_or_numbers() -> None:
    table = pd.DataFrame({("a", 1): ["u", "v"], ("a", 2): [1.5, 2.5]})
    with pytest.raises(ValueError, match=r"column named \('a', 1\) \(tuple\)"):
        decide(table, None)


def test_a_column_without_values_is_what_its_type_says_or_a_warning() -> None:
    nothing = pd.Categorical([None, None], categories=["p", "q", "r"])
    schema = decide(pd.DataFrame({"a": nothing, "b": ["u", "v"]}), None)
    assert schema is not None
    assert (schema.columns[0].kind, schema.columns[0].levels) == ("nominal", ("p", "q", "r"))
    with pytest.warns(UserWarning, match="column 'a' has no known value, and is taken as binary"):
        decide(pd.DataFrame({"a": [np.nan, np.nan], "b": ["u", "v"]}), None)


def test_levels_that_a_type_declares_count_even_if_only_0_and_1_occur() -> None:
    codes = pd.Categorical([0, 1, 1], categories=[0, 1, 2])
    schema = decide(pd.DataFrame({"a": codes, "b": ["u", "v", "w"]}), None)
    assert schema is not None
    assert (schema.columns[0].kind, schema.columns[0].levels) == ("nominal", (0, 1, 2))


@pytest.mark.parametrize(
    "dtype",
    [
        "int64",
        "Int16",
        "uint8",
        "int32[pyarrow]",
        "Sparse[int64, 0]",
        pd.SparseDtype("float64", 0.0),
    ],
)
def test_whole_numbers_come_back_in_their_type(dtype: object) -> None:
    table = pd.DataFrame({"a": pd.Series([0, 40, 3, 90], dtype=dtype), "b": list("uvwx")})
    schema = decide(table, {"a": "continuous"})
    assert schema is not None
    values = typed_rows(schema.observed(table)).values
    again = schema.table(values)
    assert str(again["a"].dtype) == str(table["a"].dtype)
    assert again["a"].tolist() == [0, 40, 3, 90]
    far = schema.table(np.array([[-1e6, 0.0], [0.3, 1.0]]))["a"]
    assert far.dtype == table["a"].dtype
    if str(dtype) == "uint8":
        assert far[0] == 0


def test_whole_numbers_with_holes_stay_whole_and_their_means_do_not() -> None:
    table = pd.DataFrame({"year": [1990, np.nan, 2004, 1971], "size": [0.5, 1.5, 2.25, 3.0]})
    schema = decide(table, None)
    assert schema is not None
    assert Schema.from_plain(schema.to_plain()) == schema
    values = np.array([[0.2, 0.2], [-0.1, 0.1], [0.0, 0.0], [1.3, 1.3]])
    drawn = schema.table(values)
    assert (drawn["year"] % 1 == 0).all()
    assert (drawn["size"] % 1 != 0).any()
    means = schema.completed(values, table, means=True)
    assert means["year"][1] % 1 != 0
    assert schema.completed(values, table)["year"][1] == np.rint(means["year"][1])


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.sampled_from(["x", "y", "ü"])),
            st.one_of(st.none(), st.floats(-1e6, 1e6)),
            st.one_of(st.none(), st.integers(0, 900)),
        ),
        min_size=3,
        max_size=20,
    )
)
def test_values_come_back(rows: list[tuple[object, object, object]]) -> None:
    table = pd.DataFrame(rows, columns=["level", "number", "count"])
    table.loc[len(table)] = ["x", 0.25, 2]
    table["level"] = table["level"].astype(object)
    kinds = {"level": "nominal", "number": "continuous", "count": "count"}
    schema = decide(table, kinds)
    assert schema is not None
    assert Schema.from_plain(schema.to_plain()) == schema
    values = typed_rows(schema.observed(table)).values
    np.testing.assert_array_equal(np.isnan(values), table.isna().to_numpy())
    known = ~np.isnan(values).any(axis=1)
    again = schema.table(values[known])
    assert again["level"].tolist() == table["level"][known].tolist()
    wanted = table["number"][known].astype(float)
    scale = np.abs(table["number"].astype(float)).max() + 1
    np.testing.assert_allclose(again["number"].astype(float), wanted, atol=1e-6 * scale)
    np.testing.assert_array_equal(again["count"].astype(float), table["count"][known].astype(float))


@pytest.mark.parametrize("power", [0.0, 0.4, 1.0, 1.7, 2.0])
def test_transforms_are_inverted_and_their_slopes_are_right(power: float) -> None:
    transform = Transform(power, 0.7, 2.5)
    x = np.array([-30.0, -1.0, -0.1, 0.0, 0.1, 1.0, 30.0])
    np.testing.assert_allclose(transform.invert(transform.apply(x)), x, rtol=1e-9, atol=1e-12)
    step = 1e-6
    slope = (transform.apply(x + step) - transform.apply(x - step)) / (2 * step)
    np.testing.assert_allclose(np.exp(transform.log_slope(x)), slope, rtol=1e-5)
    np.testing.assert_allclose(yeo_johnson(x, power), stats.yeojohnson(x, power), rtol=1e-12)
    ends = np.array([-40.0, 60.0])

    def density(v: float) -> float:
        at = np.array(v)
        return float(stats.norm.pdf(transform.apply(at)) * np.exp(transform.log_slope(at)))

    between = integrate.quad(density, *ends, limit=500, points=[-1, 0, 1])[0]
    assert between == pytest.approx(np.diff(stats.norm.cdf(transform.apply(ends)))[0], abs=1e-8)


def test_skewed_columns_alone_are_bent() -> None:
    source = np.random.default_rng(0)
    tail = np.exp(source.normal(size=500))
    assert fit_transform(tail, True).power < 0.5
    assert fit_transform(tail, False).power == 1
    assert fit_transform(source.normal(size=500), True).power == 1
    assert fit_transform(np.full(5, 3.0), True) == Transform(1.0, 3.0, 1.0)
    z = fit_transform(tail, True).apply(tail)
    assert (abs(z.mean()), z.std()) == (pytest.approx(0, abs=1e-9), pytest.approx(1))


def test_equal_rows_are_merged_and_holes_differ_from_zeros() -> None:
    types = (ColumnType("nominal", 3), ColumnType("continuous"))
    values = np.array([[1, 0.5], [1, 0.5], [np.nan, 0.5], [0, 0.5], [np.nan, 0.5], [1, -0.0]])
    observed = typed(values, types)
    examples, member = merge_equal_rows(observed, np.ones(6))
    assert member.tolist() == [0, 0, 1, 2, 1, 3]
    assert examples.weights.tolist() == [2, 2, 1, 1]
    apart, _ = merge_equal_rows(observed, np.ones(6), np.array([0, 1, -1, -1, -1, -1]))
    assert apart.rows.n_rows == 5
    assert examples.fingerprint != apart.fingerprint
    assert observed.take(np.array([2])).hole_flags().tolist() == [[True, False]]
    assert isinstance(examples.observed, Observed)
