"""Handwritten digits by squares of pixels: place inside a model, beside blocks that know none.

``python benchmarks/images.py`` prints test accuracies on mnist (pixel > 0), 60,000 training rows,
with every pixel known and with half of them hidden when predicting.
"""

import time
from typing import Any

import numpy as np

from exchangeable import Count, ExchangeableClassifier, Pooled
from exchangeable.datasets import fetch_classification

SIDE = 28


def squares(size: int, statistic: Any) -> list[Any]:
    """Return blocks of the pixels of each square."""
    pixel = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
    corners = range(0, SIDE, size)
    starts = [(i, j) for i in corners for j in corners]
    return [(pixel[i : i + size, j : j + size].ravel(), statistic) for i, j in starts]


def main() -> None:
    """Print a table."""
    data = fetch_classification("mnist", download_if_missing=False)
    hidden = np.random.default_rng(0).random(data.X_test.shape) < 0.5
    half = np.where(hidden, np.nan, data.X_test)
    models = {
        "naive Bayes": ExchangeableClassifier(blocks="independent"),
        "blocks (the default)": ExchangeableClassifier(),
        "counts of 2 x 2 squares": ExchangeableClassifier(blocks=squares(2, Count(4))),
        "counts of 4 x 4 squares": ExchangeableClassifier(blocks=squares(4, Count(16))),
        "4 x 4 squares pooled by 2 x 2": ExchangeableClassifier(blocks=squares(4, Pooled(4, 2, 1))),
    }
    print("model | accuracy | half of the pixels hidden | seconds to fit")
    for name, model in models.items():
        begin = time.perf_counter()
        model.fit(data.X_train, data.y_train)
        seconds = time.perf_counter() - begin
        accuracy = model.score(data.X_test, data.y_test)
        with_holes = model.score(half[:2000], data.y_test[:2000])
        print(f"{name} | {accuracy:.4f} | {with_holes:.4f} | {seconds:.1f}", flush=True)


if __name__ == "__main__":
    main()
