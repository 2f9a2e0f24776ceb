"""Tables of columns of every kind, and what fits to them are compared by."""

from typing import Any

import numpy as np
import pandas as pd

N = 300
CUTS = [(0, 130), (130, 131), (131, N)]
"""Chunks of several rows, and of one."""


def make_table(n_rows: int = N) -> tuple[pd.DataFrame, pd.DataFrame, Any]:
    """Return a table, the same with holes, and the groups of its rows."""
    rng = np.random.default_rng(7)
    group = rng.integers(0, 3, n_rows)
    noise = rng.integers(-1, 2, n_rows)
    table = pd.DataFrame(
        {
            "city": np.array(["Bonn", "Oslo", "Rome", "Riga"])[(group + (noise > 0)) % 4],
            "answer": pd.Categorical.from_codes(
                np.clip(group + noise, 0, 2), ["no", "so-so", "yes"], ordered=True
            ),
            "grade": rng.integers(1, 6, n_rows),
            "mark": np.clip(group + 2 + rng.integers(-1, 2, n_rows), 1, 5),
            "visits": rng.poisson(0.5 + 3 * group),
            "calls": rng.poisson(1 + 2 * group),
            "age": rng.normal(30 + 10 * group, 4.0),
            "height": rng.normal(170 + 4 * group, 3.0),
            "income": np.exp(rng.normal(1 + group, 1.0)),
            "member": rng.random(n_rows) < 0.2 + 0.2 * group,
        }
    )
    nullable = dict.fromkeys(("grade", "mark", "visits", "calls"), "Int64")
    holed = table.astype(nullable | {"member": "boolean"}).mask(rng.random(table.shape) < 0.15)
    return table, holed, group


def in_parts(table: Any) -> list[Any]:
    """Return a table in chunks."""
    return [table[begin:end] for begin, end in CUTS]


def assert_same_answers(one: Any, other: Any, X: Any, atol: float = 1e-10) -> None:
    """Check that two estimators took the columns alike, and say the same of every row."""
    assert one.kinds_ == other.kinds_
    assert one.feature_names_in_.tolist() == other.feature_names_in_.tolist()
    assert [list(map(list, blocks)) for blocks in one.partitions_] == [
        list(map(list, blocks)) for blocks in other.partitions_
    ]
    np.testing.assert_allclose(one.score_samples(X), other.score_samples(X), rtol=0, atol=atol)
