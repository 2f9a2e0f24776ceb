"""Command groups: usage errors that are safe to print, and modules imported when needed."""

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from exchangeable.runtime.text import printable, printable_lines

INTERRUPTED = 130
"""The exit status of a command ended by Ctrl-C, by the convention of shells."""
UNFINISHED = "the command has not finished"


class Commands(click.Group):
    """Commands whose usage errors, which repeat user input, are escaped for the terminal."""

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """Read the arguments of the group itself."""
        with _escaped():
            return super().make_context(*arguments, **options)

    def invoke(self, context: click.Context) -> Any:
        """Read the arguments of a command and run it; Ctrl-C ends it with one line."""
        with _escaped():
            try:
                return super().invoke(context)
            except KeyboardInterrupt as interrupt:
                told = printable(str(interrupt)) or UNFINISHED
                click.echo(f"Interrupted: {told}", err=True)
                raise click.exceptions.Exit(INTERRUPTED) from None


@contextmanager
def _escaped() -> Iterator[None]:
    try:
        yield
    except click.ClickException as error:
        error.message = printable_lines(error.message)  # type: ignore[misc]
        raise


def interruptible() -> None:
    """Let Ctrl-C raise `KeyboardInterrupt`; before this, during imports, it ends the process."""
    if getattr(signal.getsignal(signal.SIGINT), "among_imports", False):
        signal.signal(signal.SIGINT, signal.default_int_handler)


class DeferredCommands(Commands):
    """Commands whose modules are imported when they are used, not when they are listed.

    Parameters
    ----------
    *arguments, **options
        Those of `click.Group`.
    modules : mapping from name to (module, text)
        The module of each command, and its description in the list of commands.
    """

    def __init__(
        self, *arguments: Any, modules: Mapping[str, tuple[str, str]], **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self._modules = modules

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(self._modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, None if there is none of this name."""
        if cmd_name not in self._modules:
            return None
        module = import_module(f"exchangeable.cli.commands.{self._modules[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name)
        interruptible()
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self._modules.items()])
