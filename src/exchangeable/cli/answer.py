"""`predict`, `score`, `sample` and `impute`: apply a model to the rows of a table."""

from typing import Any

import click
import numpy as np

from exchangeable import ExchangeableClassifier
from exchangeable.cli.errors import one_line
from exchangeable.cli.options import (
    busy,
    data_argument,
    evidence_of,
    format_option,
    given_option,
    json_option,
    model_argument,
    open_model,
    open_rows,
    output_option,
    seed_option,
)
from exchangeable.cli.texts import examples
from exchangeable.tables.coding import Coding
from exchangeable.tables.raw import RawCoding
from exchangeable.tables.words import WordCoding
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
@output_option
@json_option
@format_option
@one_line
def predict(
    model_path: str, data: str, everything: bool, output: str, as_json: bool, form: str | None
) -> None:
    """Predict the class, or for a mixture the component, of every row of DATA."""
    saved, coding = open_model(model_path)
    _, rows = open_rows(data, form, coding)
    if not hasattr(saved.model, "predict_proba"):
        raise ValueError(
            f"{model_path} is a {type(saved.model).__name__}, which has no classes to predict; "
            "use 'exchangeable score' for its log-probabilities"
        )
    with busy("predicting"):
        probability = saved.model.predict_proba(rows)
    labels = getattr(saved.model, "classes_", np.arange(probability.shape[1]))
    columns = {"prediction": labels[probability.argmax(axis=1)]}
    if everything:
        columns |= {f"P({label})": probability[:, y] for y, label in enumerate(labels.tolist())}
    else:
        columns["probability"] = probability.max(axis=1)
    write_table(columns, output, as_json)


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
@output_option
@json_option
@format_option
@one_line
def score(
    model_path: str, data: str, each: bool, output: str, as_json: bool, form: str | None
) -> None:
    """Measure how well a model fits DATA: mean log-probability and, with classes, accuracy."""
    saved, coding = open_model(model_path)
    table, rows = open_rows(data, form, coding)
    with busy("scoring"):
        scores = saved.model.score_samples(rows)
    if each:
        write_table(
            {"row": np.arange(1, scores.size + 1), "log_probability": scores}, output, as_json
        )
        return
    summary: dict[str, Any] = {"rows": int(scores.size), "mean log-probability": scores.mean()}
    if coding.target is not None and isinstance(saved.model, ExchangeableClassifier):
        truth = np.asarray(table.column(coding.target))
        if saved.model.classes_.dtype.kind in "OU":
            truth = truth.astype(str)
        predicted = saved.model.predict(rows)
        summary["accuracy"] = float((predicted == truth).mean())
    if as_json:
        write_json(summary, output)
        return
    values = np.array(list(summary.values()), dtype=object)  # the number of rows stays an int
    write_table({"measure": list(summary), "value": values}, output, False)


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
    saved, coding = open_model(model_path)
    if not hasattr(saved.model, "sample"):
        raise ValueError(
            f"{model_path} is a {type(saved.model).__name__}, which cannot draw rows; expected a "
            "classifier, mixture or density"
        )
    drawn = saved.model.sample(n_rows, evidence_of(given, coding), random_state=seed)
    rows = drawn[0] if isinstance(drawn, tuple) else drawn
    columns: dict[str, Any]
    if isinstance(coding, WordCoding):
        words = np.array(coding.variables, dtype=object)
        columns = {"words": [" ".join(words[row == 1]) for row in rows]}
    elif isinstance(coding, RawCoding):
        columns = {name: rows[name].to_numpy() for name in coding.variables}
    else:
        columns = {name: rows[:, j] for j, name in enumerate(coding.variables)}
    if isinstance(drawn, tuple):
        named = coding.target or ("class" if hasattr(saved.model, "classes_") else "component")
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
@format_option
@one_line
def impute(
    model_path: str,
    data: str,
    method: str,
    seed: int | None,
    output: str,
    as_json: bool,
    form: str | None,
) -> None:
    """Fill the empty cells of DATA.

    Columns that the model does not use are copied. Columns that were coded when the model was
    fitted (--binarize auto) are replaced by their coded columns.
    """
    saved, coding = open_model(model_path)
    if not isinstance(coding, Coding | RawCoding):
        raise ValueError(
            f"{model_path}: impute fills tables with named columns, but this model was fitted to "
            "documents or to a sparse file, which have no empty cells"
        )
    table, rows = open_rows(data, form, coding)
    model = getattr(saved.model, "model_", saved.model)
    if isinstance(coding, RawCoding):
        with busy("filling"):
            complete = model.impute(rows, method, random_state=seed)
        copied = {name: table.frame[name].to_numpy() for name in table.frame.columns}
        own = {name: complete[name].to_numpy() for name in coding.columns}
        write_table(copied | own, output, as_json)
        return
    with busy("filling"):
        filled = np.asarray(model.impute(rows, method, random_state=seed))
    if method != "marginal":
        filled = filled.astype(np.uint8)
    answers = {name: filled[:, j] for j, name in enumerate(coding.variables)}
    columns: dict[str, Any] = {}
    used = {column.name: column.variables for column in coding.columns}
    for name in table.frame.columns:
        if name in used:
            columns |= {variable: answers[variable] for variable in used[name]}
        else:
            columns[name] = table.frame[name].to_numpy()
    write_table(columns, output, as_json)
