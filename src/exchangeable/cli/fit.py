"""`exchangeable fit`: a model from a table."""

import time
from typing import Any

import click
import numpy as np

from exchangeable import ExchangeableClassifier, ExchangeableMixture, save
from exchangeable.cli.errors import one_line
from exchangeable.cli.options import busy, data_argument, examples, format_option, seed_option
from exchangeable.tables.coding import learn_coding
from exchangeable.tables.reading import TableData, read_labels, read_table
from exchangeable.tables.words import AnyCoding, SparseCoding, learn_words

EPILOG = examples(
    "fit survey.csv --target buys --output buys.exch",
    "fit survey.csv --drop name --binarize auto --output groups.exch",
    "fit mails.csv --text body --target spam --output spam.exch",
    "fit words.npz --labels topics.txt --output topics.exch",
    "fit - --components 10 --output groups.exch < clicks.csv",
)
MOST_CLASSES = 1000


@click.command(epilog=EPILOG)
@data_argument
@click.option("-o", "--output", required=True, metavar="MODEL", help="The model file to write.")
@click.option("--target", metavar="COLUMN", help="Column of classes to predict.")
@click.option("--labels", metavar="FILE", help="File with one class a line, instead of --target.")
@click.option("--text", metavar="COLUMN", help="Column of documents: each word is a variable.")
@click.option(
    "--min-documents",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="With --text, leave out words of fewer documents.",
)
@click.option("--drop", multiple=True, metavar="COLUMN", help="Column to leave out; repeatable.")
@click.option(
    "--binarize",
    type=click.Choice(["never", "auto"]),
    default="never",
    show_default=True,
    help="Code columns that are not binary: categories one by one, numbers at the median.",
)
@click.option(
    "--structure",
    type=click.Choice(["auto", "evidence", "welch", "independent", "full"]),
    default="auto",
    show_default=True,
    help="How variables are put into blocks.",
)
@click.option(
    "--urn",
    type=click.Choice(["uniform", "weighted"]),
    default="uniform",
    show_default=True,
    help="Whether the variables of a block are all alike or have weights.",
)
@click.option(
    "--dependence",
    type=click.Choice(["independent", "tree", "hidden"]),
    default="independent",
    show_default=True,
    help="A tree over the variables or blocks of each class, or one over hidden states.",
)
@click.option("--alpha", type=float, default=0.1, show_default=True, help="Smoothing.")
@click.option(
    "--components", type=click.IntRange(1), help="Components of a mixture.  [default: 20]"
)
@click.option("--restarts", type=click.IntRange(1), help="Runs of EM of a mixture.  [default: 1]")
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
    structure: str,
    urn: str,
    dependence: str,
    alpha: float,
    components: int | None,
    restarts: int | None,
    seed: int | None,
    form: str | None,
) -> None:
    """Fit a model to the table DATA and write it to a file.

    With --target (or --labels) it is a classifier, otherwise a mixture that finds groups by itself.
    DATA is CSV, TSV, Parquet, svmlight (its labels are the column 'label') or a sparse matrix of
    scipy.sparse.save_npz; '-' is standard input. Cells that are empty are not known.
    """
    supervised = target is not None or labels is not None
    if target is not None and labels is not None:
        raise click.UsageError("--target and --labels exclude each other")
    for name, value in (("--components", components), ("--restarts", restarts), ("--seed", seed)):
        if supervised and value is not None:
            raise click.UsageError(f"{name} is for mixtures, which have no --target or --labels")
    if text is not None and (drop or binarize != "never"):
        raise click.UsageError("--text uses no other column; --drop and --binarize go without it")
    if text is None and min_documents != 1:
        raise click.UsageError("--min-documents goes with --text")
    with busy(f"reading {data}"):
        table = read_table(data, form)
        coding = _coding(table, target, text, min_documents, drop, binarize)
        rows = coding.rows(table)
    options: dict[str, Any] = {
        "structure": structure,
        "urn": urn,
        "dependence": dependence,
        "alpha": alpha,
    }
    began = time.perf_counter()
    model: Any
    if supervised:
        y = _classes(table, target) if labels is None else read_labels(labels, table.n_rows)
        with busy("fitting"):
            model = ExchangeableClassifier(**options).fit(rows, y)
    else:
        k = min(20, table.n_rows) if components is None else components
        options |= {"n_init": restarts or 1, "random_state": seed}
        model = ExchangeableMixture(k, **options).fit(rows)
    seconds = time.perf_counter() - began
    save(model, output, preprocessing=coding.to_json())
    kind = f"{model.n_blocks_.size} {'classes' if supervised else 'components'}"
    click.echo(
        f"{output}: {table.n_rows:,} rows, {len(coding.variables):,} variables, {kind}, "
        f"{model.n_blocks_.mean():.1f} blocks each, {seconds:.1f} s",
        err=True,
    )


def _coding(
    table: TableData,
    target: str | None,
    text: str | None,
    min_documents: int,
    drop: tuple[str, ...],
    binarize: str,
) -> AnyCoding:
    if not table.n_rows:
        raise ValueError(f"{table.name}: it has no rows")
    if target is not None:
        table.column(target)
    if table.frame is None:
        if text is not None or drop or binarize != "never":
            raise ValueError(f"{table.name}: --text, --drop and --binarize need named columns")
        return SparseCoding(int(table.matrix.shape[1]), target)
    if text is not None:
        return learn_words(table, text, target, min_documents)
    return learn_coding(table, target, drop, binarize)


def _classes(table: TableData, target: str | None) -> Any:
    """Return the column of classes, refusing one with gaps or with numbers that are measured."""
    assert target is not None
    column = table.column(target)
    values = column if isinstance(column, np.ndarray) else column.to_numpy()
    if not isinstance(column, np.ndarray):
        empty = np.flatnonzero(column.isna().to_numpy())
        if empty.size:
            raise ValueError(
                f"{table.name}: row {empty[0] + 1}, column {target!r} is empty; every row needs a "
                "class"
            )
        if column.dtype.kind not in "iufb":
            values = np.array([str(value) for value in column], dtype=object)
    n_classes = len(set(values.tolist()))
    measured = values.dtype.kind == "f" and (values != np.round(values)).any()
    if measured or n_classes > MOST_CLASSES:
        raise ValueError(
            f"{table.name}: column {target!r} has {n_classes} different values; a target is a "
            "column of a few classes"
        )
    return values
