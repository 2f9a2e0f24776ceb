"""Whether the answers of the report page are those of Python."""

import numpy as np
import pytest

from page_models import answer_of


def assert_answers_are_pythons(page, model, rows):
    for row in rows:
        found = answer_of(page, row)
        log_evidence = model.score_samples(row[None])[0]
        if log_evidence == -np.inf:
            assert found is None
            continue
        assert found["logEvidence"] == pytest.approx(log_evidence, rel=1e-9, abs=1e-9)
        posterior = model.predict_proba(row[None])[0]
        np.testing.assert_allclose(found["posterior"], posterior, rtol=0, atol=1e-9)
        np.testing.assert_allclose(found["marginals"], model.marginals(row), rtol=0, atol=1e-9)
        gains = model.information_gain(row)
        np.testing.assert_allclose(found["gains"], gains, rtol=0, atol=1e-8)
        assert_best(found, model, row)


def assert_best(found, model, row):
    """The completion is as probable as Python's, agrees with the row, and is what it says."""
    expected = model.most_probable(row)
    assert found["completionLogProb"] == pytest.approx(expected.log_prob, rel=1e-9, abs=1e-9)
    completed = np.array(found["completion"])
    known = ~np.isnan(row)
    np.testing.assert_array_equal(completed[known], row[known])
    joint = model._mixture().joint(model._observed(completed[None]))[0, found["completionClass"]]
    assert joint == pytest.approx(found["completionLogProb"], rel=1e-9, abs=1e-9)
