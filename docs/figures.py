"""Draw the pictures of README and docs: ``python docs/figures.py`` (needs the `plot` extra).

``python docs/figures.py rasch`` draws that of the page on Rasch models alone, ``classes`` those of
the page on latent classes, whose table it prints, ``page`` and ``kinds`` those of a model's page.
Those of pages need playwright and Chromium.
"""

import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits

from exchangeable import ExchangeableClassifier, ExchangeableMixture, RaschModel
from exchangeable.classes import analyse
from exchangeable.datasets import fetch_classification
from exchangeable.plotting import ItemCurvesDisplay, ProfileDisplay
from exchangeable.report import write_report
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


def latent_classes() -> None:
    """Analyse the survey of the page on latent classes, and draw what the page shows."""
    page = (Path(__file__).parent / "guide" / "latent_classes.md").read_text(encoding="utf-8")
    made: dict[str, Any] = {}
    exec(re.findall(r"```python\n(.*?)```", page, re.S)[0], made)
    options = {"blocks": "independent", "n_init": 10, "random_state": 0}
    tried = {"n_components": range(1, 6), "bootstrap": 499}
    selection = ExchangeableMixture.select(made["survey"], **tried, **options)
    sys.stdout.write(selection.to_markdown())
    axes = plt.subplots(figsize=(6.4, 3.9), layout="constrained")[1]
    selection.plot(axes).figure.savefig(IMAGES / "classes_selection.png", dpi=110)
    found = analyse(
        ExchangeableMixture,
        made["survey"],
        n_components=range(1, 6),
        sample_weight=made["weight"],
        covariates=made["pd"].DataFrame({"age": (made["age"] - 45) / 10}),
        outcome=made["pd"].DataFrame({"income": made["income"]}),
        n_draws=1000,
        **options,
    )
    names = ["garden", "travel", "screen"]
    display = ProfileDisplay.from_errors(found.errors, names=names)
    display.figure_.savefig(IMAGES / "classes_profiles.png", dpi=110)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "report.html")
        write_classes_report(found, path, title="Latent classes of survey.csv")
        _photograph(path, IMAGES / "classes_report.png")


def page_of_digits() -> None:
    """Draw the page about a classifier of digits, with some pixels known."""
    X, y = load_digits(return_X_y=True)
    names = [f"row {i}, column {j}" for i in range(8) for j in range(8)]
    model = ExchangeableClassifier().fit(X > 7, y)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "report.html")
        write_report(model, path, names=names, title="Handwritten digits")
        _photograph(path, IMAGES / "report.png", {3: 0, 10: 1, 12: 1})


def page_of_people() -> None:
    """Draw the page about a mixture of columns of every kind, with a city and visits known."""
    people = pd.read_csv(Path(__file__).parents[1] / "examples" / "people.csv")
    options = {"kinds": {"age": "continuous"}, "n_init": 10, "random_state": 0}
    model = ExchangeableMixture(2, **options).fit(people)
    columns = model.columns_["columns"]
    place = [column["name"] for column in columns]
    levels = columns[place.index("city")]["levels"]
    known = {place.index("city"): levels.index("Rome"), place.index("visits"): 6}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "report.html")
        write_report(model, path, title="People")
        _photograph(path, IMAGES / "report_kinds.png", known)


def _photograph(path: Path, image: Path, known: Mapping[int, int] | None = None) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        options = {"executable_path": shutil.which("chromium"), "args": ["--no-sandbox"]}
        browser = driver.chromium.launch(**options)
        page = browser.new_page(viewport={"width": 1080, "height": 860}, reduced_motion="reduce")
        page.goto(path.as_uri())
        for variable, value in (known or {}).items():
            page.evaluate(
                "([j, x]) => { const c = panel.model.columns[j];"
                " panel.set(j, c.kind === 'continuous' ? c.apply(x) : x); }",
                [variable, value],
            )
        page.screenshot(path=str(image))
        browser.close()


PICTURES = {
    "words": block_of_words,
    "rasch": rasch_items,
    "classes": latent_classes,
    "page": page_of_digits,
    "kinds": page_of_people,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or PICTURES:
        PICTURES[name]()
