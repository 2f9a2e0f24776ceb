"""The `exchangeable` command: one small module per sub-command."""

import click

from exchangeable import __version__
from exchangeable.cli.datasets import datasets
from exchangeable.cli.demo import demo
from exchangeable.cli.reproduce import reproduce


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="exchangeable")
def main() -> None:
    """Tractable probabilistic models made of exchangeable variables."""


main.add_command(datasets)
main.add_command(demo)
main.add_command(reproduce)
