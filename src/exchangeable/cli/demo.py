"""`exchangeable demo`: what the library does, on data that needs no download."""

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from exchangeable import EVM, Count


@click.command()
def demo() -> None:
    """Show a short tour on data that needs no download."""
    console = Console()
    one_component(console)


def one_component(console: Console) -> None:
    """Fit one block of exchangeable variables and ask it questions."""
    console.rule("One block of exchangeable variables")
    console.print(
        "Ten light bulbs on two fuses: most nights nearly all are lit, some nights nearly none.\n"
        "Which bulb is which does not matter, how many are lit does."
    )
    rng = np.random.default_rng(0)
    lit = np.where(rng.random((500, 1)) < 0.7, 0.9, 0.1)
    X = (rng.random((500, 10)) < lit).astype(int)
    block = EVM(Count(10)).fit(X, alpha=0.1)
    independent = X.mean(axis=0)

    table = Table(
        "seen so far", "exchangeable block", "independent bulbs", title="P(bulb 9 is lit)"
    )
    for evidence in ({}, {0: 0}, {0: 0, 1: 0}, {0: 1, 1: 1}):
        seen = ", ".join(f"bulb {j} {'lit' if on else 'dark'}" for j, on in evidence.items())
        table.add_row(
            seen or "nothing", f"{block.conditional(evidence)[9]:.3f}", f"{independent[9]:.3f}"
        )
    console.print(table)
    x, log_probability = block.map({0: 0, 1: 0})
    console.print(f"Most probable night with bulbs 0 and 1 dark: {x.tolist()}")
    console.print(f"its log-probability: {log_probability:.3f}")
    console.print(f"One such night drawn at random: {block.sample(1, {0: 0, 1: 0}, 0)[0].tolist()}")
