"""`predict`, `score`, `sample` and `impute`: apply a model to the rows of a table."""

from typing import Any

import click
import numpy as np

from exchangeable import ExchangeableClassifier
from exchangeable.cli.errors import one_line
from exchangeable.cli.options import (
    busy,
    data_argument,
    dialect_options,
    evidence_of,
    given_option,
    id_option,
    json_option,
    model_argument,
    notes,
    open_model,
    open_rows,
    output_option,
    seed_option,
)
from exchangeable.cli.texts import examples
from exchangeable.tables.coding import Coding
from exchangeable.tables.delimited import Dialect
from exchangeable.tables.raw import RawCoding
from exchangeable.tables.reading import TableData, counted
from exchangeable.tables.targets import positions, read_weights
from exchangeable.tables.words import AnyCoding, WordCoding
from exchangeable.tables.writing import write_json, write_table


@click.command(
    epilog=examples(
        "predict buys.exch new.csv --output answers.csv",
        "predict groups.exch survey.parquet --all --json",
    )
)
@model_argument
@data_argument
@click.option("--all", "everything", is_flag=True, help="Write the probability of every class.")
@id_option
@output_option
@json_option
@dialect_options
@one_line
def predict(
    model_path: str,
    data: str,
    everything: bool,
    key: str | None,
    output: str,
    as_json: bool,
    dialect: Dialect,
) -> None:
    """Predict the class, or for a mixture the component, of every row of DATA.

    The column that was given as --id when the model was fitted, or is given now, is copied.
    """
    saved, coding = open_model(model_path, "predict")
    if not hasattr(saved.model, "predict_proba"):
        raise ValueError(
            f"{model_path} is a {type(saved.model).__name__}, which has no classes to predict; "
            "use 'exchangeable score' for its log-probabilities"
        )
    table, rows = open_rows(data, dialect, coding, saved.model)
    with busy("predicting"):
        probability = saved.model.predict_proba(rows)
    labels = getattr(saved.model, "classes_", np.arange(probability.shape[1]))
    columns = {"prediction": labels[probability.argmax(axis=1)]}
    if everything:
        columns |= {f"P({label})": probability[:, y] for y, label in enumerate(labels.tolist())}
    else:
        columns["probability"] = probability.max(axis=1)
    write_table(_with_key(table, coding, key, columns), output, as_json)


def _with_key(
    table: TableData, coding: AnyCoding, key: str | None, columns: dict[str, Any]
) -> dict[str, Any]:
    """Return answers with the id column in front, if there is one."""
    known = coding.layout.key
    if key is None and (known is None or table.frame is None or known not in table.frame.columns):
        return columns
    name = key or str(known)
    values = table.column(name)
    if name in columns:
        raise ValueError(f"{table.name}: the key {name!r} is named as an answer; rename the column")
    return {name: np.asarray(values), **columns}


@click.command(
    epilog=examples(
        "score buys.exch test.csv",
        "score groups.exch survey.csv --each --output log_probabilities.csv",
    )
)
@model_argument
@data_argument
@click.option(
    "--each", is_flag=True, help="Write each row's log-probability, to find unusual rows."
)
@click.option("--weights", metavar="COLUMN", help="Column that says how much each row counts.")
@id_option
@output_option
@json_option
@dialect_options
@one_line
def score(
    model_path: str,
    data: str,
    each: bool,
    weights: str | None,
    key: str | None,
    output: str,
    as_json: bool,
    dialect: Dialect,
) -> None:
    """Measure how well a model fits DATA: mean log-probability and, with classes, accuracy.

    Rows whose class is not known are left out of the accuracy.
    """
    saved, coding = open_model(model_path, "score", "score_samples")
    table, rows = open_rows(data, dialect, coding, saved.model)
    if not table.n_rows:
        raise ValueError(f"{table.name}: it has no rows")
    model = getattr(saved.model, "model_", saved.model)
    with busy("scoring"):
        scores = model.score_samples(rows)
    if each:
        columns = {"row": np.arange(1, scores.size + 1), "log_probability": scores}
        write_table(_with_key(table, coding, key, columns), output, as_json)
        return
    counted = np.ones(scores.size) if weights is None else read_weights(table, weights)
    mean = float(np.average(scores, weights=counted))
    summary: dict[str, Any] = {"rows": int(scores.size), "mean log-probability": mean}
    if coding.target is not None and isinstance(model, ExchangeableClassifier):
        summary |= _accuracy(model, rows, table, coding.target, counted)
    if as_json:
        write_json(summary, output)
        return
    values = [str(value) for value in summary.values()]  # the number of rows stays an integer
    write_table({"measure": list(summary), "value": values}, output, False)


def _accuracy(model: Any, rows: Any, table: TableData, target: str, weights: Any) -> dict[str, Any]:
    """Return the quality of predictions, for the rows whose class is known."""
    if table.frame is not None and target not in table.frame.columns:
        notes(table.name, [f"no column {target!r}, so that there is no accuracy"])
        return {}
    truth = positions(table.column(target), model.classes_.tolist())
    known = truth != -1
    told = []
    if not known.all():
        told.append(f"{counted(int((~known).sum()), 'row')} without a known {target!r} left out")
    if (truth == -2).any():
        cell = np.asarray(table.column(target))[truth == -2][0]
        many = counted(int((truth == -2).sum()), "row")
        told.append(f"{many} of a class unknown to the model: {cell}")
    notes(table.name, told)
    if not known.any():
        return {"rows with a class": 0}
    log_probability = model.predict_log_proba(rows)[known]
    truth, weights = truth[known], weights[known]
    hit = log_probability.argmax(axis=1) == truth
    measures = {"rows with a class": int(known.sum()), "accuracy": np.average(hit, weights=weights)}
    if (truth >= 0).all():
        loss = -log_probability[np.arange(truth.size), truth]
        measures["log-loss"] = np.average(loss, weights=weights)
    return measures


@click.command(
    epilog=examples(
        "sample groups.exch -n 1000 --seed 0 --output new.csv",
        "sample groups.exch -n 5 --given 'tea=1,milk=0'",
    )
)
@model_argument
@click.option("-n", "--rows", "n_rows", type=click.IntRange(0), default=10, show_default=True)
@given_option
@seed_option
@output_option
@json_option
@one_line
def sample(
    model_path: str,
    n_rows: int,
    given: tuple[str, ...],
    seed: int | None,
    output: str,
    as_json: bool,
) -> None:
    """Draw new rows from a model; a model of documents draws their words."""
    saved, coding = open_model(model_path, "sample")
    model = getattr(saved.model, "model_", saved.model)
    if not hasattr(model, "sample"):
        raise ValueError(
            f"{model_path} is a {type(saved.model).__name__}, which cannot draw rows; expected a "
            "classifier, mixture or density"
        )
    drawn = model.sample(n_rows, evidence_of(given, coding, model), random_state=seed)
    rows = drawn[0] if isinstance(drawn, tuple) else drawn
    columns: dict[str, Any]
    if isinstance(coding, WordCoding):
        words = np.array(coding.variables, dtype=object)
        columns = {"words": [" ".join(words[row == 1]) for row in rows]}
    elif isinstance(coding, RawCoding):
        measured = {name for name, kind in model.kinds_.items() if kind == "continuous"}
        columns = {
            name: rows[name].to_numpy() if name in measured else _whole(rows[name])
            for name in coding.variables
        }
    else:
        columns = {name: rows[:, j] for j, name in enumerate(coding.variables)}
        if isinstance(coding, Coding):
            truth = {c.name: c for c in coding.columns if c.kind == "binary"}
            columns |= {name: truth[name].decode(columns[name]) for name in truth}
    if isinstance(drawn, tuple):
        named = coding.target or ("class" if hasattr(model, "classes_") else "component")
        columns = {named: drawn[1], **columns}
    write_table(columns, output, as_json)


@click.command(
    epilog=examples(
        "impute groups.exch holes.csv --output filled.csv",
        "impute groups.exch holes.csv --method marginal --output probabilities.parquet",
    )
)
@model_argument
@data_argument
@click.option(
    "--method",
    type=click.Choice(["most_probable", "marginal", "draw"]),
    default="most_probable",
    show_default=True,
    help="Fill with the most probable completion, each cell's probability of a one, or a draw.",
)
@seed_option
@output_option
@json_option
@dialect_options
@one_line
def impute(
    model_path: str,
    data: str,
    method: str,
    seed: int | None,
    output: str,
    as_json: bool,
    dialect: Dialect,
) -> None:
    """Fill the empty cells of DATA.

    Columns that the model does not use are copied. Columns that were coded when the model was
    fitted (--binarize auto) are replaced by their coded columns.
    """
    saved, coding = open_model(model_path, "impute", "transform")
    if not isinstance(coding, Coding | RawCoding):
        raise ValueError(
            f"{model_path}: impute fills tables with named columns, but this model was fitted to "
            "documents or to a sparse file, which have no empty cells"
        )
    table, rows = open_rows(data, dialect, coding, saved.model)
    model = getattr(saved.model, "model_", saved.model)
    copied = {str(name): table.frame[name].to_numpy() for name in table.frame.columns}
    for date in coding.layout.dates:
        if date.name in copied and table.frame[date.name].isna().any():
            notes(
                table.name, [f"empty dates in {date.name!r} stay empty: a model knows their parts"]
            )
    with busy("filling"):
        filled = model.impute(rows, method, random_state=seed)
    if isinstance(coding, RawCoding):
        columns = {name: _whole(filled[name]) for name in coding.columns if name in copied}
        write_table(copied | columns, output, as_json)
        return
    values = np.asarray(filled)
    answers = {name: values[:, j] for j, name in enumerate(coding.variables)}
    if method != "marginal":
        answers = {name: column.astype(np.uint8) for name, column in answers.items()}
        truth = {c.name: c for c in coding.columns if c.kind == "binary"}
        answers |= {name: truth[name].decode(answers[name]) for name in truth}
    columns = {}
    used = {column.name: column.variables for column in coding.columns}
    for name in copied:
        if name in used:
            columns |= {variable: answers[variable] for variable in used[name]}
        else:
            columns[name] = copied[name]
    write_table(columns, output, as_json)


def _whole(column: Any) -> Any:
    """Convert a filled-in column to whole numbers, if only missing values had made it floats."""
    values = column.to_numpy()
    whole = values.dtype.kind == "f" and (values == np.round(values)).all()
    return values.astype(np.int64) if whole and np.abs(values).max(initial=0) < 2**53 else values
