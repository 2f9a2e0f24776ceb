"""Hybrid training of measurements that go together: one spread around the means of all classes."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import log_softmax, logsumexp
from sklearn.linear_model import LogisticRegression

from exchangeable import ExchangeableClassifier, Hybrid, Kinds
from exchangeable.data.rows import ColumnType
from exchangeable.families.mixed.parts.factor import Factor
from exchangeable.families.mixed.parts.tied import PSEUDO_ROWS, Tied, one_spread

N, M = 400, 5
rng = np.random.default_rng(0)
LABEL = rng.integers(0, 3, N)
MIXING = rng.normal(size=(M, M))
X = rng.normal(size=(N, M)) @ MIXING.T + rng.normal(size=(3, M))[LABEL]
TABLE = pd.DataFrame(X, columns=list("abcde")).assign(
    city=pd.Categorical(np.where(rng.random(N) < 0.2 + 0.3 * LABEL, "Oslo", "Rome"))
)
HOLED = TABLE.mask(rng.random(TABLE.shape) < 0.25)
PLAIN = Kinds(transform="none")
COLUMNS, TYPES = np.arange(M), (ColumnType("continuous", 0),) * M


def trained(rows: pd.DataFrame, **settings: object) -> ExchangeableClassifier:
    training = Hybrid(scores=(), penalty=2.0) if not settings else Hybrid(**settings)
    model = ExchangeableClassifier(
        training=training, blocks="full", kinds=PLAIN, tol=1e-7, max_iter=500
    )
    return model.fit(rows, LABEL)


def test_complete_rows_are_predicted_by_logistic_regression() -> None:
    rows = TABLE.drop(columns="city")
    ours = trained(rows)
    standard = (rows - rows.mean()) / rows.std(ddof=0)
    theirs = LogisticRegression(C=0.5, tol=1e-9, max_iter=5000).fit(standard, LABEL)
    np.testing.assert_allclose(ours.predict_proba(rows), theirs.predict_proba(standard), atol=2e-4)


def test_holes_are_summed_out_given_what_is_known() -> None:
    """The whole row is a Gaussian with one covariance and a mean for each class."""
    model = trained(HOLED)
    levels, factor = model._model.parts
    covariance = factor.loadings[:, :, 0] @ factor.loadings[:, :, 0].T
    covariance += np.diag(factor.variances[:, 0])
    scale, shift = X_scale(model)
    known = [0, 2, 3]
    asked = TABLE.iloc[[0]].astype({"city": object})
    asked = asked.assign(b=np.nan, e=np.nan, city=None)
    standard = (TABLE.iloc[0, known].to_numpy(float) - shift[known]) / scale[known]
    expected = [
        stats.multivariate_normal.logpdf(
            standard, factor.means[known, y], covariance[np.ix_(known, known)]
        )
        - np.log(scale[known]).sum()
        + model.class_log_prior_[y]
        for y in range(3)
    ]
    np.testing.assert_allclose(model.predict_joint_log_proba(asked)[0], expected, atol=1e-9)
    assert np.allclose(factor.loadings, factor.loadings[:, :, :1])
    assert levels.name == "levels"
    nothing = pd.DataFrame({name: [None] for name in TABLE})
    assert logsumexp(model.predict_joint_log_proba(nothing)) == pytest.approx(0.0, abs=1e-9)


def X_scale(model: ExchangeableClassifier) -> tuple[np.ndarray, np.ndarray]:
    """Return how the measurements of a model are scaled and shifted."""
    transforms = [column.transform for column in model._schema().columns[:M]]
    return (
        np.array([each.scale for each in transforms]),
        np.array([each.shift for each in transforms]),
    )


def test_scores_of_complete_rows_are_linear_whatever_the_covariance() -> None:
    model = trained(HOLED)
    scores = model.predict_log_proba(TABLE)
    design = np.c_[np.ones(N), X, TABLE["city"] == "Oslo"]
    for y in (1, 2):
        odds = scores[:, y] - scores[:, 0]
        found = design @ np.linalg.lstsq(design, odds, rcond=None)[0]
        np.testing.assert_allclose(found, odds, atol=1e-9)
    np.testing.assert_allclose(log_softmax(scores, axis=1), scores, atol=1e-12)


def test_rows_drawn_are_like_those_trained_on() -> None:
    drawn = trained(HOLED, penalty=2.0).sample(6000, random_state=0)[0]
    for name in "abcde":
        assert drawn[name].mean() == pytest.approx(TABLE[name].mean(), abs=0.35)
    gap = np.corrcoef(drawn[list("abcde")].T) - np.corrcoef(TABLE[list("abcde")].T)
    assert np.abs(gap).max() < 0.2


def test_steps_do_not_lower_the_likelihood_of_rows_and_pseudo_rows() -> None:
    values = HOLED[list("abcde")].to_numpy(float)
    values = (values - np.nanmean(values, axis=0)) / np.nanstd(values, axis=0)
    mass = (LABEL[:, None] == np.arange(3)) * 1.0
    part = Factor(
        COLUMNS, TYPES, np.zeros((M, 3)), np.tile(rng.normal(size=(M, 2, 1)), 3), np.ones((M, 3))
    )
    worth = []
    for _ in range(40):
        worth.append(float((mass * part.score(values)).sum()))
        part = one_spread(part, part.sums(values, mass))
    assert worth[-1] > worth[0]
    assert min(np.diff(worth[5:])) > -PSEUDO_ROWS * M  # what pseudo-rows may take away


def test_what_is_expected_in_holes_is_that_of_rows_of_all_classes() -> None:
    values = HOLED[list("abcde")].to_numpy(float)
    tied = Tied.of(COLUMNS, TYPES, values, np.ones(N), LABEL)
    np.testing.assert_array_equal(tied.filled[~np.isnan(values)], values[~np.isnan(values)])
    error = np.sqrt(np.mean((tied.filled - X)[np.isnan(values)] ** 2))
    usual = np.sqrt(np.mean((np.nanmean(values, axis=0) - X)[np.isnan(values)] ** 2))
    assert error < 0.8 * usual
    slope = rng.normal(size=(M, 3))
    whole = tied.weighed(slope)
    np.testing.assert_allclose(whole.means @ tied.shares, tied.part.means[:, 0], atol=1e-9)
