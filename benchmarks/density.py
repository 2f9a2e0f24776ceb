"""The paper's density experiment (Tables 4 and 5), compared with the published figures.

``python benchmarks/density.py [SET ...]`` fits mixtures of 20 components with the paper's settings
(alpha = 0.1, ten random starts, the one with the highest training log-likelihood is kept) and
several kinds of blocks, from five seeds each. It prints the average log-likelihood of validation
and test rows, averaged over the seeds, next to the paper's test figure, and writes
``results/density.csv``. These fits do not use the validation and test rows. The paper's EM stops at
an average gain of 1e-3, the package's default is 1e-4: the sweep is run with both.

Two more lines per set are the default blocks and naive Bayes with more starts, where the start and
the smoothing (`ALPHAS`) are chosen on the validation rows; test rows are scored once, for the
choice. ``--only MODEL ...`` runs some of the lines and leaves the others in the file as they are.
"""

import argparse
import csv
import time
import warnings
from pathlib import Path

import numpy as np

from exchangeable import ExchangeableMixture
from exchangeable.datasets import fetch_density

RESULTS = Path(__file__).parent / "results" / "density.csv"
# The paper's Table 5 (MEVM, NB) and Table 4 (blocks).
PAPER = {
    "nltcs": (-6.04, -6.04, 8.8),
    "msnbc": (-6.23, -6.71, 15.9),
    "kdd": (-2.13, -2.15, 15.8),
    "plants": (-14.86, -15.10, 15.9),
    "baudio": (-40.63, -40.69, 13.7),
    "jester": (-53.22, -53.19, 10.4),
    "bnetflix": (-57.84, -57.87, 14.8),
    "msweb": (-9.96, -9.96, 21.3),
    "book": (-34.63, -34.80, 12.4),
    "cwebkb": (-157.21, -158.01, 10.6),
    "cr52": (-86.98, -87.32, 16.7),
    "c20ng": (-152.69, -152.78, 17.9),
}
MODELS = {
    "sweep, tol 1e-3": {"blocks": "welch", "tol": 1e-3},
    "sweep": {"blocks": "welch"},
    "evidence": {},
    "evidence, rows": {"init": "rows"},
    "naive Bayes": {"blocks": "independent"},
    "naive Bayes, rows": {"blocks": "independent", "init": "rows"},
}
CHOSEN = {
    "evidence, chosen": {},
    "naive Bayes, chosen": {"blocks": "independent"},
}
ALPHAS, STARTS, SEEDS = (0.01, 0.03, 0.1, 0.3), 30, 5
COLUMNS = (
    "set", "model", "train", "valid", "test", "sd_of_seeds", "paper_test", "difference",
    "sd_train_of_starts", "blocks", "paper_blocks", "iterations", "seconds", "chosen",
)  # fmt: skip


def fitted(data, X_valid=None, **settings):
    """Return a mixture of 20 components and the seconds its fit took."""
    mixture = ExchangeableMixture(20, binarize=None, **{"init": "random", **settings})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        mixture.fit(data.train, X_valid=X_valid)
        return mixture, time.perf_counter() - start


def repeated(data, **settings):
    """Return the mixtures of several seeds, the average seconds per fit, and no choice."""
    fits = [fitted(data, n_init=10, random_state=seed, **settings) for seed in range(SEEDS)]
    return [mixture for mixture, _ in fits], np.mean([seconds for _, seconds in fits]), ""


def chosen(data, **settings):
    """Return the mixture with the best validation score, seconds of all fits, and its alpha."""
    settings |= {"n_init": STARTS, "random_state": 0}
    fits = [(*fitted(data, data.valid, alpha=alpha, **settings), alpha) for alpha in ALPHAS]
    mixture, _, alpha = max(fits, key=lambda fit: fit[0].score(data.valid))
    return [mixture], sum(seconds for _, seconds, _ in fits), f"alpha={alpha}"


def line_of(name, model, data, mixtures, seconds, settings):
    """Return the table's line about the fits of one model."""
    paper = PAPER[name][1 if model.startswith("naive") else 0]
    tests = [mixture.score(data.test) for mixture in mixtures]
    ends = [[history[-1] for history in mixture.history_] for mixture in mixtures]
    n_iter = [sum(len(history) - 1 for history in mixture.history_) for mixture in mixtures]

    def mean(numbers, digits):
        return f"{np.mean(list(numbers)):.{digits}f}"

    return (
        name, model, mean((m.log_likelihood_ for m in mixtures), 4),
        mean((m.score(data.valid) for m in mixtures), 4), mean(tests, 4),
        f"{np.std(tests, ddof=1):.4f}" if len(tests) > 1 else "", paper,
        f"{(np.mean(tests) - paper) / abs(paper):+.2%}", mean(map(np.std, ends), 3),
        mean((m.n_blocks_.mean() for m in mixtures), 1),
        PAPER[name][2] if model.startswith("sweep") else "", mean(n_iter, 0), f"{seconds:.1f}",
        settings,
    )  # fmt: skip


def known_lines():
    """Return the lines of the existing file, by set and model."""
    if not RESULTS.exists():
        return {}
    with RESULTS.open(newline="") as file:
        return {(line[0], line[1]): line for line in list(csv.reader(file))[1:]}


def main() -> None:
    """Fit the chosen models to the chosen sets."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=list(PAPER), metavar="SET")
    parser.add_argument("--only", nargs="+", choices=[*MODELS, *CHOSEN])
    wanted = parser.parse_args()
    lines = known_lines()
    for name in wanted.sets:
        data = fetch_density(name)
        for model, settings in {**MODELS, **CHOSEN}.items():
            if wanted.only and model not in wanted.only:
                continue
            fits = (chosen if model in CHOSEN else repeated)(data, **settings)
            lines[name, model] = line_of(name, model, data, *fits)
            print("  ".join(f"{cell!s:>9}" for cell in lines[name, model]), flush=True)
    order = [(name, model) for name in PAPER for model in (*MODELS, *CHOSEN)]
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("w", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *(lines[key] for key in order if key in lines)])


if __name__ == "__main__":
    main()
