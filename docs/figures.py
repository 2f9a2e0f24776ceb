"""Draw the pictures of README and docs: ``python docs/figures.py`` (needs the `plot` extra).

``python docs/figures.py classes`` draws those of the page on latent classes alone and prints its
table; the picture of its report needs playwright and Chromium.
"""

import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from exchangeable import ExchangeableClassifier, ExchangeableMixture
from exchangeable.classes import analyse
from exchangeable.datasets import fetch_classification
from exchangeable.plotting import ProfileDisplay
from exchangeable.report.classes import write_classes_report

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


def latent_classes() -> None:
    """Analyse the survey of the page on latent classes, and draw what the page shows."""
    page = (Path(__file__).parent / "guide" / "latent_classes.md").read_text(encoding="utf-8")
    made: dict[str, Any] = {}
    exec(re.findall(r"```python\n(.*?)```", page, re.S)[0], made)
    found = analyse(
        ExchangeableMixture,
        made["survey"],
        n_components=range(1, 6),
        sample_weight=made["weight"],
        covariates=made["pd"].DataFrame({"age": (made["age"] - 45) / 10}),
        outcome=made["pd"].DataFrame({"income": made["income"]}),
        bootstrap=499,
        n_draws=1000,
        blocks="independent",
        n_init=10,
        random_state=0,
    )
    sys.stdout.write(found.selection.to_markdown())
    axes = plt.subplots(figsize=(6.4, 3.9), layout="constrained")[1]
    found.selection.plot(axes).figure.savefig(IMAGES / "classes_selection.png", dpi=110)
    display = ProfileDisplay.from_errors(found.errors)
    display.figure_.savefig(IMAGES / "classes_profiles.png", dpi=110)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "report.html")
        write_classes_report(found, path, title="Latent classes of survey.csv")
        _photograph(path, IMAGES / "classes_report.png")


def _photograph(path: Path, image: Path) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        options = {"executable_path": shutil.which("chromium"), "args": ["--no-sandbox"]}
        browser = driver.chromium.launch(**options)
        page = browser.new_page(viewport={"width": 1080, "height": 860})
        page.goto(path.as_uri())
        page.screenshot(path=str(image))
        browser.close()


if __name__ == "__main__":
    if sys.argv[1:] != ["classes"]:
        block_of_words()
    latent_classes()
