"""`ExchangeableClassifier` compared with `BernoulliNB` and with memory bandwidth.

1. ``fit`` and ``predict_log_proba`` on 20 Newsgroups (20 classes) and MNIST, with the peer measured
   in the same run; both must reach their known accuracy first.
2. Compile time: the first fit of a fresh process, with the cache of compiled kernels cold and warm.
3. How much accuracy `partial_fit` loses compared with `fit`.
4. The share of checking a sparse matrix in the fit that it guards.
5. The paper's 10^6 x 1,000 Boolean functions: accuracy, peak memory, share of memory bandwidth.

``python benchmarks/bench_classifier.py [PART ...]`` runs some parts: peers, compile, partial_fit,
checks, boolean, or the name of one Boolean function.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array
from sklearn.naive_bayes import BernoulliNB
from timing import best_of

from exchangeable import ExchangeableClassifier, ExchangeableMixture
from exchangeable.arrays import check_sparse
from exchangeable.datasets import fetch_classification, fetch_density, make_boolean

KNOWN = {"20newsgroups": (0.645, 0.537), "mnist": (0.8615, 0.8415)}


def against_bernoulli_nb(name: str, dtype: type | None = None) -> None:
    """Print the ratio of our seconds to the peer's, after checking both accuracies."""
    data = fetch_classification(name)
    X, X_test = data.X_train, data.X_test
    if dtype is not None:
        X, X_test = X.astype(dtype), X_test.astype(dtype)
    seconds = []
    for model, known in zip(
        (ExchangeableClassifier(), BernoulliNB(alpha=0.1)), KNOWN[name], strict=True
    ):
        accuracy = model.fit(X, data.y_train).score(X_test, data.y_test)
        assert abs(accuracy - known) < 0.002, (model, accuracy)
        fit = best_of(lambda m=model: m.fit(X, data.y_train), 5)
        predict = best_of(lambda m=model: m.predict_log_proba(X_test), 5)
        seconds.append(fit + predict)
        print(
            f"{name:13} {X.dtype!s:8} {type(model).__name__:23} fit {fit * 1e3:7.1f} ms   "
            f"predict {predict * 1e3:6.1f} ms   accuracy {accuracy:.4f}"
        )
    print(f"{name:13} {X.dtype!s:8} ratio {seconds[0] / seconds[1]:.2f}")


def bandwidth(X: np.ndarray) -> float:
    """Return the bytes per second that NumPy reads in one pass over the matrix."""
    words = X.reshape(-1).view(np.uint64)
    return X.nbytes / best_of(lambda: words.max(), 3)


FUNCTIONS = ("parity", "counting", "threshold", "exact", "conjunction", "disjunction")


def memory(field: str) -> int:
    """Return the bytes of resident memory: the current value (VmRSS) or the peak (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(field)).split()[1])


def boolean_function(function: str) -> None:
    """Fit rows of the paper's size; memory is the peak during the fit minus that before it."""
    X, y = make_boolean(function, 1_000_000, 1_000, random_state=0)
    X_test, y_test = make_boolean(function, 10_000, 1_000, random_state=1)
    ExchangeableClassifier().fit(X_test, y_test)
    Path("/proc/self/clear_refs").write_text("5")  # forget earlier peaks
    before = memory("VmRSS")
    start = time.perf_counter()
    model = ExchangeableClassifier().fit(X, y)
    seconds = time.perf_counter() - start
    extra = memory("VmHWM") - before
    share = X.nbytes / seconds / bandwidth(X)
    print(
        f"{function:12} 10^6 x 1,000  accuracy {model.score(X_test, y_test):.4f}   "
        f"blocks {model.n_blocks_.tolist()}   fit {seconds:5.2f} s   "
        f"memory {1 + extra / X.nbytes:.2f} x input   "
        f"{X.nbytes / seconds / 1e9:.1f} GB/s, {share:.0%} of one pass over the input by NumPy"
    )


def boolean_functions() -> None:
    """Run each function in its own process, so that its peak memory is not that of another."""
    for function in FUNCTIONS:
        subprocess.run([sys.executable, __file__, function], check=True)


FIRST_FIT = """
import time
start = time.perf_counter()
import numpy as np
from exchangeable import ExchangeableClassifier
imported = time.perf_counter()
X = np.random.default_rng(0).integers(0, 2, (100, 20)).astype(np.uint8)
ExchangeableClassifier().fit(X, X[:, 0]).predict(X)
fitted = time.perf_counter()
print(f"import {imported - start:.2f} s, first fit and predict {fitted - imported:.2f} s")
"""


def compile_time() -> None:
    """Time fresh processes, first with an empty cache of compiled kernels, then with a full one."""
    with tempfile.TemporaryDirectory() as cache:
        for state in ("cold", "warm"):
            done = subprocess.run(
                [sys.executable, "-c", FIRST_FIT],
                env=os.environ | {"NUMBA_CACHE_DIR": cache},
                capture_output=True,
                text=True,
                check=True,
            )
            print(f"fresh process, cache {state}: {done.stdout.strip()}")


def partial_fit() -> None:
    """Compare batches with a single fit on the test rows; no setting is tuned on them."""
    for name in ("20newsgroups", "reuters8", "webkb4", "mnist"):
        data = fetch_classification(name)
        order = np.random.default_rng(0).permutation(len(data.y_train))
        X, y = data.X_train[order], data.y_train[order]
        whole = ExchangeableClassifier().fit(X, y).score(data.X_test, data.y_test)
        scores = []
        for share in (0.05, 0.1, 0.25, 0.5):
            model, classes = ExchangeableClassifier(), np.unique(y)
            size = int(share * len(y))
            for start in range(0, len(y), size):
                part = slice(start, start + size)
                model.partial_fit(X[part], y[part], classes=classes)
            scores.append(f"{share:.0%}: {model.score(data.X_test, data.y_test):.4f}")
        print(f"{name:13} fit {whole:.4f}   partial_fit, blocks from the first {', '.join(scores)}")


def processor_time(function: Callable[[], object], times: int) -> float:
    """Return the least processor time of several calls."""
    taken = []
    for _ in range(times):
        begin = time.process_time()
        function()
        taken.append(time.process_time() - begin)
    return min(taken)


def checks() -> None:
    """Compare `check_sparse` with fits, by processor time."""
    text = fetch_classification("20newsgroups")
    words = csr_array(fetch_density("c20ng").train)
    fits = {
        "20newsgroups, classifier": (
            text.X_train,
            lambda: ExchangeableClassifier().fit(text.X_train, text.y_train),
        ),
        "c20ng, mixture of 20": (
            words,
            lambda: ExchangeableMixture(20, random_state=0).fit(words),
        ),
    }
    for name, (X, fit) in fits.items():
        check, whole = processor_time(lambda X=X: check_sparse(X), 20), processor_time(fit, 3)
        print(
            f"{name:25} {X.nnz:9,} entries: check {check * 1e3:.2f} ms, fit {whole * 1e3:6.1f} ms, "
            f"{check / whole:.2%}"
        )


def peers() -> None:
    """Compare with `BernoulliNB` on text and on images of two types."""
    against_bernoulli_nb("20newsgroups")
    against_bernoulli_nb("mnist")
    against_bernoulli_nb("mnist", float)


PARTS = {
    "peers": peers,
    "compile": compile_time,
    "partial_fit": partial_fit,
    "checks": checks,
    "boolean": boolean_functions,
}


if __name__ == "__main__" and sys.argv[-1] in FUNCTIONS:
    boolean_function(sys.argv[-1])
elif __name__ == "__main__":
    for part in [p for p in sys.argv[1:] if p in PARTS] or PARTS:
        PARTS[part]()
