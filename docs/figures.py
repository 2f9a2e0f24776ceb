"""Draw the pictures of README and docs: ``python docs/figures.py`` (needs the `plot` extra)."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from exchangeable import ExchangeableClassifier
from exchangeable.datasets import fetch_classification

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


if __name__ == "__main__":
    block_of_words()
