"""Preparing a table for an estimator: coding, rows, classes and weights, or all its problems."""

from typing import Any, NamedTuple

import numpy as np

from exchangeable.cli.estimators import Plan
from exchangeable.data.columns.column import KINDS
from exchangeable.tables.delimited import Dialect
from exchangeable.tables.layout import Choice, Layout, matching
from exchangeable.tables.learning import learn_coding, usual_kinds
from exchangeable.tables.ordering import order_levels
from exchangeable.tables.problems import Problems
from exchangeable.tables.raw import RawCoding
from exchangeable.tables.reading import TableData, counted, read_labels
from exchangeable.tables.targets import UNLABELLED, read_target, read_weights
from exchangeable.tables.words import AnyCoding, SparseCoding, learn_words

TABLE_ONLY = ("drop", "keep", "key", "weights", "text", "date_format", "kinds", "levels")
"""Options about named columns, which sparse files do not have."""


class Prepared(NamedTuple):
    """A table prepared for an estimator.

    Attributes
    ----------
    coding : coding
        How the table is converted to rows.
    rows, y, weights
        Arguments of `fit`.
    kinds : dict or None
        Kinds of the columns, unless they are coded.
    notes : list of str
        Messages for the user.
    """

    coding: AnyCoding
    rows: Any
    y: Any
    weights: Any
    kinds: dict[str, str] | None
    notes: list[str]


def prepare(table: TableData, asked: dict[str, Any], plan: Plan, dialect: Dialect) -> Prepared:
    """Return a table as rows, or raise one error with all its problems.

    Parameters
    ----------
    table : TableData
        The table.
    asked : dict
        The options of `fit`.
    plan : Plan
        The estimator to be fitted.
    dialect : Dialect
        How the table was read.
    """
    if not table.n_rows:
        raise ValueError(f"{table.name}: it has no rows; a model needs at least one")
    problems = Problems(table.name)
    coding, told = _coding(table, asked, plan, dialect, problems)
    y: Any = None
    weights, used = None, np.full(table.n_rows, True)
    unlabelled = asked["unlabelled"] or UNLABELLED[0]
    if asked["labels"] is not None:
        y, used = read_labels(asked["labels"], table.n_rows, unlabelled)
    elif asked["target"] is not None and _has(table, asked["target"]):
        with problems.noted():
            y, used = read_target(table, asked["target"], unlabelled)
    if asked["weights"] is not None and _has(table, asked["weights"]):
        with problems.noted():
            weights = read_weights(table, asked["weights"])
    problems.report()
    rows, kinds = coding.rows(table), None
    if not used.all():
        many = f"{counted(int((~used).sum()), 'row')} without a class"
        told.append(f"{many}: {'left out' if unlabelled == 'drop' else 'learned from as well'}")
        if unlabelled == "drop":
            rows, y = rows[used], _numbers(y[used])
            weights = None if weights is None else weights[used]
    if isinstance(coding, RawCoding):
        alone = usual_kinds(rows, coding)
        kinds = alone | column_kinds(asked["kinds"], list(coding.columns)) or None
    return Prepared(coding, rows, y, weights, kinds, told)


def _numbers(labels: Any) -> Any:
    """Return labels as numbers if all are, once none is missing any more."""
    found = np.array(labels.tolist())
    return found if found.dtype.kind in "biu" else labels


def _has(table: TableData, name: str) -> bool:
    """Whether a table has a column; if a frame lacks it, that was reported with its columns."""
    return table.frame is None or name in table.frame.columns


def _coding(
    table: TableData, asked: dict[str, Any], plan: Plan, dialect: Dialect, problems: Problems
) -> tuple[AnyCoding, list[str]]:
    target, text = asked["target"], asked["text"]
    if table.frame is None:
        given = [name for name in TABLE_ONLY if asked[name]]
        if given or asked["binarize"] != "never":
            raise ValueError(
                f"{table.name}: options about columns need named columns, which a sparse file does "
                "not have; leave them out"
            )
        if target is not None:
            table.column(target)
        return SparseCoding(int(table.matrix.shape[1]), target), []
    if text is not None:
        layout = Layout(asked["key"], (), dialect.empty)
        problems.found += table.problems
        for name in (target, asked["key"], asked["weights"], text):
            if name is not None:
                with problems.noted():
                    table.column(name)
        problems.report()
        return learn_words(table, text, target, asked["min_documents"], layout), []
    ordered = order_levels(table, asked["levels"], problems)
    told = column_kinds(asked["kinds"], [str(name) for name in table.frame.columns]) | ordered
    choice = Choice(
        target,
        asked["key"],
        asked["weights"],
        asked["drop"],
        asked["keep"],
        asked["dates"],
        asked["date_format"],
        told,
        dialect.empty,
    )
    any_kind = plan.takes_kinds or bool(told)
    return learn_coding(table, choice, asked["binarize"], any_kind, problems)


def column_kinds(kinds: tuple[str, ...], names: list[str]) -> dict[str, str]:
    """Return the kinds given by --kind, by column; a pattern stands for all matching columns."""
    told = dict[str, str]()
    for text in kinds:
        pattern, equals, kind = text.rpartition("=")
        if not equals or kind not in KINDS:
            raise ValueError(
                f"--kind {text!r}: expected COLUMN=KIND, a kind being one of {', '.join(KINDS)}"
            )
        told |= dict.fromkeys(matching(pattern, names) or [pattern], kind)
    return told
