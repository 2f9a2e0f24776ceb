"""One cold start, in a process of its own: ``python benchmarks/cold_start.py mixture``.

Prints a JSON object: processor seconds, and of every function that was compiled how often, and how
long that took without the functions it calls. `bench_cold` runs it with an empty cache.
"""

import json
import sys
import time

BEGAN = time.process_time()


def rows():
    """Return 2,000 rows of 20 variables, the parity of their ones, and the rows with holes."""
    import numpy as np

    X = np.random.default_rng(0).integers(0, 2, size=(2000, 20))
    holed = np.where(np.random.default_rng(1).random(X.shape) < 0.3, np.nan, X)
    return X, X.sum(axis=1) % 2, holed


def mixture(X):
    """Return a fitted mixture."""
    from exchangeable import ExchangeableMixture

    return ExchangeableMixture(5, random_state=0).fit(X)


def classifier():
    """Fit a classifier and predict."""
    from exchangeable import ExchangeableClassifier

    X, y, _ = rows()
    assert ExchangeableClassifier().fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]) > 0.99


def density():
    """Search for a density."""
    from exchangeable import ExchangeableDensity

    families = ["urns", "tree", "weighted tree", "hidden tree"]
    ExchangeableDensity(families, random_state=0).fit(rows()[0])


QUESTIONS = {
    "marginals": lambda model, holed: model.marginals({0: 1, 3: 0}),
    "conditional": lambda model, holed: model.conditional([1, 2], {0: 1}),
    "information_gain": lambda model, holed: model.information_gain({0: 1}),
    "sample": lambda model, holed: model.sample(100),
    "score_samples": lambda model, holed: model.score_samples(holed[:100]),
    "impute": lambda model, holed: model.impute(holed[:100]),
}


def measured(work):
    """Return the processor seconds of some work, and what was compiled."""
    from numba.core import event  # not before: importing the library is measured, too

    found, under_way = {}, []

    class Compilations(event.Listener):
        """Notes each function's time, without that of the functions compiled for it."""

        def on_start(self, event):
            under_way.append([time.thread_time(), 0.0])

        def on_end(self, event):
            began, inner = under_way.pop()
            seconds = time.thread_time() - began
            if under_way:
                under_way[-1][1] += seconds
            function = event.data["dispatcher"].py_func
            name = f"{function.__module__}.{function.__name__}".removeprefix("exchangeable.")
            entry = found.setdefault(name, [0, 0.0])
            entry[0] += 1
            entry[1] += seconds - inner

    event.register("numba:compile", Compilations())
    began = time.process_time()
    work()
    return time.process_time() - began, found


def main() -> None:
    """Run one start and print what it took."""
    name = sys.argv[1]
    if name == "import":
        import sklearn.base

        began = time.process_time()
        from exchangeable import ExchangeableClassifier  # noqa: F401

        seconds, found = time.process_time() - began, {}
    elif name == "scikit-learn":
        import sklearn.base  # noqa: F401

        seconds, found = time.process_time() - BEGAN, {}
    elif name in QUESTIONS:
        X, _, holed = rows()
        model = mixture(X)
        seconds, found = measured(lambda: QUESTIONS[name](model, holed))
    else:
        starts = {
            "classifier": classifier,
            "mixture": lambda: mixture(rows()[0]),
            "mixture with NaN": lambda: mixture(rows()[2]),
            "density": density,
        }
        found = measured(starts[name])[1]
        seconds = time.process_time() - BEGAN
    print(json.dumps({"seconds": seconds, "compiled": found}))


if __name__ == "__main__":
    main()
