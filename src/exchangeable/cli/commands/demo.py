"""`exchangeable demo`: a short tour of the library on data that needs no download."""

import time
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import BernoulliNB

from exchangeable import EVM, Count, ExchangeableClassifier, ExchangeableMixture
from exchangeable.cli.errors import one_line
from exchangeable.cli.texts import examples
from exchangeable.datasets import make_boolean
from exchangeable.report import write_report


@click.command(epilog=examples("demo", "demo --output tour.html"))
@click.option(
    "-o",
    "--output",
    default="demo-report.html",
    show_default=True,
    metavar="FILE",
    help="HTML page to write at the end.",
)
@one_line
def demo(output: str) -> None:
    """Show a short tour on data that needs no download, and write an HTML page to explore."""
    console = Console()
    one_block(console)
    classifiers(console)
    mixtures(console)
    page(console, output)


def one_block(console: Console) -> None:
    """Fit one block of exchangeable variables and ask it questions."""
    console.rule("One block of exchangeable variables")
    console.print(
        "Ten light bulbs on one fuse box: on most nights nearly all are lit, on some nights nearly "
        "none. It does not matter which bulbs are lit, only how many."
    )
    rng = np.random.default_rng(0)
    lit = np.where(rng.random((500, 1)) < 0.7, 0.9, 0.1)
    X = (rng.random((500, 10)) < lit).astype(int)
    block = EVM(Count(10)).fit(X, alpha=0.1)
    independent = X.mean(axis=0)

    table = Table(
        "known so far", "exchangeable block", "independent bulbs", title="P(bulb 9 is lit)"
    )
    for evidence in ({}, {0: 0}, {0: 0, 1: 0}, {0: 1, 1: 1}):
        known = ", ".join(f"bulb {j} {'lit' if on else 'dark'}" for j, on in evidence.items())
        table.add_row(
            known or "nothing", f"{block.marginals(evidence)[9]:.3f}", f"{independent[9]:.3f}"
        )
    console.print(table)
    x, log_probability = block.map({0: 0, 1: 0})
    console.print(f"Most probable night with bulbs 0 and 1 dark: {x.tolist()}")
    console.print(f"Its log-probability: {log_probability:.3f}")
    console.print(
        f"One such night, drawn at random: {block.sample(1, {0: 0, 1: 0}, 0)[0].tolist()}"
    )


def classifiers(console: Console) -> None:
    """Compare with naive Bayes on the paper's Boolean functions and on handwritten digits."""
    console.rule("Classification: exchangeable blocks compared with naive Bayes")
    table = Table(title="accuracy (seconds to fit)")
    for heading in ("data", "exchangeable blocks", "naive Bayes", "blocks per class"):
        table.add_column(heading, justify="left" if heading == "data" else "right", no_wrap=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        names = ("parity", "counting", "threshold", "exact", "digits")
        task = progress.add_task("compiling (only the first time)", total=len(names))
        warm_up()
        for name in names:
            progress.update(task, description=name)
            X, X_test, y, y_test = _load(name)
            cells = []
            ours, naive_bayes = ExchangeableClassifier(), BernoulliNB(alpha=0.1)
            for model in (ours, naive_bayes):
                start = time.perf_counter()
                model.fit(X, y)
                seconds = time.perf_counter() - start
                cells.append(f"{model.score(X_test, y_test):.3f} ({seconds:.2f})")
            table.add_row(name, *cells, f"{ours.n_blocks_.mean():.0f}")
            progress.advance(task)
    console.print(table)
    console.print(
        "The first four are Boolean functions of how many of 1,000 variables are on (parity: is it "
        "odd?), with 20,000 training rows and 10,000 test rows. Only a model that can count learns "
        "them. Digits are scikit-learn's 8 x 8 images, each pixel on or off."
    )


def mixtures(console: Console) -> None:
    """Estimate the density of unlabelled digits, and draw new ones."""
    console.rule("Density: digits without labels")
    X, X_test, _, _ = _load("digits")
    table = Table(title="mixtures of 10 components")
    for heading in ("components made of", "log-likelihood per test digit", "blocks"):
        table.add_column(heading, justify="left" if "made" in heading else "right")
    with console.status("structural EM"):
        for blocks in ("evidence", "independent"):
            mixture = ExchangeableMixture(10, blocks=blocks, n_init=4, random_state=0).fit(X)
            made_of = "exchangeable blocks" if blocks == "evidence" else "independent pixels"
            table.add_row(
                made_of, f"{mixture.score(X_test):.2f}", f"{mixture.n_blocks_.mean():.0f}"
            )
            if blocks == "evidence":
                drawn, _ = mixture.sample(4, random_state=1)
    console.print(table)
    console.print("Four digits drawn from the blocks:")
    for line in np.concatenate(drawn.reshape(4, 8, 8), axis=1):
        pieces = np.split(line, 4)
        console.print("   ".join("".join("##" if on else " ." for on in p) for p in pieces))


def page(console: Console, output: str) -> None:
    """Write the page about a classifier of digits, and print its path."""
    console.rule("A page to explore")
    X, _, y, _ = _load("digits")
    names = [f"row {j // 8}, column {j % 8}" for j in range(64)]
    write_report(
        ExchangeableClassifier().fit(X, y), output, names=names, title="Handwritten digits"
    )
    console.print("Set pixels and watch the probabilities of the digits change. Open:")
    console.print(str(Path(output).resolve()), soft_wrap=True, highlight=False, markup=False)


def warm_up() -> None:
    """Compile the kernels for packed rows, so that the times shown do not include compilation."""
    for n_variables in (8, 70):
        X = (np.arange(50 * n_variables).reshape(50, -1) % 7 < 3).astype(np.uint8)
        ExchangeableClassifier().fit(X, X[:, 0]).predict(X)


def _load(name: str) -> list[Any]:
    if name == "digits":
        digits = load_digits()
        data = ((digits.data > 7).astype(np.uint8), digits.target)
    else:
        data = make_boolean(name, 30_000, 1_000, random_state=0)
    return list(train_test_split(*data, test_size=1 / 3, random_state=0))
