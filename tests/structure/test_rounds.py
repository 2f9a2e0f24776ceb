"""Evidence merging in rounds, as chunks allow it, against merging with all rows at hand."""

from typing import Any

import numpy as np
import pytest

from exchangeable import Blocks, ExchangeableClassifier
from exchangeable.data.groups import Group
from exchangeable.data.rows import as_rows
from exchangeable.families.common.tables import block_counts
from exchangeable.partitions import Partition, log_factorials
from exchangeable.structure.evidence import merge_blocks
from exchangeable.structure.intervals import EachClass
from exchangeable.structure.rounds import IntervalMerge, merge_in_rounds
from scaling_rows import Chunks, cut


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("limit", [np.inf, 20.0])
def test_merging_in_rounds_is_merging(seed: int, limit: float) -> None:
    rng = np.random.default_rng(seed)
    n_blocks = int(rng.integers(1, 40))
    sizes = rng.integers(1, 6, n_blocks)
    labels = rng.permutation(np.repeat(np.arange(n_blocks), sizes))
    fine = Partition.from_labels(labels)
    rate = np.sort(rng.choice([0.1, 0.12, 0.4, 0.5, 0.8], n_blocks))[labels]
    tilt = rng.choice([0.4, 1.0, 1.2], (300, 1))
    rows = as_rows(rng.random((300, labels.size)) < rate * tilt, None)
    weights = rng.random(300) if seed % 2 else np.empty(0)
    group = Group(np.arange(300), weights)
    counts = block_counts(rows, group, fine)
    factorials = log_factorials(labels.size)
    expected = fine.merged(merge_blocks(counts, fine.sizes, weights, 0.1, factorials, limit))
    passes = []

    def over(function: EachClass) -> list[Any]:
        passes.append(1)
        return [function(rows, group, 0)]

    (merged,) = merge_in_rounds([IntervalMerge(fine, 0.1, limit)], over)
    np.testing.assert_array_equal(merged.labels, expected.labels)
    assert len(passes) <= 2


def test_a_classifier_learns_from_three_passes_what_it_learns_in_memory() -> None:
    """Blocks before merging are too many for all intervals to be asked for at once."""
    rng = np.random.default_rng(2)
    means = np.linspace(0.1, 0.9, 60)
    X = (rng.random((6000, 60)) < means).astype(np.uint8)
    y = rng.integers(0, 2, 6000)
    X[y == 1] = X[y == 1][:, ::-1]
    source = Chunks(cut(X, (2500, 500, 3000)))
    settings = Blocks("evidence", start=0.9)
    chunked = ExchangeableClassifier(blocks=settings).fit(source, y)
    local = ExchangeableClassifier(blocks=settings).fit(X, y)
    for one, other in zip(local._model.partitions, chunked._model.partitions, strict=True):
        np.testing.assert_array_equal(one.labels, other.labels)
        assert one.n_blocks > 5
    assert source.number + 1 == 3
