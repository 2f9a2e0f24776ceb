"""Fits to rows with holes, and passes over chunks, each against its limit.

``python benchmarks/run.py holes`` deletes 30 % of the training entries and compares, in processor
seconds of one thread, best of three:

* structural EM with and without holes, per iteration and for whole fits of 25 iterations;
* weighted urns with and without holes, 25 iterations on jester;
* the passes that evidence merging makes over chunks, counted.

First it checks that fits to rows with holes have the log-likelihood that their own queries report.
"""

import time
import warnings

import numpy as np

from exchangeable import ExchangeableClassifier, ExchangeableMixture
from exchangeable.datasets import fetch_density

SETS = ("plants", "jester", "bnetflix")
SHARE = 0.3
ITERATIONS = 25


def punched(X):
    """Return the rows with some of the entries deleted."""
    X = np.asarray(X, dtype=np.float64)
    return np.where(np.random.default_rng(0).random(X.shape) < SHARE, np.nan, X)


def fitted(X, max_iter, **options):
    """Return a mixture after some iterations, and the processor seconds that it took."""
    model = ExchangeableMixture(
        20, tol=0.0, max_iter=max_iter, init="rows", random_state=1, n_jobs=1, **options
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        model.fit(X)
    return model, time.process_time() - start


def costs(X, **options):
    """Return the seconds of a whole fit, and per iteration."""
    whole, few = [], []
    for _ in range(3):
        few.append(fitted(X, 1, **options)[1])
        model, seconds = fitted(X, ITERATIONS, **options)
        whole.append(seconds)
    return min(whole), (min(whole) - min(few)) / max(model.n_iter_ - 1, 1)


def check(X):
    """Compare the log-likelihood that EM reports with that of the rows."""
    model = fitted(X[:500], 3, blocks="welch")[0]
    np.testing.assert_allclose(model.history_[0][-1], model.score(X[:500]), rtol=1e-9)


class Counted:
    """Rows in chunks that count the passes made over them."""

    def __init__(self, X):
        self.X, self.passes = X, 0

    def chunks(self):
        """Yield the rows, 20,000 at a time."""
        self.passes += 1
        for start in range(0, len(self.X), 20_000):
            yield self.X[start : start + 20_000]


def merging():
    """Return the passes of a fit with evidence merging, and how often its rate was right."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 100_000)
    means = np.tile(rng.uniform(0.02, 0.43, (4, 20)), 25)
    source = Counted((rng.random((y.size, 500)) < means[y]).astype(np.uint8))
    model = ExchangeableClassifier(blocks="evidence").fit(source, y)
    return source.passes, float((model.predict(source.X) == y).mean())


def main():
    """Print every ratio."""
    for name in SETS:
        X = np.asarray(fetch_density(name, download_if_missing=False).train, dtype=np.float64)
        holed = punched(X)
        check(holed)
        for blocks in ("welch", "evidence"):
            one, one_step = costs(X, blocks=blocks)
            two, two_step = costs(holed, blocks=blocks)
            print(
                f"{name:9} {blocks:9} complete {one:6.2f} s ({1e3 * one_step:6.1f} ms per step)"
                f"   30 % missing {two:6.2f} s ({1e3 * two_step:6.1f} ms)   ratio {two / one:5.2f}"
                f" ({two_step / one_step:5.2f})",
                flush=True,
            )
        if name == "jester":
            one, one_step = costs(X, family="urns")
            two, two_step = costs(holed, family="urns")
            print(
                f"{name:9} urns      complete {one:6.2f} s ({1e3 * one_step:6.1f} ms per step)"
                f"   30 % missing {two:6.2f} s ({1e3 * two_step:6.1f} ms)   ratio {two / one:5.2f}",
                flush=True,
            )
    passes, accuracy = merging()
    print(f"evidence merging in chunks: {passes} passes, accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
