"""Hybrid training beside logistic regression and naive Bayes, with and without hidden features.

``python benchmarks/hybrid.py [SET ...] [MODEL ...]`` fits every classifier to the training rows of
each collection (official splits; ten folds or splits where there are none) and scores the test rows
once, as they are and with half of the features hidden at random. Penalties and scales are chosen by
cross-validation on training rows: four penalties and five folds for `LogisticRegressionCV` as for
ours, of at most 1,000 iterations each, 100 on 20 Newsgroups and MNIST, where more take hours.
Classifiers that cannot sum over what is hidden get the column's mean of the training rows.

Seconds are those of `fit` on the clock, and of all its threads on processors: the latter say more
where other programs run. Results go to ``results/hybrid.csv``, in place of the lines that were
measured again.
"""

import csv
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import BernoulliNB, ComplementNB, MultinomialNB
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from exchangeable import ExchangeableClassifier, Hybrid
from exchangeable.datasets import fetch_classification
from exchangeable.fitting.hybrid.settings import PENALTIES

RESULTS = Path(__file__).parent / "results" / "hybrid.csv"
COLUMNS = (
    "set", "model", "hidden", "accuracy", "log_loss", "calibration", "fit_seconds", "fit_cpu",
)  # fmt: skip
SETS = ("webkb4", "reuters8", "polarity2", "enron1", "20newsgroups", "mnist")
FOLDED = ("polarity2", "enron1")
COMPONENTS = {"mnist": 40}
ITERATIONS = {"20newsgroups": 100, "mnist": 100}
"""Of `LogisticRegressionCV`, where 1,000 take too long."""
AT_ONCE = 500
"""Rows that are made dense at once."""


class NBSVM(LinearSVC):
    """NB-SVM (Wang and Manning, 2012) of two classes: a SVM of variables times log-ratios."""

    def fit(self, X, y):
        """Learn the ratios, the SVM, and interpolate its weights with their mean size."""
        self.classes_ = np.unique(y)
        on = np.asarray(X[y == self.classes_[1]].sum(axis=0)).ravel() + 1.0
        off = np.asarray(X[y == self.classes_[0]].sum(axis=0)).ravel() + 1.0
        self.ratio_ = np.log(on / on.sum()) - np.log(off / off.sum())
        super().fit(X @ sp.diags_array(self.ratio_), y)
        weights = 0.25 * self.coef_ + 0.75 * np.abs(self.coef_).mean()
        self.coef_ = weights * self.ratio_
        return self


def entrants(name):
    """Yield a name and a classifier each; those of ours for this collection come last."""
    inverse = [1 / penalty for penalty in PENALTIES]
    yield "BernoulliNB", BernoulliNB(alpha=0.1)
    yield "MultinomialNB", MultinomialNB()
    yield "ComplementNB", ComplementNB()
    n_iter = ITERATIONS.get(name, 1000)
    yield (
        "LogisticRegression, C by CV",
        LogisticRegressionCV(Cs=inverse, cv=5, scoring="neg_log_loss", max_iter=n_iter),
    )
    yield "LinearSVC", LinearSVC(random_state=0)
    yield "NB-SVM", OneVsRestClassifier(NBSVM(random_state=0))
    yield "generative", ExchangeableClassifier()
    yield "discriminative", ExchangeableClassifier(training="discriminative")
    yield "hybrid", ExchangeableClassifier(training="hybrid")
    if name in COMPONENTS:
        several = Hybrid(n_components=COMPONENTS[name])
        label = f"hybrid, {COMPONENTS[name]} components per class"
        yield label, ExchangeableClassifier(training=several)


def runs(name):
    """Yield training and test rows, once or for each of the ten runs."""
    for fold in range(10) if name in FOLDED else [None]:
        data = fetch_classification(name, fold=fold)
        X, test = (sp.csr_array(each > 0).astype(float) for each in (data.X_train, data.X_test))
        yield X, data.y_train, test, data.y_test


def predict(model, X):
    """Return probabilities, or decisions of classifiers that have none, and whether they are."""
    if hasattr(model, "predict_proba") and not isinstance(model, OneVsRestClassifier):
        return model.predict_proba(X), True
    decision = model.decision_function(X)
    if decision.ndim == 1:
        decision = np.stack([-decision, decision], axis=1)
    return decision, False


def hidden_rows(test, means, ours):
    """Yield test rows with half of their features hidden: NaN for ours, means for others."""
    rng = np.random.default_rng(0)
    for start in range(0, test.shape[0], AT_ONCE):
        part = test[start : start + AT_ONCE]
        part = part.toarray()
        gaps = rng.random(part.shape) < 0.5
        part[gaps] = np.nan if ours else np.broadcast_to(means, part.shape)[gaps]
        yield part


def calibration_error(probability, right):
    """Return the expected calibration error, in fifteen bins."""
    number = np.minimum((probability * 15).astype(int), 14)
    gaps = [
        abs(probability[number == b].sum() - right[number == b].sum()) for b in np.unique(number)
    ]
    return sum(gaps) / probability.size


def measured(answer, is_probability, classes, y):
    """Return accuracy, log-loss and calibration error."""
    best = answer.argmax(axis=1)
    right = classes[best] == y
    if not is_probability:
        return right.mean(), np.nan, np.nan
    top = answer[np.arange(len(best)), best]
    return right.mean(), log_loss(y, answer, labels=classes), calibration_error(top, right)


def one_run(name, models, X, y, test, y_test):
    """Yield a model's name, what is hidden, and its figures."""
    means = np.asarray(X.mean(axis=0)).ravel()
    for label, model in entrants(name):
        if models and label not in models:
            continue
        wall, cpu = time.perf_counter(), time.process_time()
        with warnings.catch_warnings(), threadpool_limits(1, "blas"):
            warnings.simplefilter("ignore", (ConvergenceWarning, FutureWarning))
            model.fit(X, y)
        seconds = time.perf_counter() - wall, time.process_time() - cpu
        classes = model.classes_
        yield label, "none", (*measured(*predict(model, test), classes, y_test), *seconds)
        ours = isinstance(model, ExchangeableClassifier)
        if ours or isinstance(model, LogisticRegressionCV):
            parts = [predict(model, part)[0] for part in hidden_rows(test, means, ours)]
            figures = measured(np.concatenate(parts), True, classes, y_test)
            yield label, "half", (*figures, *seconds)


def measure(name, models):
    """Fit some models to a collection, and keep the figures averaged over the runs so far."""
    found = {}
    for run in runs(name):
        for label, hidden, figures in one_run(name, models, *run):
            found.setdefault((label, hidden), []).append(figures)
            shown = " ".join(f"{value:9.4f}" for value in figures)
            print(f"{name:13} {label:34} {hidden:5} {shown}", flush=True)
            keep(name, found)


def keep(name, found):
    """Write the lines of a collection, in place of those they replace."""
    lines = {}
    if RESULTS.exists():
        with RESULTS.open(newline="") as file:
            lines = {tuple(line[:3]): line[3:] for line in list(csv.reader(file))[1:]}
    for (label, hidden), figures in found.items():
        mean = np.mean(figures, axis=0)
        cells = [f"{value:.4f}" for value in mean[:3]] + [f"{value:.1f}" for value in mean[3:]]
        lines[name, label, hidden] = cells
    order = [label for each in SETS for label, _ in entrants(each)]

    def place(key):
        return SETS.index(key[0]), key[2] != "none", order[::-1].index(key[1]) * -1

    with RESULTS.open("w", newline="") as file:
        table = [[*key, *lines[key]] for key in sorted(lines, key=place)]
        csv.writer(file).writerows([COLUMNS, *table])


def main() -> None:
    """Measure the collections that are named, or all; other words name models."""
    names = [name for name in sys.argv[1:] if name in SETS]
    models = [name for name in sys.argv[1:] if name not in SETS]
    for name in names or SETS:
        measure(name, models)


if __name__ == "__main__":
    main()
