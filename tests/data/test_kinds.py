"""What is decided about columns, their values as numbers and back, and transforms."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from exchangeable.data.examples import merge_equal_rows
from exchangeable.data.kinds import decide
from exchangeable.data.observed import Observed
from exchangeable.data.rows import ColumnType
from exchangeable.data.schema import Schema, typed, typed_rows
from exchangeable.data.transforms import Transform, fit_transform, yeo_johnson


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
