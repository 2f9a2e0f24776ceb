"""Kernels over packed rows against NumPy on the unpacked ones."""

from typing import Any

import numpy as np
import pytest

from exchangeable import Blocks, ExchangeableMixture, PackedBits
from exchangeable.data import packed_kernels
from exchangeable.data.forms import CODE_BITS, SHORT_BITS, Codes, Words
from exchangeable.data.rows import as_rows
from exchangeable.data.stream.chunk import Chunk
from scaling_rows import assert_same_model


def draw(n_rows: int, n_variables: int, share: float = 0.3) -> Any:
    return np.random.default_rng(n_variables).random((n_rows, n_variables)) < share


@pytest.mark.parametrize("n_variables", [1, 5, 64, 65, 128, 131])
@pytest.mark.parametrize("n_rows", [0, 1, 255, 256, 600])
def test_forms_of_packed_rows(n_rows: int, n_variables: int) -> None:
    X = draw(n_rows, n_variables)
    rows = as_rows(X, None)
    ones = np.zeros(n_variables)
    packed_kernels.sum_bits(
        rows.bits, np.arange(n_rows), packed_kernels.room_for_sums(rows.bits), ones
    )
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
    short = words.short()
    assert short.words.dtype == np.uint16
    assert len(short.words) == -(-n_variables // SHORT_BITS)
    for j, bit in enumerate(short.position):
        variable = short.words[bit // SHORT_BITS] >> (bit % SHORT_BITS) & 1
        np.testing.assert_array_equal(variable, X[:, j])
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
    options: dict[str, Any] = dict(n_components=2, random_state=0, max_iter=8)
    for blocks in ("independent", Blocks("evidence", start=0.4)):
        local = ExchangeableMixture(blocks=blocks, **options).fit(X)
        assert_same_model(local, ExchangeableMixture(blocks=blocks, **options).fit(packed))
