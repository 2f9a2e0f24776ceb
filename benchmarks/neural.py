"""Neural mixtures on the density benchmark.

``python benchmarks/neural.py SET ... [--component tree] [--fits 4] [--seed 0] [--settle 0]``
fits one neural mixture to the training rows of each data set with the default settings, or the
average of several, stopped by the validation rows; ``--settle 0`` leaves the components where the
network has put them. It prints the average log-likelihood of validation and test rows,
and the seconds of the fit: by the clock, and of the processor. Test rows are scored once.
"""

import argparse
import time

from exchangeable import ExchangeableMixture, Neural
from exchangeable.datasets import fetch_density


def main() -> None:
    """Fit and score each data set."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sets", nargs="+", metavar="SET")
    parser.add_argument("--component", default="independent")
    parser.add_argument("--fits", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--settle", type=int, default=Neural().settle)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    for name in options.sets:
        data = fetch_density(name)
        model = ExchangeableMixture(
            family=Neural(options.component, settle=options.settle),
            n_init=options.fits,
            combine="average" if options.fits > 1 else "best",
            random_state=options.seed,
            device=options.device,
        )
        clock, processor = time.perf_counter(), time.process_time()
        model.fit(data.train, X_valid=data.valid)
        clock, processor = time.perf_counter() - clock, time.process_time() - processor
        print(
            f"{name}, neural {options.component}, {options.fits} fit(s): valid "
            f"{model.score(data.valid):.3f}, test {model.score(data.test):.3f}, "
            f"{model.weights_.size:,} components, {clock:.0f} s (processor {processor:.0f} s)",
            flush=True,
        )


if __name__ == "__main__":
    main()
