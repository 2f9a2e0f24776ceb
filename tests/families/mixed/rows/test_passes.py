"""Passes of EM, over rows that are prepared, sum what scores and sums of plain rows are."""

from typing import Any

import numpy as np
import pytest

from exchangeable.data.rows import ColumnType
from exchangeable.families.mixed.parts.base import Part, Prior, add_sums
from exchangeable.families.mixed.parts.count_bins import CountBins
from exchangeable.families.mixed.parts.levels import Levels
from exchangeable.families.mixed.parts.normals import Normals

N = 700
SPANS = [(0, 300), (300, N)]
rng = np.random.default_rng(2)
MASS = rng.dirichlet(np.ones(3), N)
SIZES = (5, 5, 2, 3, 5, 2, 2)


def numbers(kind: type[Part]) -> tuple[np.ndarray, tuple[ColumnType, ...]]:
    if kind is Levels:
        values = np.stack([rng.integers(0, size, N) for size in SIZES], axis=1).astype(float)
        return values, tuple(ColumnType("nominal", size) for size in SIZES)
    return rng.normal(size=(N, 4)), (ColumnType("continuous", 0),) * 4


def test_bins_of_counts_are_no_codes_of_levels() -> None:
    values = rng.poisson(4.0, size=(N, 2)).astype(float)
    values[rng.random(values.shape) < 0.2] = np.nan
    types = (ColumnType("count", 0),) * 2
    part = CountBins.first(np.arange(2), types, values, MASS, Prior(1.0))
    after = part.following(part.sums(values, MASS), Prior(1.0))
    np.testing.assert_array_equal(after.lows, part.lows)
    joint = np.zeros((3, 400))
    passing = part.reading(part.prepare(values, SPANS))
    passing.add_scores(1, joint)
    np.testing.assert_allclose(joint.T, part.score(values[300:]), atol=1e-12)
    sums = passing.sums(1, np.ascontiguousarray(MASS[300:].T))["levels"]
    np.testing.assert_allclose(sums, part.sums(values[300:], MASS[300:])["levels"], atol=1e-12)


@pytest.mark.parametrize("holes", [0.0, 0.3])
@pytest.mark.parametrize("kind", [Levels, Normals])
def test_passes_are_scores_and_sums(kind: type[Part], holes: float) -> None:
    values, types = numbers(kind)
    values[rng.random(values.shape) < holes] = np.nan
    part: Any = kind.first(np.arange(len(types)), types, values, MASS, Prior(1.0))
    passing = part.reading(part.prepare(values, SPANS))
    scores, sums = [], []
    for number, (begin, end) in enumerate(SPANS):
        joint = np.zeros((3, end - begin))
        passing.add_scores(number, joint)
        scores.append(joint.T)
        sums.append(passing.sums(number, np.ascontiguousarray(MASS[begin:end].T)))
    known = ~np.isnan(values)
    expected = np.zeros((N, 3))
    for j in range(len(types)):
        for y in range(3):
            own = values[known[:, j], j]
            if kind is Levels:
                each = np.log(part.shares(j, y))[own.astype(int)]
            else:
                mean, variance = part.means[j, y], part.variances[j, y]
                each = -0.5 * (np.log(2 * np.pi * variance) + (own - mean) ** 2 / variance)
            expected[known[:, j], y] += each
    np.testing.assert_allclose(np.concatenate(scores), expected, atol=1e-12)
    total = passing.finish(add_sums(sums))
    for name, array in part.sums(values, MASS).items():
        np.testing.assert_allclose(total[name], array, atol=1e-9)
