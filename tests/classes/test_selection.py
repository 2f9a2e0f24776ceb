"""`ExchangeableMixture.select`: how many components, and by what."""

import pytest

from exchangeable import ExchangeableMixture
from made_rows import clusters


def test_the_number_of_kinds_is_found():
    X = clusters(n_rows=2000, n_variables=10, n_kinds=3, seed=5)
    found = ExchangeableMixture.select(X, n_components=[1, 3, 8], random_state=0, n_init=3)
    assert found.criterion == "bic"
    assert found.best.n_components == 3
    assert "chosen by bic" in str(found)
    held_out = clusters(n_rows=500, n_variables=10, n_kinds=3, seed=5)
    by_rows = ExchangeableMixture.select(X, held_out, n_components=[1, 3], random_state=0)
    assert by_rows.criterion == "valid"
    assert by_rows.best.score(held_out) == max(row.valid for row in by_rows.table)


def test_what_makes_no_sense_is_refused():
    X = clusters()
    with pytest.raises(ValueError, match="criterion='valid' needs X_valid"):
        ExchangeableMixture.select(X, criterion="valid")
    with pytest.raises(ValueError, match="criterion='luck' is unknown"):
        ExchangeableMixture.select(X, criterion="luck")
    with pytest.raises(ValueError, match="n_components is empty"):
        ExchangeableMixture.select(X, n_components=[])
