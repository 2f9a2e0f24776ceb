"""Partitions of variables into blocks."""

import numpy as np
import pandas as pd
import pytest

from exchangeable import ExchangeableMixture
from exchangeable.partitions import Partition, check_partition


def test_partitions_round_trip():
    blocks = [[3, 0], [1], [2, 4]]
    partition = Partition.from_blocks(blocks, 5)
    assert [block.tolist() for block in partition.blocks] == [[0, 3], [1], [2, 4]]
    merged = partition.merged(np.array([0, 1, 0], dtype=np.int32))
    assert [block.tolist() for block in merged.blocks] == [[0, 2, 3, 4], [1]]
    assert merged.sizes.tolist() == [4, 1]
    with pytest.raises(ValueError, match="block 0"):
        check_partition([["x"]])


def test_a_variable_that_is_left_out_is_named():
    X = pd.DataFrame({"tea": [0, 1, 1], "milk": [0, 1, 0], "sugar": [1, 0, 1]})
    with pytest.raises(ValueError, match=r"'sugar' is in 0 blocks.*add the block \['sugar'\]"):
        ExchangeableMixture(1, kinds="binary", blocks=[["tea", "milk"]]).fit(X)
    with pytest.raises(ValueError, match=r"variable 1 is in 2 blocks.*leave it in one"):
        ExchangeableMixture(1, blocks=[[0, 1], [1, 2]]).fit(X.to_numpy())
