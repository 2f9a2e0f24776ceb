"""The `exchangeable` command: one small module per sub-command, imported when used."""

import click

from exchangeable.cli.groups import DeferredCommands
from exchangeable.cli.texts import examples

COMMANDS = {
    "classes": ("classes", "Find latent classes in the table DATA, and report about them."),
    "datasets": ("datasets", "List the data sets, fetch them, or show their folder."),
    "demo": ("demo", "Show a short tour on data that needs no download."),
    "fit": ("fit", "Fit a model to the table DATA and write it to a file."),
    "impute": ("answer", "Fill the empty cells of DATA."),
    "info": ("inspect", "Show what a model file contains."),
    "inspect": ("inspect", "Show the blocks of a model, or write a page to explore."),
    "predict": ("answer", "Predict the class or component of every row of DATA."),
    "query": ("query", "Answer questions given what is known."),
    "rasch": ("rasch", "Estimate items and persons of the test in DATA, and report."),
    "reproduce": ("reproduce", "Run the paper's experiments and compare the figures."),
    "sample": ("answer", "Draw new rows from a model."),
    "score": ("answer", "Measure how well a model fits DATA."),
    "warmup": ("warmup", "Compile everything ahead, for images and clusters."),
}
"""The module of each command, and its description in the list of commands."""
EPILOG = examples(
    "fit survey.csv --target buys --output buys.exch",
    "predict buys.exch new.csv --output answers.csv",
    "query buys.exch --given 'tea=1,milk=0'",
    "inspect buys.exch --output report.html",
)


@click.group(
    cls=DeferredCommands,
    modules=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EPILOG,
)
@click.version_option(package_name="exchangeable", prog_name="exchangeable")
def main() -> None:
    """Tractable probabilistic models made of exchangeable variables."""
