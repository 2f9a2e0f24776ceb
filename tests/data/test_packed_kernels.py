"""Kernels over packed rows against NumPy on the unpacked ones; evidence merging in rounds."""

from typing import Any

import numpy as np
import pytest

from exchangeable import ExchangeableMixture, PackedBits
from exchangeable.data import packed_kernels
from exchangeable.data.forms import CODE_BITS, Codes, Words
from exchangeable.data.groups import Group
from exchangeable.data.rows import as_rows
from exchangeable.data.stream.chunk import Chunk
from exchangeable.families.common.tables import block_counts
from exchangeable.partitions import Partition, log_factorials
from exchangeable.structure.evidence import merge_blocks
from exchangeable.structure.intervals import Intervals
from exchangeable.structure.rounds import IntervalMerge, merge_in_rounds
from scaling_rows import assert_same_model


def draw(n_rows: int, n_variables: int, share: float = 0.3) -> Any:
    return np.random.default_rng(n_variables).random((n_rows, n_variables)) < share


@pytest.mark.parametrize("n_variables", [1, 5, 64, 65, 128, 131])
@pytest.mark.parametrize("n_rows", [0, 1, 255, 256, 600])
def test_forms_of_packed_rows(n_rows: int, n_variables: int) -> None:
    X = draw(n_rows, n_variables)
    rows = as_rows(X, None)
    ones = np.zeros(n_variables)
    packed_kernels.sum_bits(rows.bits, np.arange(n_rows), ones)
    np.testing.assert_array_equal(ones, X.sum(axis=0))
    order = np.random.default_rng(0).permutation(n_variables)
    words = Words.in_order(rows, order)
    back = np.unpackbits(
        np.ascontiguousarray(words.words.T).view(np.uint8),
        axis=1,
        count=n_variables,
        bitorder="little",
    )
    np.testing.assert_array_equal(back, X[:, order])
    np.testing.assert_array_equal(order[words.position], np.arange(n_variables))
    padded = np.zeros((n_rows, -(-n_variables // CODE_BITS) * CODE_BITS), dtype=np.int64)
    padded[:, :n_variables] = X
    expected = padded.reshape(n_rows, padded.shape[1] // CODE_BITS, CODE_BITS) @ (
        1 << np.arange(CODE_BITS)
    )
    np.testing.assert_array_equal(Codes.of(rows).codes, expected.T)


@pytest.mark.parametrize("share", [0.02, 0.4])
@pytest.mark.filterwarnings("ignore:EM did not converge")
def test_mixtures_of_packed_rows(share: float) -> None:
    """Dense rows are coded and sparse ones listed; both give the fit in memory."""
    X = draw(900, 150, share)
    X[::2, ::3] |= draw(450, 50, 0.3)
    packed = PackedBits.pack(X)
    assert (Chunk(packed.rows()).examples.rows.bits.size > 0) == (share == 0.4)
    options: dict[str, Any] = dict(n_components=2, random_state=0, max_iter=8, start=0.4)
    for structure in ("independent", "evidence"):
        local = ExchangeableMixture(structure=structure, **options).fit(X)
        assert_same_model(local, ExchangeableMixture(structure=structure, **options).fit(packed))


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

    def count(wanted: list[Intervals]) -> list[Any]:
        passes.append(1)
        return [intervals.histogram(rows, group) for intervals in wanted]

    (merged,) = merge_in_rounds([IntervalMerge(fine, 0.1, limit)], count)
    np.testing.assert_array_equal(merged.labels, expected.labels)
    assert len(passes) <= 12  # a few passes, not one a merge
