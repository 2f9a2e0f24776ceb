"""`exchangeable fit`: fit a model to a table and save it."""

import time
from typing import Any

import click
import numpy as np

from exchangeable import ExchangeableClassifier, ExchangeableMixture, save
from exchangeable.cli.errors import best_so_far, one_line
from exchangeable.cli.options import busy, data_argument, format_option, seed_option
from exchangeable.cli.texts import definitions, examples
from exchangeable.data.schema import KINDS
from exchangeable.families import REGISTRY
from exchangeable.fitting.hybrid.settings import TRAINING
from exchangeable.runtime.text import printable
from exchangeable.structure.blocks import AUTO
from exchangeable.structure.learner import METHODS
from exchangeable.tables.coding import learn_coding
from exchangeable.tables.raw import RawCoding
from exchangeable.tables.reading import TableData, read_labels, read_table
from exchangeable.tables.words import AnyCoding, SparseCoding, learn_words

FAMILIES = definitions(
    "Families, and which blocks each can have (the first is what 'auto' stands for):",
    {
        spec.name: f"{spec.summary}. Blocks: {', '.join(b for b in spec.blocks if b in METHODS)}"
        for spec in REGISTRY.values()
    },
)
EXAMPLES = examples(
    "fit survey.csv --target buys --output buys.exch",
    "fit survey.csv --drop name --binarize auto --output groups.exch",
    "fit mails.csv --text body --target spam --training hybrid --output spam.exch",
    "fit words.npz --labels topics.txt --output topics.exch",
    "fit - --components 10 --output groups.exch < clicks.csv",
)
MOST_CLASSES = 1000


@click.command(epilog=f"{FAMILIES}\n\n{EXAMPLES}")
@data_argument
@click.option("-o", "--output", required=True, metavar="MODEL", help="The model file to write.")
@click.option("--target", metavar="COLUMN", help="Column that holds the classes to predict.")
@click.option("--labels", metavar="FILE", help="File with one class per line, instead of --target.")
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
@click.option("--drop", multiple=True, metavar="COLUMN", help="Column to leave out; repeatable.")
@click.option(
    "--binarize",
    type=click.Choice(["never", "auto"]),
    default="never",
    show_default=True,
    help="Code columns that are not binary, one variable per category, numbers being on above the "
    "median; by default they are fitted as they are.",
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    metavar="COLUMN=KIND",
    help=f"What a column is: {', '.join(KINDS)}; repeatable. By default its values decide.",
)
@click.option(
    "--family",
    type=click.Choice(list(REGISTRY)),
    default=next(iter(REGISTRY)),
    show_default=True,
    help="What each class or component is made of; see below.",
)
@click.option(
    "--blocks",
    type=click.Choice([AUTO, *METHODS]),
    default=AUTO,
    show_default=True,
    help="How variables are put into blocks; 'auto' is what suits the family.",
)
@click.option(
    "--training",
    type=click.Choice(TRAINING),
    default=TRAINING[0],
    show_default=True,
    help="What a classifier's parameters are chosen for: probable rows, or good predictions with "
    "the help of generative scores ('hybrid') or without.",
)
@click.option("--alpha", type=float, default=0.1, show_default=True, help="Laplace smoothing.")
@click.option(
    "--components",
    type=click.IntRange(1),
    help="Number of components of a mixture.  [default: what suits the family, 20 for most]",
)
@click.option(
    "--n-init",
    type=click.IntRange(1),
    help="Number of runs of EM from different starts, for a mixture; the best is kept.  "
    "[default: 1]",
)
@seed_option
@format_option
@one_line
def fit(
    data: str,
    output: str,
    target: str | None,
    labels: str | None,
    text: str | None,
    min_documents: int,
    drop: tuple[str, ...],
    binarize: str,
    kinds: tuple[str, ...],
    family: str,
    blocks: str,
    training: str,
    alpha: float,
    components: int | None,
    n_init: int | None,
    seed: int | None,
    form: str | None,
) -> None:
    """Fit a model to the table DATA and write it to a file.

    With --target (or --labels) the model is a classifier, otherwise a mixture, which finds groups
    of similar rows without labels. DATA is CSV, TSV, Parquet, svmlight (its labels are the column
    'label') or a sparse matrix written by scipy.sparse.save_npz; '-' is standard input. Empty cells
    are treated as unknown. Ctrl-C ends the fit of a mixture early and saves the best found so far.
    """
    supervised = target is not None or labels is not None
    if target is not None and labels is not None:
        raise click.UsageError("--target and --labels cannot be used together; give one of them")
    for name, value in (("--components", components), ("--n-init", n_init), ("--seed", seed)):
        if supervised and value is not None:
            raise click.UsageError(
                f"{name} is for mixtures; leave it out, or leave out --target and --labels"
            )
    if not supervised and training != TRAINING[0]:
        raise click.UsageError(
            f"--training {training} predicts classes; give them by --target or --labels"
        )
    if text is not None and (drop or binarize != "never"):
        raise click.UsageError(
            "--text uses only that column, so --drop and --binarize have no effect; leave them out"
        )
    if text is None and min_documents != 1:
        raise click.UsageError("--min-documents needs --text COLUMN")
    with busy(f"reading {data}"):
        table = read_table(data, form)
        spec = REGISTRY[family]
        any_kind = spec.other_kinds is not None or len(spec.kinds) > 1
        coding = _coding(
            table, target, text, min_documents, drop, binarize, any_kind or bool(kinds)
        )
        rows = coding.rows(table)
    options: dict[str, Any] = {"family": family, "blocks": blocks, "alpha": alpha}
    if isinstance(coding, RawCoding):
        options["kinds"] = column_kinds(kinds)
    elif kinds:
        raise ValueError(
            "--kind is for columns that are not coded: leave out --binarize and --text"
        )
    began = time.perf_counter()
    model: Any
    interrupted: list[str] = []
    if supervised:
        y = _classes(table, target) if labels is None else read_labels(labels, table.n_rows)
        with busy("fitting"):
            model = ExchangeableClassifier(**options, training=training).fit(rows, y)
    else:
        options |= {"n_init": n_init or 1, "random_state": seed}
        with best_so_far() as interrupted:
            model = ExchangeableMixture(components, **options).fit(rows)
    seconds = time.perf_counter() - began
    save(model, output, preprocessing=coding.to_json())
    if interrupted:
        raise KeyboardInterrupt(f"{output} holds the best model found so far")
    plural, each = ("classes", "class") if supervised else ("components", "component")
    click.echo(
        f"{printable(output)}: {table.n_rows:,} rows, {len(coding.variables):,} variables, "
        f"{model.n_blocks_.size} {plural}, {model.n_blocks_.mean():.1f} blocks per {each}, "
        f"{seconds:.1f} s",
        err=True,
    )


def _coding(
    table: TableData,
    target: str | None,
    text: str | None,
    min_documents: int,
    drop: tuple[str, ...],
    binarize: str,
    any_kind: bool,
) -> AnyCoding:
    if not table.n_rows:
        raise ValueError(f"{table.name}: it has no rows; a model needs at least one")
    if target is not None:
        table.column(target)
    if table.frame is None:
        if text is not None or drop or binarize != "never":
            raise ValueError(
                f"{table.name}: --text, --drop and --binarize need named columns, which a sparse "
                "file does not have; leave them out"
            )
        return SparseCoding(int(table.matrix.shape[1]), target)
    if text is not None:
        return learn_words(table, text, target, min_documents)
    return learn_coding(table, target, drop, binarize, any_kind)


def column_kinds(kinds: tuple[str, ...]) -> dict[str, str] | None:
    """Return what --kind says, by column."""
    told = {}
    for text in kinds:
        name, equals, kind = text.rpartition("=")
        if not equals or kind not in KINDS:
            raise ValueError(
                f"--kind {text!r}: expected COLUMN=KIND, a kind being one of {', '.join(KINDS)}"
            )
        told[name] = kind
    return told or None


def _classes(table: TableData, target: str | None) -> Any:
    """Return the column of classes, refusing empty cells and columns that are no classes."""
    assert target is not None
    column = table.column(target)
    values = column if isinstance(column, np.ndarray) else column.to_numpy()
    if not isinstance(column, np.ndarray):
        empty = np.flatnonzero(column.isna().to_numpy())
        if empty.size:
            raise ValueError(
                f"{table.name}: row {empty[0] + 1}, column {target!r} is empty; every row needs a "
                "class, so fill it in or delete the row"
            )
        if column.dtype.kind not in "iufb":
            values = np.array([str(value) for value in column], dtype=object)
    n_classes = len(set(values.tolist()))
    measured = values.dtype.kind == "f" and (values != np.round(values)).any()
    if measured or n_classes > MOST_CLASSES:
        raise ValueError(
            f"{table.name}: column {target!r} has {n_classes:,} different values, which does not "
            f"look like classes; give a column with at most {MOST_CLASSES:,} classes"
        )
    return values
