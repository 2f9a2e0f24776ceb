"""Packed rows."""

from pathlib import Path

import numpy as np
import pytest

from exchangeable import ExchangeableClassifier, ExchangeableMixture, PackedBits
from scaling_rows import assert_same_model


@pytest.mark.parametrize("n_variables", [1, 7, 8, 63, 64, 65, 130])
def test_packed_bits_are_the_rows(n_variables: int) -> None:
    rng = np.random.default_rng(n_variables)
    X = (rng.random((700, n_variables)) < 0.4).astype(np.uint8)
    y = rng.integers(0, 2, 700)
    bits = PackedBits(np.packbits(X, axis=1, bitorder="little"), n_variables)
    assert bits.shape == X.shape == PackedBits.pack(X).shape
    assert_same_model(ExchangeableClassifier().fit(X, y), ExchangeableClassifier().fit(bits, y))


def test_bits_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="matrix of uint8, got float64"):
        PackedBits(np.eye(3), 3)
    with pytest.raises(ValueError, match="has 3 bytes per row; 3 variables take 1"):
        PackedBits(np.eye(3, dtype=np.uint8), 3)
    big_endian = PackedBits(np.packbits(np.ones((5, 3), dtype=np.uint8), axis=1), 3)
    with pytest.raises(ValueError, match="bits beyond its 3 variables"):
        ExchangeableMixture(2).fit(big_endian)
