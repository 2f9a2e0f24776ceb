"""Columns of every kind beside peers, in the same run; figures go to ``results/kinds.csv``.

``python benchmarks/run.py kinds`` compares

* latent classes over six items of five levels with StepMix: adjusted Rand index, likelihood, and
  processor time per iteration of EM on one thread, the least of five times; and the same for
  measurements, for both together, and with 20 % of the entries missing;
* classifiers of scikit-learn's bundled tables, and of a made one of all kinds, with 0, 30 and 60 %
  of the entries of training and test rows deleted, ten times: accuracy of one component per class,
  of one with columns that go together, of hybrid training with both, of what cross-validation
  chooses, and of a mixture in which the class is a column, beside gradient boosting, logistic
  regression and Gaussian naive Bayes (the last two after filling in means);
* imputation of the same tables with 30 % deleted, five times: error in standard deviations;
* density of held-out rows of the same tables, beside Gaussian mixtures;
* synthetic tables: a classifier of rows drawn from a fitted table, tested on real rows, beside one
  of the real rows themselves;
* classifiers of the word counts of 20 Newsgroups, beside naive Bayes (``text``), and the same by
  hybrid training, beside the presence of words (``hybrid_text``); and whether scores of counts add
  anything to those of presence, on training documents alone (``text_scores``);
* a fit of 50,000 rows and 300 columns of all kinds.

``python benchmarks/bench_kinds.py PART ...`` runs some of the parts ``classes``,
``classification``, ``imputation``, ``density``, ``synthetic``, ``text``, ``hybrid_text``,
``text_scores`` and ``large``. Settings are defaults, except the number of components, which is
written, and the pooled prior of the urns of words, which is chosen on a fifth of the training
documents.
"""

import csv
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn import datasets
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import ComplementNB, GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from stepmix import StepMix

from exchangeable import (
    ExchangeableClassifier,
    ExchangeableDensity,
    ExchangeableImputer,
    ExchangeableMixture,
)
from exchangeable.datasets import fetch_classification
from exchangeable.datasets._documents import strip_posting

warnings.simplefilter("ignore")
RESULTS = Path(__file__).parent / "results" / "kinds.csv"
SETS = ("iris", "wine", "breast_cancer", "survey")
NUMBERS_ONLY = ("logistic regression", "Gaussian naive Bayes")
"""Peers that take neither categories nor holes."""
DRAWS = range(1, 6)
"""Seeds of what is missing where imputers are compared: not that with which ours was designed."""
SPLITS = range(7, 17)
"""Seeds of what is missing, and of halves of the tables, where classifiers are compared. What they
choose from was designed by cross-validation on the training half of split 0, with other holes, the
last candidate after splits 2 to 6 had shown what was missing."""
ROWS: list[tuple[str, str, str, float]] = []


def note(part: str, case: str, who: str, value: float) -> None:
    """Print a figure and keep it."""
    ROWS.append((part, case, who, round(float(value), 4)))
    print(f"{part:16} {case:24} {who:28} {value:10.4f}", flush=True)


def items(n: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    """Return six items of five levels in three classes whose levels have other shares."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, n)
    shares = rng.dirichlet(np.ones(5), size=(6, 3)).cumsum(axis=2)
    uniform = rng.random((n, 6, 1))
    return (uniform > shares[np.arange(6), group[:, None]]).sum(axis=2).clip(0, 4), group


def latent_classes() -> None:
    """Compare with StepMix."""
    X, group = items()
    rng = np.random.default_rng(1)
    numbers = rng.normal(group[:, None] * np.linspace(0.3, 0.8, 6), 1.0)
    for holes in (0.0, 0.2):
        unknown = np.random.default_rng(2).random((len(X), 12)) < holes
        both = np.where(unknown, np.nan, np.concatenate([X, numbers], axis=1))
        suffix = "_nan" if holes else ""
        levels, normal = f"categorical{suffix}", f"gaussian_diag{suffix}"
        mixed = {
            "levels": {"model": levels, "n_columns": 6},
            "numbers": {"model": normal, "n_columns": 6},
        }
        kinds = dict.fromkeys(range(6), "nominal") | dict.fromkeys(range(6, 12), "continuous")
        for case, data, kind, measurement in (
            ("six five-level items", both[:, :6], "nominal", levels),
            ("six measurements", both[:, 6:], "continuous", normal),
            ("six items and six measurements", both, kinds, mixed),
        ):
            told = f"{case}, {holes:.0%} missing" if holes else case
            beside_stepmix(told, data, group, kind, measurement)


def beside_stepmix(
    case: str, data: np.ndarray, group: np.ndarray, kinds: object, measurement: object
) -> None:
    """Fit the same classes, and note how good they are and how long a step takes."""
    own = ExchangeableMixture(3, kinds=kinds, n_init=10, random_state=0, n_jobs=1)
    peer = StepMix(3, measurement=measurement, n_init=10, random_state=0, progress_bar=0)
    ExchangeableMixture(3, kinds=kinds, max_iter=2, random_state=0).fit(data)  # compiles
    began = time.perf_counter()
    own.fit(data)
    middle = time.perf_counter()
    peer.fit(data)
    end = time.perf_counter()
    note("Rand index", case, "ours", adjusted_rand_score(group, own.predict(data)))
    note("Rand index", case, "StepMix", adjusted_rand_score(group, peer.predict(data)))
    note("log-likelihood", case, "ours", own.score(data))
    note("log-likelihood", case, "StepMix", peer.score(data))
    note("seconds, 10 starts", case, "ours", middle - began)
    note("seconds, 10 starts", case, "StepMix", end - middle)
    ours = step_time(own, data)
    theirs = min(peer_step_time(peer, data) for _ in range(5))
    note("processor ms per step", case, "ours", 1e3 * ours)
    note("processor ms per step", case, "StepMix", 1e3 * theirs)
    note("times faster per step", case, "ours", theirs / ours)


def step_time(model: ExchangeableMixture, data: np.ndarray, steps: int = 60) -> float:
    """Return the time that a step of EM takes: of a long run less that of a short one.

    The least of five times counts of both, since other programs make times longer.
    """
    found = []
    for n in (5, 5 + steps):
        times = []
        for _ in range(5):
            fresh = ExchangeableMixture(
                3, kinds=model.kinds, tol=0.0, max_iter=n, random_state=1, n_jobs=1
            )
            began = time.process_time()
            fresh.fit(data)
            times.append(time.process_time() - began)
        found.append((min(times), fresh.n_iter_))
    (short, few), (long, many) = found
    return (long - short) / max(many - few, 1)


def peer_step_time(peer: StepMix, data: np.ndarray, steps: int = 20) -> float:
    """Return the time that a step of StepMix's EM takes."""
    values = np.asarray(data, dtype=np.float64)
    began = time.process_time()
    for _ in range(steps):
        peer._m_step(values, np.exp(peer._e_step(values)[1]))
    return (time.process_time() - began) / steps


def survey(n: int = 1500) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a made table of all kinds: four groups of people, two of which belong to a class."""
    rng = np.random.default_rng(3)
    group = rng.integers(0, 4, n)
    columns: dict[str, object] = {}
    for j in range(4):
        shares = rng.dirichlet(np.ones(4), 4).cumsum(axis=1)
        codes = (rng.random(n)[:, None] > shares[group]).sum(axis=1).clip(0, 3)
        columns[f"city {j}"] = pd.Categorical.from_codes(codes, list("abcd"))
        grade = rng.binomial(4, rng.uniform(0.2, 0.8, 4)[group])
        columns[f"grade {j}"] = pd.Categorical.from_codes(grade, list("12345"), ordered=True)
        columns[f"income {j}"] = np.exp(rng.normal(rng.normal(0, 0.5, 4)[group], 0.7))
        columns[f"visits {j}"] = rng.poisson(rng.gamma(2, 1, 4)[group]).astype(float)
    return pd.DataFrame(columns), group % 2


def numbers_of(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with one column per category, for peers that take numbers alone."""
    return pd.get_dummies(table, dtype=float)


def bundled(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a table of scikit-learn's, as it comes, or the made one."""
    if name == "survey":
        return survey()
    found = getattr(datasets, f"load_{name}")(as_frame=True)
    return found.data, found.target.to_numpy()


def joint_accuracy(X: pd.DataFrame, y: np.ndarray, other: pd.DataFrame, truth: np.ndarray) -> float:
    """Return the accuracy of a mixture in which the class is a nominal column."""
    model = ExchangeableMixture(20, random_state=0)
    model.fit(X.assign(label=[f"class {label}" for label in y]))
    unknown = other.assign(label=None)
    found = [answer.most_probable for answer in model.conditional("label", unknown)]
    return float(np.mean(np.array(found) == [f"class {label}" for label in truth]))


def classification() -> None:
    """Compare classifiers on tables with holes."""
    for name in SETS:
        X, y = bundled(name)
        for share in (0.0, 0.3, 0.6):
            scores: dict[str, list[float]] = {}
            for seed in SPLITS:
                holes = np.random.default_rng(seed).random(X.shape) < share
                parts = train_test_split(
                    X.mask(holes), y, test_size=0.5, random_state=seed, stratify=y
                )
                train, test, labels, truth = parts
                peers = {
                    "ours": ExchangeableClassifier(),
                    "ours, columns together": ExchangeableClassifier(blocks="full"),
                    "ours, hybrid": ExchangeableClassifier(training="hybrid"),
                    "ours, hybrid, columns together": ExchangeableClassifier(
                        training="hybrid", blocks="full"
                    ),
                    "ours, chosen": ExchangeableClassifier(training="chosen"),
                    "gradient boosting": HistGradientBoostingClassifier(
                        categorical_features="from_dtype", random_state=0
                    ),
                    "logistic regression": make_pipeline(
                        SimpleImputer(), StandardScaler(), LogisticRegression(max_iter=2000)
                    ),
                    "Gaussian naive Bayes": make_pipeline(SimpleImputer(), GaussianNB()),
                }
                coded, coded_test = numbers_of(train), numbers_of(test)
                for who, model in peers.items():
                    rows = (coded, coded_test) if who in NUMBERS_ONLY else (train, test)
                    worth = model.fit(rows[0], labels).score(rows[1], truth)
                    scores.setdefault(who, []).append(worth)
                joint = joint_accuracy(train, labels, test, truth)
                scores.setdefault("ours, 20 components", []).append(joint)
            for who, values in scores.items():
                note("accuracy", f"{name}, {share:.0%} missing", who, np.mean(values))


def imputation() -> None:
    """Compare imputers, on the mean of several draws of what is missing."""
    for name in SETS[:3]:
        X = bundled(name)[0]
        errors: dict[str, list[float]] = {}
        for seed in DRAWS:
            holes = np.random.default_rng(seed).random(X.shape) < 0.3
            for who, values in _filled(X.mask(holes)).items():
                error = (np.asarray(values) - X.to_numpy()) / X.std().to_numpy()
                errors.setdefault(who, []).append(float(np.sqrt((error[holes] ** 2).mean())))
        for who, each in errors.items():
            note("imputation error", f"{name}, 30% missing", who, np.mean(each))


def _filled(holed: Any) -> dict[str, Any]:
    """Return a table with holes as each imputer fills it in."""
    shared: dict[str, Any] = {"random_state": 0, "kinds": "continuous"}
    mixture = ExchangeableMixture(min(20, len(holed) // 10), **shared)
    together = ExchangeableMixture(5, blocks="full", **shared)
    chosen = ExchangeableImputer(method="marginal", random_state=0)
    return {
        "ours, imputer's default": chosen.fit_transform(holed),
        "ours": mixture.fit(holed).impute(holed, "marginal"),
        "ours, columns together": together.fit(holed).impute(holed, "marginal"),
        "IterativeImputer": IterativeImputer(random_state=0).fit_transform(holed),
        "KNNImputer": KNNImputer().fit_transform(holed),
        "means": SimpleImputer().fit_transform(holed),
    }


def density() -> None:
    """Compare the density of held-out rows with that of Gaussian mixtures, chosen by BIC."""
    for name in SETS[:3]:
        X = bundled(name)[0]
        scores: dict[str, list[float]] = {}
        for seed in range(2):
            train, test = train_test_split(X, test_size=0.5, random_state=seed)
            ours = ExchangeableDensity(n_init=5, max_components=20, random_state=0)
            scores.setdefault("ours, searched", []).append(ours.fit(train).score(test))
            scale = StandardScaler().fit(train)
            slopes = -np.log(scale.scale_).sum()  # densities are per unit of the table's columns
            rows, other = scale.transform(train), scale.transform(test)
            for form in ("full", "diag"):
                tried = [
                    GaussianMixture(k, covariance_type=form, random_state=0, n_init=3).fit(rows)
                    for k in range(1, 7)
                ]
                best = min(tried, key=lambda model: model.bic(rows))
                worth = best.score(other) + slopes
                scores.setdefault(f"GaussianMixture, {form}", []).append(worth)
        for who, values in scores.items():
            note("held-out log-density", name, who, np.mean(values))


def synthetic() -> None:
    """Train a classifier on rows drawn from a table, and test it on real ones."""
    for name in SETS:
        X, y = bundled(name)
        scores: dict[str, list[float]] = {}
        for seed in range(2):
            parts = train_test_split(X, y, test_size=0.5, random_state=seed, stratify=y)
            train, test, labels, truth = parts
            table = train.assign(label=[f"class {label}" for label in labels])
            named = np.array([f"class {label}" for label in truth])
            made = {"real rows": table}
            mixture = ExchangeableMixture(20, random_state=0).fit(table)
            made["rows drawn, 20 components"] = mixture.sample(len(table), random_state=0)[0]
            found = ExchangeableDensity(n_init=3, max_components=20, random_state=0).fit(table)
            made["rows drawn, searched density"] = found.sample(len(table), random_state=0)[0]
            for who, rows in made.items():
                model = HistGradientBoostingClassifier(
                    categorical_features="from_dtype", random_state=0
                )
                model.fit(rows.drop(columns="label"), rows["label"].astype(str))
                worth = float(np.mean(model.predict(test) == named))
                scores.setdefault(who, []).append(worth)
        for who, values in scores.items():
            note("accuracy of boosting", name, who, np.mean(values))


def words() -> tuple[sp.csr_array, np.ndarray, sp.csr_array, np.ndarray]:
    """Return the word counts of 20 Newsgroups, training and test documents, and their groups."""
    data = fetch_classification("20newsgroups")
    counter = CountVectorizer(vocabulary=list(data.feature_names))
    X, test = (
        sp.csr_array(counter.transform([strip_posting(text) for text in documents]).astype(float))
        for documents in (data.documents_train, data.documents_test)
    )
    return X, data.y_train, test, data.y_test


def timed(case: str, who: str, model: object, data: tuple) -> None:
    """Fit a classifier of words, and note its accuracy and the processor time of its fit."""
    X, y, test, truth = data
    began = time.process_time()
    model.fit(X, y)
    spent = time.process_time() - began
    note("accuracy", case, who, model.score(test, truth))
    note("processor seconds", case, who, spent)


def text() -> None:
    """Compare generative classifiers of word counts."""
    data = words()
    X, y = data[:2]
    case = "20 Newsgroups, counts"
    timed(case, "MultinomialNB", MultinomialNB(), data)
    timed(case, "ComplementNB", ComplementNB(), data)
    kept, held = train_test_split(np.arange(len(y)), test_size=0.2, random_state=0, stratify=y)
    worth = {}
    for pooling in (10.0, 100.0, 1000.0, 10000.0):
        urns = ExchangeableClassifier("polya", blocks="full", kinds="count", pooling=pooling)
        worth[pooling] = urns.fit(X[kept], y[kept]).score(X[held], y[held])
        who = f"Dirichlet-multinomial, pooling {pooling:g}"
        note("accuracy, held-out training rows", case, who, worth[pooling])
    best = max(worth, key=worth.get)
    urns = ExchangeableClassifier("polya", blocks="full", kinds="count", pooling=best)
    timed(case, "ours, Dirichlet-multinomial", urns, data)
    independent = ExchangeableClassifier(kinds="count")
    timed(case, "ours, independent negative binomials", independent, data)


def hybrid_text() -> None:
    """Compare hybrid training on word counts and on the presence of words."""
    X, y, test, truth = words()
    hybrid = ExchangeableClassifier(kinds="count", training="hybrid")
    timed("20 Newsgroups, counts", "ours, hybrid", hybrid, (X, y, test, truth))
    seen, other = ((each > 0).astype(np.uint8) for each in (X, test))
    hybrid = ExchangeableClassifier(training="hybrid")
    timed("20 Newsgroups, presence", "ours, hybrid", hybrid, (seen, y, other, truth))


def text_scores() -> None:
    """Sum scores of counts and of presence, by scales that suit other held-out documents."""
    X, y = words()[:2]
    kept, held = train_test_split(np.arange(len(y)), test_size=0.2, random_state=0, stratify=y)
    seen = (X > 0).astype(float)
    common = np.flatnonzero(np.bincount(seen[kept].indices, minlength=X.shape[1]) > 1)
    urns = ExchangeableClassifier("polya", blocks="full", kinds="count", pooling=1e4)
    scores = {
        "multinomial, presence": _said(MultinomialNB(alpha=0.1), seen, y, kept, held),
        "complement, presence": _said(ComplementNB(alpha=0.1), seen, y, kept, held),
        "logistic, presence": _said(
            LogisticRegression(C=0.5, max_iter=40, tol=1e-3), seen[:, common], y, kept, held
        ),
        "urns, counts": _said(urns, X, y, kept, held),
    }
    names = list(scores)
    for chosen in (names[:3], names, names[2:]):
        loss, accuracy = _summed(np.stack([scores[name] for name in chosen]), y[held])
        note("log-loss, held-out training rows", "20 Newsgroups", " + ".join(chosen), loss)
        note("accuracy, held-out training rows", "20 Newsgroups", " + ".join(chosen), accuracy)


def _said(model: Any, X: Any, y: np.ndarray, kept: np.ndarray, held: np.ndarray) -> np.ndarray:
    """Return what a classifier of some documents says of others, centred."""
    model.fit(X[kept], y[kept])
    joint = getattr(model, "predict_joint_log_proba", model.predict_log_proba)(X[held])
    return joint - joint.mean(axis=1, keepdims=True)


def _summed(scores: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return log-loss and accuracy of scores whose scales suit the other half of the rows."""
    order = np.random.default_rng(0).permutation(y.size)
    found = []
    for fitted, judged in ((order[::2], order[1::2]), (order[1::2], order[::2])):

        def said(z: np.ndarray, rows: np.ndarray) -> np.ndarray:
            joint = np.tensordot(np.exp(z[: len(scores)]), scores[:, rows], 1) + z[len(scores) :]
            return log_softmax(joint, axis=1)

        def loss(z: np.ndarray, rows: np.ndarray = fitted) -> float:
            ridge = 1e-4 * float((z[len(scores) :] ** 2).sum())
            return ridge - float(said(z, rows)[np.arange(rows.size), y[rows]].mean())

        start = np.concatenate([np.full(len(scores), -3.0), np.zeros(scores.shape[2])])
        z = minimize(loss, start, method="L-BFGS-B", options={"maxiter": 60}).x
        right = said(z, judged)
        found.append(
            (
                -right[np.arange(judged.size), y[judged]].mean(),
                (right.argmax(axis=1) == y[judged]).mean(),
            )
        )
    return tuple(np.mean(found, axis=0))


def large(n: int = 50_000) -> None:
    """Fit a large table of all kinds."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 8, n)
    columns: dict[str, object] = {}
    for j in range(100):
        shares = rng.dirichlet(np.ones(5), 8).cumsum(axis=1)
        codes = (rng.random(n)[:, None] > shares[group]).sum(axis=1).clip(0, 4)
        columns[f"category {j}"] = pd.Categorical.from_codes(codes, list("abcde"))
        columns[f"number {j}"] = rng.normal(rng.normal(size=8)[group], 1.0)
    for j in range(50):
        columns[f"count {j}"] = rng.poisson(rng.gamma(2, 2, 8)[group])
        columns[f"bit {j}"] = rng.random(n) < rng.random(8)[group]
    table = pd.DataFrame(columns)
    began, worked = time.perf_counter(), time.process_time()
    model = ExchangeableMixture(20, random_state=0).fit(table)
    case, who = "50,000 rows, 300 columns", "ours, 20 components"
    note("seconds", case, who, time.perf_counter() - began)
    note("processor seconds", case, who, time.process_time() - worked)
    note("iterations", case, who, model.n_iter_)


PARTS = {
    "classes": latent_classes,
    "classification": classification,
    "imputation": imputation,
    "density": density,
    "synthetic": synthetic,
    "text": text,
    "hybrid_text": hybrid_text,
    "text_scores": text_scores,
    "large": large,
}


def main() -> None:
    """Run all comparisons, or those that are named."""
    named = [name for name in sys.argv[1:] if name in PARTS]
    for name in named or PARTS:
        PARTS[name]()
        keep()


def keep() -> None:
    """Write the figures so far in place of old ones."""
    new = {row[:3]: row for row in ROWS}
    kept: list[tuple[str, ...]] = []
    if RESULTS.exists():
        with RESULTS.open(newline="") as file:
            kept = [tuple(row) for row in csv.reader(file)][1:]
    merged = {**{row[:3]: row for row in kept}, **new}
    with RESULTS.open("w", newline="") as file:
        csv.writer(file).writerows([("figure", "case", "who", "value"), *merged.values()])


if __name__ == "__main__":
    main()
