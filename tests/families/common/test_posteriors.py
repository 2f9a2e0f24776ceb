"""Posteriors of one row at a time."""

import numpy as np
import pytest

from exchangeable.families.common.posteriors import settle_row


@pytest.mark.parametrize("share", [1e-3, 1e-6, 1e-12])
def test_small_posteriors_are_kept_down_to_rounding(share):
    joint = np.log([1 - share, share]) - 300.0
    assert settle_row(joint, np.zeros(2), -1) == pytest.approx(-300.0)
    np.testing.assert_allclose(joint, [1 - share, share], rtol=1e-9)


def test_what_rounding_loses_is_nothing():
    joint = np.log([1.0, 1e-15, 1e-30])
    settle_row(joint, np.zeros(3), -1)
    assert joint[0] == pytest.approx(1.0)
    assert joint[1:].tolist() == [0.0, 0.0]
