"""`ExchangeableMixture.select`: how many components, and by what."""

import numpy as np
import pytest

from exchangeable import ExchangeableMixture
from made_classes import answers
from made_rows import clusters


def test_the_number_of_kinds_is_found():
    X = clusters(n_rows=2000, n_variables=10, n_kinds=3, seed=5)
    found = ExchangeableMixture.select(X, n_components=[1, 3, 8], random_state=0, n_init=3)
    assert found.criterion == "bic"
    assert found.best.n_components == 3
    assert "chosen by BIC" in str(found)
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


def test_criteria_are_what_their_formulas_say():
    X, _ = answers(300, seed=2)
    weight = np.random.default_rng(0).uniform(0.5, 2, 300)
    options = {"blocks": "independent", "random_state": 0, "n_init": 3}
    found = ExchangeableMixture.select(X, n_components=[1, 2], sample_weight=weight, **options)
    row, model, n = found.table[1], found.models[1], weight.sum()
    posterior = model.predict_proba(X)
    log_likelihood = weight @ model.score_samples(X)
    entropy = -weight @ (posterior * np.log(posterior)).sum(axis=1)
    assert row.n_parameters == 11
    assert row.log_likelihood == pytest.approx(log_likelihood)
    assert row.train == pytest.approx(log_likelihood / n)
    assert row.aic == pytest.approx(-2 * log_likelihood + 22)
    assert row.bic == pytest.approx(-2 * log_likelihood + 11 * np.log(n))
    assert row.abic == pytest.approx(-2 * log_likelihood + 11 * np.log((n + 2) / 24))
    assert row.icl == pytest.approx(row.bic + 2 * entropy)
    assert row.entropy_r2 == pytest.approx(1 - entropy / (n * np.log(2)))
    assert row.smallest == pytest.approx((weight @ posterior).min() / n)
    assert np.isnan(found.table[0].entropy_r2)


def test_families_and_blocks_are_compared_in_one_table():
    X, _ = answers(300, seed=2)
    grid = [{"blocks": ["independent", "full"]}, {"family": ["urns"]}]
    found = ExchangeableMixture.select(X, n_components=[1, 2], param_grid=grid, random_state=0)
    frame = found.to_frame()
    assert list(frame["blocks"]) == ["independent"] * 2 + ["full"] * 2 + [""] * 2
    assert list(frame["family"]) == [""] * 4 + ["urns"] * 2
    assert found.best is found.models[int(np.argmin([row.bic for row in found.table]))]
    with pytest.raises(ValueError, match="expected a list of values"):
        ExchangeableMixture.select(X, param_grid={"blocks": "full"})


def test_the_bootstrap_test_chooses():
    X, _ = answers(250, seed=4)
    options = {"blocks": "independent", "random_state": 0, "n_init": 3}
    numbers = {"n_components": [3, 1, 2], "bootstrap": 19}
    found = ExchangeableMixture.select(X, criterion="blrt", **numbers, **options)
    assert [row.n_components for row in found.table] == [1, 2, 3]
    assert found.best.n_components == 2
    assert found.table[1].p_value == 0.05
    assert found.table[2].p_value > 0.05
    assert "bootstrap with 19 draws" in str(found)
    with pytest.raises(ValueError, match="needs a number of draws"):
        ExchangeableMixture.select(X, criterion="blrt")
    grid = {"alpha": [0.1, 1.0]}
    with pytest.raises(ValueError, match="not settings of param_grid"):
        ExchangeableMixture.select(X, criterion="blrt", bootstrap=5, param_grid=grid)


def test_more_parameters_than_cells_or_rows_are_told():
    X = clusters(200, 3, 2, seed=0)
    options = {"blocks": "independent", "random_state": 0}
    with pytest.warns(UserWarning, match="3 classes have 11 parameters: .* not identified"):
        ExchangeableMixture.select(X, n_components=[3], **options)
    noise = np.random.default_rng(0).integers(0, 2, (200, 3))
    found = ExchangeableMixture.select(noise, n_components=[1, 3], **options)
    assert str(found).endswith("chosen by BIC; not identified for 3 classes")
    few = clusters(20, 8, 2, seed=0)
    with pytest.warns(UserWarning, match="3 classes have 26 parameters: as many as there are rows"):
        ExchangeableMixture.select(few, n_components=[3], **options)
    found = ExchangeableMixture.select(few, n_components=[1, 3], **options)
    assert [row.trouble for row in found.table] == ["", "too small a sample"]


def test_a_picture_shows_the_criteria():
    plt = pytest.importorskip("matplotlib.pyplot")
    X, _ = answers(200)
    options = {"blocks": "independent", "random_state": 0}
    found = ExchangeableMixture.select(X, n_components=[1, 2], bootstrap=5, **options)
    axes = found.plot()
    drawn = {line.get_label(): line.get_ydata() for line in axes.lines}
    np.testing.assert_allclose(drawn["BIC"], [row.bic for row in found.table])
    np.testing.assert_allclose(drawn["ICL"], [row.icl for row in found.table])
    assert any(text.get_text().startswith("p=") for text in axes.texts)
    plt.close("all")
