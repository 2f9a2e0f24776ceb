"""The `exchangeable` command: one small module per sub-command."""

import click

from exchangeable import __version__
from exchangeable.cli.answer import impute, predict, sample, score
from exchangeable.cli.datasets import datasets
from exchangeable.cli.demo import demo
from exchangeable.cli.errors import Commands
from exchangeable.cli.fit import fit
from exchangeable.cli.inspect import info, inspect
from exchangeable.cli.options import examples
from exchangeable.cli.query import query
from exchangeable.cli.reproduce import reproduce

EPILOG = examples(
    "fit survey.csv --target buys --output buys.exch",
    "predict buys.exch new.csv --output answers.csv",
    "query buys.exch --given 'tea=1,milk=0'",
    "inspect buys.exch --output report.html",
)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]}, epilog=EPILOG)
@click.version_option(__version__, prog_name="exchangeable")
def main() -> None:
    """Tractable probabilistic models made of exchangeable variables."""


for command in (
    fit,
    predict,
    score,
    sample,
    impute,
    query,
    inspect,
    info,
    datasets,
    demo,
    reproduce,
):
    main.add_command(command)
