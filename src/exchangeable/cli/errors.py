"""Errors, warnings and interrupts in a single line; ``--debug`` shows tracebacks instead."""

import functools
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import click

from exchangeable.cli.options import debug_option
from exchangeable.runtime.interrupts import InterruptedFitWarning
from exchangeable.runtime.text import printable, printable_lines
from exchangeable.tables.problems import TableError

EXPECTED = (ValueError, TypeError, OSError, MemoryError, AttributeError, RuntimeError)


def one_line(command: Callable[..., Any]) -> Callable[..., Any]:
    """Make a command report errors in one line, unless ``--debug`` is given."""

    @debug_option
    @functools.wraps(command)
    def wrapped(*arguments: Any, debug: bool, **options: Any) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always", InterruptedFitWarning)
                warnings.showwarning = _show_warning
                return command(*arguments, **options)
        except BrokenPipeError:
            raise
        except EXPECTED as error:
            if debug:
                raise
            raise click.ClickException(_told(error)) from error

    return wrapped


def _told(error: Exception) -> str:
    """Return an error in one line, or all problems of a table in one line each."""
    if isinstance(error, TableError):
        return printable_lines(str(error))
    return printable(" ".join(str(error).split())) or type(error).__name__


@contextmanager
def collected() -> Iterator[Counter[str]]:
    """Collect warnings, with their number, for a command that makes many fits."""
    told, show = Counter[str](), warnings.showwarning

    def note(message: Warning | str, category: type[Warning], *place: Any) -> None:
        if issubclass(category, InterruptedFitWarning):
            show(message, category, *place)
        told[printable(" ".join(str(message).split()))] += 1

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = note  # type: ignore[assignment]
        yield told


@contextmanager
def best_so_far() -> Iterator[list[str]]:
    """Let a command continue with the best model found so far when its fit is interrupted.

    Yields a list that an interrupt makes non-empty; the command should then save the model and
    raise ``KeyboardInterrupt`` with what it has saved.
    """
    interrupted = list[str]()
    show = warnings.showwarning

    def note(message: Warning | str, category: type[Warning], *place: Any) -> None:
        if issubclass(category, InterruptedFitWarning):
            interrupted.append(str(message))
        elif not interrupted:
            show(message, category, *place)

    warnings.showwarning = note  # type: ignore[assignment]
    try:
        yield interrupted
    finally:
        warnings.showwarning = show


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    if issubclass(category, InterruptedFitWarning):
        raise KeyboardInterrupt  # a command that uses the best model so far is in `best_so_far`
    click.echo(f"Warning: {printable(' '.join(str(message).split()))}", file=sys.stderr)
