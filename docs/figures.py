"""Draw the pictures of README and docs: ``python docs/figures.py`` (needs the `plot` extra)."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from exchangeable import ExchangeableClassifier, RaschModel
from exchangeable.datasets import fetch_classification
from exchangeable.plotting import ItemCurvesDisplay

IMAGES = Path(__file__).parent / "images"


def poisson_binomial(p: np.ndarray) -> np.ndarray:
    """Return the distribution of the number of ones of independent variables."""
    counts = np.ones(1)
    for chance in p:
        counts = np.convolve(counts, [1 - chance, chance])
    return counts


def block_of_words() -> None:
    """Show one block of one class of Reuters-8, as it is, as a block, and as naive Bayes has it."""
    data = fetch_classification("reuters8")
    model = ExchangeableClassifier().fit(data.X_train, data.y_train)
    y = list(data.target_names).index("earn")
    rows = data.X_train[data.y_train == y]
    # Among the blocks of ten and more words, the one whose words occur most often.
    blocks = [b for b in range(model.n_blocks_[y]) if model.partitions_[y][b].size >= 10]
    means = [rows[:, model.partitions_[y][b]].mean() for b in blocks]
    b = blocks[int(np.argmax(means))]
    words = model.partitions_[y][b]
    counts = np.asarray(rows[:, words].sum(axis=1)).ravel()
    seen = np.bincount(counts, minlength=words.size + 1) / counts.size
    p = np.asarray(rows[:, words].mean(axis=0)).ravel()
    independent = poisson_binomial(p)
    shown = np.arange(words.size + 1)

    figure, axes = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
    axes.bar(
        shown, seen, color="#c9d3df", width=0.9, label=f"{counts.size:,} documents on earnings"
    )
    axes.plot(
        shown, model.count_probabilities_[y][b], "o-", color="#b3432b", ms=4, label="one block"
    )
    axes.plot(shown, independent, "s--", color="#3b5b92", ms=4, label="naive Bayes")
    sample = ", ".join(str(data.feature_names[j]) for j in words[:6])
    axes.set_xlabel(f"how many of these {words.size} words a document contains: {sample}, …")
    axes.set_ylabel("share of documents")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    IMAGES.mkdir(exist_ok=True)
    figure.savefig(IMAGES / "block_of_words.png", dpi=130)


def rasch_items() -> None:
    """Show the curves of the items of `guide/rasch.md`."""
    rng = np.random.default_rng(0)
    names = ["add", "subtract", "double", "halve", "multiply", "divide", "percent", "ratio"]
    difficulty = np.array([-1.6, -1.1, -0.7, -0.2, 0.3, 0.7, 1.1, 1.5])
    ability = rng.normal(0.3, 1.1, size=(1200, 1))
    solved = 1.0 * (rng.random((1200, 8)) < 1 / (1 + np.exp(difficulty - ability)))
    test = pd.DataFrame(solved, columns=names).mask(rng.random(solved.shape) < 0.1)
    display = ItemCurvesDisplay.from_estimator(RaschModel().fit(test))
    IMAGES.mkdir(exist_ok=True)
    display.figure_.savefig(IMAGES / "rasch_items.png", dpi=110)


if __name__ == "__main__":
    block_of_words()
    rasch_items()
