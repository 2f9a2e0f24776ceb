"""Mixtures that several tests ask."""

import pytest

from exchangeable import ExchangeableMixture
from made_classes import PRECISE, answers


@pytest.fixture(scope="session")
def two_classes():
    """Return a mixture of two classes at its maximum, and its rows, some with holes."""
    X, _ = answers(holes=0.1)
    return ExchangeableMixture(2, n_init=5, random_state=0, **PRECISE).fit(X), X
