"""Errors and warnings as a single line, and the option that shows tracebacks instead."""

import functools
import sys
import warnings
from collections.abc import Callable
from typing import Any, TextIO

import click

from exchangeable.cli.options import debug_option

EXPECTED = (ValueError, TypeError, OSError, MemoryError, AttributeError, RuntimeError)


def one_line(command: Callable[..., Any]) -> Callable[..., Any]:
    """Make a command report what goes wrong in one line, unless ``--debug`` is given."""

    @debug_option
    @functools.wraps(command)
    def wrapped(*arguments: Any, debug: bool, **options: Any) -> Any:
        before = warnings.showwarning
        warnings.showwarning = _show_warning
        try:
            return command(*arguments, **options)
        except BrokenPipeError:
            raise
        except EXPECTED as error:
            if debug:
                raise
            text = " ".join(str(error).split()) or type(error).__name__
            raise click.ClickException(text) from error
        finally:
            warnings.showwarning = before

    return wrapped


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    click.echo(f"Warning: {' '.join(str(message).split())}", file=sys.stderr)
