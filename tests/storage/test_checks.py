"""Checks of arrays that were read, a stretch at a time."""

import numpy as np
import pytest

from exchangeable.partitions import Partition
from exchangeable.storage import checks
from exchangeable.storage.archive import ModelFileError


@pytest.fixture(autouse=True)
def few_at_once(monkeypatch):
    monkeypatch.setattr(checks, "AT_ONCE", 4)


def partition_of(sizes):
    return Partition.from_labels(np.repeat(np.arange(len(sizes)), sizes))


@pytest.mark.parametrize("sizes", [[1], [9], [1, 1, 1, 1, 1], [2, 9, 1, 1, 1, 3], [3, 3, 3, 8]])
def test_stretches_hold_every_block_and_entry_once(sizes):
    partition = partition_of(sizes)
    found = list(checks.stretches(partition))
    blocks, counts = zip(*found, strict=True)
    n_blocks, n_counts = partition.n_blocks, partition.table_size
    assert [b for own in blocks for b in range(n_blocks)[own]] == list(range(n_blocks))
    assert [c for own in counts for c in range(n_counts)[own]] == list(range(n_counts))
    assert all(c.start == partition.starts[b.start] for b, c in found)
    assert all(b.stop - b.start == 1 or c.stop - c.start < 4 + max(sizes) + 1 for b, c in found)


@pytest.mark.parametrize("wrong", range(6))
def test_one_block_that_does_not_add_up_is_found_wherever_it_is(wrong):
    partition = partition_of([2, 9, 1, 1, 1, 3])
    log_q = np.concatenate([np.full(m + 1, -np.log(m + 1)) for m in partition.sizes])
    checks.check_counts(log_q, [partition], "log_q")
    log_q[partition.starts[wrong]] -= 1e-4
    with pytest.raises(ModelFileError, match="log_q hold probabilities that do not add up"):
        checks.check_counts(log_q, [partition], "log_q")


@pytest.mark.parametrize("wrong", range(5))
def test_one_line_that_does_not_add_up_is_found_wherever_it_is(wrong):
    tables = np.full((5, 2, 2), 0.5)
    checks.check_lines(tables, "edges")
    tables[wrong, 1, 0] += 1e-4
    with pytest.raises(ModelFileError, match="edges hold"):
        checks.check_lines(tables, "edges")


@pytest.mark.parametrize("wrong", range(3))
def test_one_column_that_does_not_add_up_is_found_wherever_it_is(wrong):
    log_shares = np.log(np.tile([[0.25], [0.75], [1.0]], (1, 3)))
    checks.check_columns(log_shares, np.array([0, 2]), "log_shares")
    log_shares[1, wrong] -= 1e-4
    with pytest.raises(ModelFileError, match="log_shares hold"):
        checks.check_columns(log_shares, np.array([0, 2]), "log_shares")


@pytest.mark.parametrize("n", [1, 2, 3, 9, 64, 65])
def test_a_long_chain_is_a_tree_and_a_cycle_at_its_end_is_none(n):
    chain = np.arange(1, n + 1, dtype=np.int32)
    both = np.stack([chain, chain], axis=1)
    checks.check_forest(both, n)
    both[n - 1, 1] = n // 2
    with pytest.raises(ModelFileError, match="parent holds a cycle"):
        checks.check_forest(both, n)
