"""Which rows decide by how much each conditional fit counts."""

from dataclasses import replace

import numpy as np

from exchangeable.data.columns.schema import typed
from exchangeable.data.examples import merge_equal_rows
from exchangeable.data.rows import ColumnType
from exchangeable.families.mixed.features import MixedFeatures
from exchangeable.families.problem import Problem
from exchangeable.fitting.hybrid.candidates import Candidates
from exchangeable.fitting.hybrid.convex import Solver
from exchangeable.fitting.hybrid.design import Design
from exchangeable.fitting.hybrid.settings import Hybrid, checked
from exchangeable.partitions import Partition


def made_candidates(kind: str, **settings: object) -> tuple[MixedFeatures, Candidates]:
    """Rows of three columns of counts, and of one of some kind."""
    rng = np.random.default_rng(0)
    label = np.arange(60) % 3
    counts = rng.poisson(1 + label[:, None], (60, 3))
    values = np.column_stack([counts, np.minimum(counts[:, 0], 2)]).astype(float)
    types = (*[ColumnType("count")] * 3, ColumnType(kind, 3 if kind == "nominal" else 0))
    examples, _ = merge_equal_rows(typed(values, types), np.ones(60), label)
    features = MixedFeatures.of(examples, Problem(3, [Partition.from_labels(range(4))] * 3))
    design = Design(
        features.ones, examples.clamp, examples.weights, 3,
        scored=features.scored, hidden_together=features.hidden_together,
    )  # fmt: skip
    asked = replace(checked(Hybrid(**settings)), family=False)
    return features, Candidates(design, asked, None, Solver(), [], 1)


def test_halves_of_counts_hide_all_bins_of_a_column_or_none() -> None:
    features, candidates = made_candidates("count")
    half = candidates.halves[0]
    for column in range(4):
        assert np.unique(half[features.columns == column]).size == 1
    assert 0 < half.sum() < half.size
    held = candidates.cross_validate()
    assert len(held) == 3
    np.testing.assert_allclose(held[1] + held[2], held[0], atol=1e-9)


def test_columns_of_mixed_kinds_and_given_scales_have_no_halves() -> None:
    assert not made_candidates("nominal")[1].halves.size
    assert not made_candidates("count", scores=("multinomial",), scales=[0.5])[1].halves.size
