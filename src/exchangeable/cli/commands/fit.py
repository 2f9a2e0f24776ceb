"""`exchangeable fit`: fit a model to a table and save it."""

import time
from typing import Any

import click

from exchangeable import save
from exchangeable.cli.blocks import block_option, blocks_of
from exchangeable.cli.errors import best_so_far, one_line
from exchangeable.cli.estimators import ESTIMATORS, STATISTICS, as_components, plan_of
from exchangeable.cli.options import (
    busy,
    data_argument,
    date_format_option,
    dates_option,
    dialect_options,
    drop_option,
    kind_option,
    levels_option,
    notes,
    seed_option,
)
from exchangeable.cli.preparing import prepare
from exchangeable.cli.texts import definitions, examples
from exchangeable.families import REGISTRY
from exchangeable.fitting.trainings import TRAINING
from exchangeable.runtime.text import printable
from exchangeable.structure.blocks import AUTO
from exchangeable.structure.learner import METHODS
from exchangeable.tables.delimited import Dialect
from exchangeable.tables.reading import counted, read_table
from exchangeable.tables.targets import UNLABELLED

FAMILIES = definitions(
    "Families, and which blocks each can have (the first is what 'auto' stands for):",
    {
        spec.name: f"{spec.summary}. Blocks: {', '.join(b for b in spec.blocks if b in METHODS)}"
        for spec in REGISTRY.values()
    },
)
EXAMPLES = examples(
    "fit survey.csv --target buys --output buys.exch",
    "fit survey.csv --target buys --id customer --drop 'date_*' --output buys.exch",
    "fit survey.csv --components auto --output groups.exch",
    "fit mails.csv --text body --target spam --training hybrid --output spam.exch",
    "fit words.npz --labels topics.txt --output topics.exch",
    "fit clicks.csv --estimator density --time-budget 60 --output clicks.exch",
    "fit - --components 10 --output groups.exch < clicks.csv",
)


@click.command(epilog=f"{FAMILIES}\n\n{EXAMPLES}")
@data_argument
@click.option("-o", "--output", required=True, metavar="MODEL", help="The model file to write.")
@click.option("--target", metavar="COLUMN", help="Column that holds the classes to predict.")
@click.option("--labels", metavar="FILE", help="File with one class per line, instead of --target.")
@click.option(
    "--unlabelled",
    type=click.Choice(UNLABELLED),
    help="What to do with rows whose target is empty: stop ('error', the default), leave them out, "
    "or learn from them without a class (semi-supervised).",
)
@click.option(
    "--text", metavar="COLUMN", help="Column that holds documents: each word becomes a variable."
)
@click.option(
    "--min-documents",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="With --text, leave out words that occur in fewer documents than this.",
)
@drop_option
@click.option(
    "--keep", multiple=True, metavar="PATTERN", help="Use these columns only; repeatable."
)
@click.option(
    "--id",
    "key",
    metavar="COLUMN",
    help="Column that identifies rows: it is not learned from, and 'predict' copies it.",
)
@click.option("--weights", metavar="COLUMN", help="Column that says how much each row counts.")
@dates_option
@date_format_option
@click.option(
    "--binarize",
    type=click.Choice(["never", "auto"]),
    default="never",
    show_default=True,
    help="Code columns that are not binary, one variable per category, numbers being on above the "
    "median; by default they are fitted as they are.",
)
@kind_option
@levels_option
@click.option(
    "--estimator",
    type=click.Choice(list(ESTIMATORS)),
    help="What to fit.  [default: classifier with --target or --labels, else mixture]",
)
@click.option(
    "--family",
    type=click.Choice(list(REGISTRY)),
    multiple=True,
    help="What each class or component is made of; see below. A density searches all that are "
    f"given.  [default: {next(iter(REGISTRY))}]",
)
@click.option(
    "--blocks",
    type=click.Choice([AUTO, *METHODS]),
    help=f"How variables are put into blocks; 'auto' is what suits the family.  [default: {AUTO}]",
)
@block_option
@click.option(
    "--training",
    type=click.Choice(TRAINING),
    help="What a classifier's parameters are chosen for: probable rows, or good predictions with "
    "the help of generative scores ('hybrid') or without; 'chosen' is what predicts held-out rows "
    f"best.  [default: {TRAINING[0]}]",
)
@click.option(
    "--class-weight",
    type=click.Choice(["balanced"]),
    help="Let the rows of each class count so that all classes weigh the same.",
)
@click.option("--alpha", type=float, help="Laplace smoothing.  [default: 0.1]")
@click.option(
    "--components",
    callback=as_components,
    metavar="N|auto",
    help="Number of components of a mixture; 'auto' compares several by BIC.  [default: what suits "
    "the family, 20 for most]",
)
@click.option(
    "--n-init",
    type=click.IntRange(1),
    help="Number of runs of EM from different starts, of which a mixture keeps the best and a "
    "density averages all.  [default: 1, for a density up to 64]",
)
@click.option(
    "--time-budget",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="For a density: the time that its fit may take.",
)
@click.option(
    "--statistic", type=click.Choice(list(STATISTICS)), help="Of an EVM.  [default: count]"
)
@seed_option
@dialect_options
@one_line
def fit(data: str, output: str, dialect: Dialect, **asked: Any) -> None:
    """Fit a model to the table DATA and write it to a file.

    With --target (or --labels) the model is a classifier, otherwise a mixture, which finds groups
    of similar rows without labels. DATA is CSV, TSV, Parquet, svmlight (its labels are the column
    'label') or a sparse matrix written by scipy.sparse.save_npz; '-' is standard input. Empty cells
    are treated as unknown. Ctrl-C ends a fit by EM early and saves the best model found so far.
    """
    supervised = asked["target"] is not None or asked["labels"] is not None
    _check_usage(asked, supervised)
    plan = plan_of(asked, supervised)
    with busy(f"reading {data}"):
        table = read_table(data, dialect)
        prepared = prepare(table, asked, plan, dialect)
    notes(table.name, [*table.notes, *prepared.notes])
    if asked["named_blocks"]:
        named = blocks_of(asked["named_blocks"], prepared.coding.variables)
        plan = plan._replace(options=plan.options | {"blocks": named})
    began = time.perf_counter()
    with best_so_far() as interrupted:
        model, selection = plan.fit(prepared.rows, prepared.y, prepared.weights, prepared.kinds)
    seconds = time.perf_counter() - began
    save(model, output, preprocessing=prepared.coding.to_json())
    if interrupted:
        raise KeyboardInterrupt(f"{output} holds the best model found so far")
    if selection is not None:
        tried = ", ".join(str(row.n_components) for row in selection.table)
        best = selection.best.n_components
        notes(
            output, [f"{best} components have the lowest {selection.criterion.upper()} of {tried}"]
        )
    facts = [
        counted(prepared.rows.shape[0], "row"),
        counted(len(prepared.coding.variables), "variable"),
    ]
    facts += [*_facts(model), f"{seconds:.1f} s"]
    click.echo(f"{printable(output)}: {', '.join(facts)}", err=True)


def _check_usage(asked: dict[str, Any], supervised: bool) -> None:
    """Reject options that cannot be combined."""
    if asked["target"] is not None and asked["labels"] is not None:
        raise click.UsageError("--target and --labels cannot be used together; give one of them")
    if asked["unlabelled"] is not None and not supervised:
        raise click.UsageError("--unlabelled is about classes; give them by --target or --labels")
    if asked["text"] is not None and (
        asked["drop"] or asked["keep"] or asked["kinds"] or asked["binarize"] != "never"
    ):
        raise click.UsageError(
            "--text uses only that column: --drop, --keep, --kind and --binarize have no effect; "
            "leave them out"
        )
    if asked["named_blocks"] and asked["blocks"] is not None:
        raise click.UsageError(
            "--block and --blocks cannot be used together: the columns that no --block names are "
            "put into blocks as suits the family"
        )
    if asked["text"] is None and asked["min_documents"] != 1:
        raise click.UsageError("--min-documents needs --text COLUMN")
    if asked["kinds"] and asked["binarize"] != "never":
        raise click.UsageError("--kind is for columns that are not coded; leave out --binarize")


def _facts(model: Any) -> list[str]:
    """Return a short description of a fitted model's structure."""
    model = getattr(model, "model_", model)
    if not hasattr(model, "partitions_"):
        return [f"{model.weights_.size:,} weights"]
    classes = hasattr(model, "classes_")
    plural, each = ("classes", "class") if classes else ("components", "component")
    blocks = model.n_blocks_
    return [f"{blocks.size:,} {plural}", f"{blocks.mean():.1f} blocks per {each}"]
