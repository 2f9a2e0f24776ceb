"""Which columns go together: items of a scale find each other, whatever their kind."""

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from exchangeable import ExchangeableClassifier, ExchangeableMixture

N = 600
rng = np.random.default_rng(12)
ABILITY = rng.normal(size=(N, 2))
SCALE = np.array([0, 0, 0, 0, 1, 1, 1, 1])


def columns(kind: str) -> pd.DataFrame:
    """Return eight columns: four depend on one ability, four on another."""
    own = ABILITY[:, SCALE]
    if kind == "continuous":
        X = own + 0.8 * rng.normal(size=(N, 8))
    elif kind == "count":
        X = rng.poisson(np.exp(0.7 * own))
    else:
        steps = np.array([-0.7, 0.7]) + rng.normal(0, 0.3, (8, 1))
        noisy = own[..., None] + rng.logistic(size=(N, 8, 1)) / 2
        X = (noisy > steps).sum(axis=2)
    return pd.DataFrame(X, columns=[f"item {j}" for j in range(8)]).astype(float)


def found(model: Any) -> list[list[int]]:
    return sorted(sorted(block.tolist()) for block in model.partitions_[0])


SCALES = [[0, 1, 2, 3], [4, 5, 6, 7]]


@pytest.mark.parametrize(
    ("family", "kind"),
    [
        *itertools.product(["mixed", "polya"], ["ordinal", "count", "continuous"]),
        ("polya", "nominal"),
    ],
)
def test_items_of_a_scale_find_each_other(family: str, kind: str) -> None:
    options: dict[str, Any] = {"family": family, "kinds": kind, "blocks": "evidence"}
    table = columns(kind)
    one = ExchangeableMixture(1, **options).fit(table)
    assert found(one) == SCALES
    together = ExchangeableMixture(1, **options | {"blocks": SCALES}).fit(table)
    assert one.score(table) == pytest.approx(together.score(table), abs=1e-3)
    assert one.bic(table) < ExchangeableMixture(1, **options | {"blocks": "full"}).fit(table).bic(
        table
    )


def test_classes_and_holes_have_learned_blocks_too() -> None:
    table, label = columns("ordinal"), np.arange(N) % 2
    shifted = pd.DataFrame(np.where(label[:, None] == 0, table, 2 - table), columns=table.columns)
    holed = shifted.mask(rng.random(table.shape) < 0.1)
    model = ExchangeableClassifier("mixed", kinds="ordinal", blocks="evidence").fit(holed, label)
    assert found(model) == SCALES


def test_columns_of_different_kinds_stay_apart() -> None:
    table = columns("continuous").iloc[:, :3].assign(count=columns("count")["item 0"])
    model = ExchangeableMixture(1, kinds={"count": "count"}, blocks="evidence").fit(table)
    assert found(model) == [[0, 1, 2], [3]]
    with pytest.raises(ValueError, match="blocks='evidence' is not for sparse counts"):
        ExchangeableMixture(1, family="mixed", kinds="count", blocks="evidence").fit(
            sp.eye_array(9)
        )


def test_components_are_fitted_before_their_blocks() -> None:
    """Columns that differ between groups alone are independent given the component."""
    group = rng.integers(0, 2, N)
    table = pd.DataFrame(rng.normal(4.0 * group[:, None], 1.0, (N, 5)))
    model = ExchangeableMixture(2, blocks="evidence", random_state=0).fit(table)
    assert found(model) == [[j] for j in range(5)]
    single = ExchangeableMixture(1, blocks="evidence").fit(table)
    assert found(single) == [[0, 1, 2, 3, 4]]
