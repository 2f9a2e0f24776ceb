"""From the option ``--block COLUMNS=STATISTIC`` to blocks with statistics."""

from collections.abc import Sequence
from typing import Any

import click

from exchangeable.structure.statistic_blocks import BY_NAME
from exchangeable.tables.layout import matching

block_option = click.option(
    "--block",
    "named_blocks",
    multiple=True,
    metavar="COLUMNS=STATISTIC",
    help="Columns whose order matters, by names or patterns separated by commas, and what of them "
    f"does: {', '.join(BY_NAME)}; of several, separated by '|', the evidence chooses one. "
    "Repeatable; the other columns are put into blocks as usual.",
)


def blocks_of(asked: Sequence[str], names: Sequence[str]) -> list[tuple[list[int], list[str]]]:
    """Return the numbers of the variables of each block, in their order, and its statistics.

    Parameters
    ----------
    asked : sequence of str
        The options given by the user.
    names : sequence of str
        The variables.

    Examples
    --------
    >>> blocks_of(["h*=runs|count"], ["city", "h1", "h2"])
    [([1, 2], ['runs', 'count'])]
    """
    number = {name: position for position, name in enumerate(names)}
    return [_block(text, number) for text in asked]


def _block(text: str, number: dict[str, int]) -> Any:
    columns, equals, statistics = text.rpartition("=")
    if not equals:
        raise click.UsageError(f"--block {text!r} has no '='; expected COLUMNS=STATISTIC")
    words = [word.strip() for word in statistics.split("|")]
    for word in words:
        if word not in BY_NAME:
            raise click.UsageError(
                f"--block {text!r}: {word!r} is not a statistic; expected one of "
                f"{', '.join(BY_NAME)}"
            )
    variables = list[int]()
    for pattern in columns.split(","):
        found = matching(pattern.strip(), list(number))
        if not found:
            raise click.UsageError(f"--block {text!r}: there is no variable {pattern.strip()!r}")
        variables += [number[name] for name in found]
    return variables, words
