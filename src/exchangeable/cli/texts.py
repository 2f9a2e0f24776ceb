"""Parts of help texts that several commands share; this module imports nothing else."""

import textwrap
from collections.abc import Mapping

HELP_WIDTH = 78


def examples(*lines: str) -> str:
    """Return the end of a help text: example commands, one per line."""
    return "\n".join(["\b", "Examples:", *(f"  exchangeable {line}" for line in lines)])


def definitions(title: str, entries: Mapping[str, str]) -> str:
    """Return a part of a help text: names and their meanings, one per line.

    >>> definitions("Drinks:", {"tea": "leaves, steeped in hot water"}).splitlines()[1:]
    ['Drinks:', '  tea  leaves, steeped in hot water']
    """
    width = max(map(len, entries)) + 2
    lines = [
        textwrap.fill(
            text,
            HELP_WIDTH,
            initial_indent=f"  {name:{width}}",
            subsequent_indent=" " * (width + 2),
        )
        for name, text in entries.items()
    ]
    return "\n".join(["\b", title, *lines])
