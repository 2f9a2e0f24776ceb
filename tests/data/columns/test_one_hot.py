"""One-hot columns declared as categories: the same model as of the categories themselves."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import exchangeable
from exchangeable import ExchangeableClassifier, ExchangeableMixture, Kinds

N = 200
rng = np.random.default_rng(6)
TABLE = pd.DataFrame(
    {
        "city": pd.Categorical(rng.choice(["Oslo", "Rome", "Wien"], N)),
        "size": pd.Categorical(rng.choice(["L", "S"], N)),
        "member": rng.integers(0, 2, N),
    }
)
DUMMIES = pd.get_dummies(TABLE, dtype=float)[
    ["city_Oslo", "city_Rome", "city_Wien", "size_L", "size_S", "member"]
]
GROUPS = {"city": [0, 1, 2], "size": [3, 4]}
MATRIX = sp.csr_array(DUMMIES.to_numpy())


def mixture(X: Any, groups: Any) -> ExchangeableMixture:
    return ExchangeableMixture(3, kinds=Kinds(groups=groups), random_state=0).fit(X)


@pytest.mark.parametrize("X", [MATRIX, MATRIX.toarray(), DUMMIES], ids=["sparse", "array", "table"])
def test_groups_are_categories(X: Any, tmp_path: Path) -> None:
    model = mixture(X, GROUPS)
    plain = ExchangeableMixture(3, random_state=0).fit(TABLE)
    np.testing.assert_allclose(model.score_samples(X), plain.score_samples(TABLE), atol=1e-12)
    assert list(model.kinds_.values()) == ["nominal", "nominal", "binary"]
    drawn = model.sample(50, random_state=1)[0]
    assert type(drawn) is type(X)
    values = drawn.toarray() if sp.issparse(drawn) else np.asarray(drawn)
    assert (values[:, :3].sum(axis=1) == 1).all()
    assert (values[:, 3:5].sum(axis=1) == 1).all()
    rome = 1 if X is not DUMMIES else "city_Rome"
    answer = model.conditional("size", {"city": rome})
    expected = plain.conditional("size", {"city": "Rome"})
    np.testing.assert_allclose(list(answer.values()), list(expected.values()), atol=1e-12)
    assert model.profiles().items[:2] == ["city", "size"]
    exchangeable.save(model, tmp_path / "groups.exch")
    same = exchangeable.load(tmp_path / "groups.exch")
    np.testing.assert_array_equal(same.score_samples(X), model.score_samples(X))


def test_rows_with_no_column_on_are_holes() -> None:
    model = mixture(MATRIX, [[0, 1, 2], [3, 4]])
    assert list(model.kinds_) == ["group 0", "group 1", 5]
    row = MATRIX[[0]].toarray()
    open_row = row.copy()
    open_row[0, :3] = 0
    every = np.tile(row, (3, 1))
    every[:, :3] = np.eye(3)
    total = np.logaddexp.reduce(model.score_samples(every))
    assert model.score_samples(sp.csr_array(open_row))[0] == pytest.approx(total, abs=1e-9)
    filled = model.impute(sp.csr_array(open_row))
    assert sp.issparse(filled)
    assert filled.toarray()[0, :3].sum() == 1
    np.testing.assert_array_equal(filled.toarray()[0, 3:], row[0, 3:])


def test_classes_take_groups() -> None:
    label = (TABLE["city"] == "Rome").to_numpy()
    model = ExchangeableClassifier(kinds=Kinds(groups=GROUPS)).fit(MATRIX, label)
    assert model.score(MATRIX, label) == 1.0
    trained = ExchangeableClassifier(kinds=Kinds(groups=GROUPS), training="hybrid")
    assert trained.fit(MATRIX, label).score(MATRIX, label) == 1.0


@pytest.mark.parametrize(
    ("groups", "told"),
    [
        ([[0, 1], [1, 2]], "groups name column 1 twice"),
        ([[0]], "has 1 columns; a variable has two levels"),
        ([[0, 9]], "groups names 9, which is not a column of X"),
        ([[0, 5]], "has 0 and 5 of group 'group 0' on"),
        (3, "expected lists of columns"),
        ([3], "expected a list of columns"),
    ],
)
def test_groups_that_cannot_be_are_refused(groups: Any, told: str) -> None:
    with pytest.raises((ValueError, TypeError), match=told):
        mixture(MATRIX, groups)


def test_groups_and_kinds_must_agree() -> None:
    kinds = Kinds({"city": "ordinal"}, groups=GROUPS)
    with pytest.raises(ValueError, match="'city' is ordinal, but groups make it nominal"):
        ExchangeableMixture(2, kinds=kinds).fit(MATRIX)
    counts = Kinds("count", groups=GROUPS)
    assert ExchangeableMixture(2, kinds=counts, random_state=0).fit(MATRIX).kinds_[5] == "count"
    twos = MATRIX.copy()
    twos.data[0] = 2.0
    with pytest.raises(ValueError, match="must be 0 or 1"):
        mixture(twos, GROUPS)
