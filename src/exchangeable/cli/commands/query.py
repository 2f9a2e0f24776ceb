"""`exchangeable query`: exact answers, given what is known."""

from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from exchangeable.cli.errors import one_line
from exchangeable.cli.options import evidence_of, given_option, model_argument, open_model, shown
from exchangeable.cli.texts import examples
from exchangeable.queries.distributions import Discrete
from exchangeable.queries.methods import MostProbable
from exchangeable.tables.coding import Coding
from exchangeable.tables.raw import RawCoding
from exchangeable.tables.reading import import_pandas, listed
from exchangeable.tables.words import AnyCoding
from exchangeable.tables.writing import plain, write_json


@click.command(
    epilog=examples(
        "query groups.exch --given 'tea=1,milk=0'",
        "query buys.exch --given 'age=34,city=Rome' --ask income,car",
        "query buys.exch --class yes --ask age",
        "query spam.exch --given 'free=1' --top 5 --json",
    )
)
@model_argument
@given_option
@click.option(
    "--class", "label", metavar="CLASS", help="The class or component, if that is known as well."
)
@click.option(
    "--ask", metavar="NAME,…", help="Variables to show; by default those that change most."
)
@click.option(
    "--top", type=click.IntRange(1), default=15, show_default=True, help="How many to show."
)
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object.")
@one_line
def query(
    model_path: str,
    given: tuple[str, ...],
    label: str | None,
    ask: str | None,
    top: int,
    as_json: bool,
) -> None:
    """Answer questions given what is known: classes, other variables, most probable completion.

    Probabilities are exact. A coded column is given by its own value, such as city=Rome.
    """
    saved, coding = open_model(model_path, "marginals")
    model = getattr(saved.model, "model_", saved.model)
    evidence, known = evidence_of(given, coding, model), _known_class(model, label)
    if isinstance(coding, RawCoding):
        _answer_any_kind(model, coding, evidence, known, ask, top, as_json)
        return
    before = model.marginals(None)
    after = model.marginals(evidence or None, given_class=known)
    asked = _asked(ask, coding, evidence, np.abs(after - before), top)
    completion = model.most_probable(evidence or None, label=known)
    names = coding.variables
    columns = coding.columns if isinstance(coding, Coding) else ()
    truth = {column.name for column in columns if column.kind == "binary" and column.levels}
    answer: dict[str, Any] = {
        "given": {
            names[j]: bool(value) if names[j] in truth else value for j, value in evidence.items()
        },
        "classes": _posterior(model, evidence, known),
        "variables": [
            {"name": names[j], "before": before[j], "given": after[j]} for j in asked.tolist()
        ],
        "most probable": {
            "on": [names[j] for j in np.flatnonzero(completion.X)],
            **_completed(completion),
        },
    }
    if as_json:
        write_json(answer)
    else:
        _show(plain(answer), top, "class" if hasattr(model, "classes_") else "component")


def _answer_any_kind(
    model: Any,
    coding: RawCoding,
    evidence: dict[int, Any],
    known: Any,
    ask: str | None,
    top: int,
    as_json: bool,
) -> None:
    """Answer questions about columns of any kind: distributions, and the best completion."""
    told = model.marginals(evidence, given_class=known)
    names = coding.variables
    moved = np.array([0.0 if name in told else -1.0 for name in names])
    asked = [names[j] for j in _asked(ask, coding, evidence, moved, top)]
    completion = model.most_probable(evidence, label=known)
    answer: dict[str, Any] = {
        "given": {names[j]: value for j, value in evidence.items()},
        "classes": _posterior(model, evidence, known),
        "columns": {name: _summary(told[name], top) for name in asked if name in told},
        "most probable": {
            "row": {name: completion.X[name].iloc[0] for name in names},
            **_completed(completion),
        },
    }
    if as_json:
        write_json(answer)
        return
    what = "class" if hasattr(model, "classes_") else "component"
    console = Console()
    if not console.is_terminal:
        console.width = 100
    written = plain(answer)
    table = Table("column", "distribution")
    for name, summary in written["columns"].items():
        cells = ", ".join(f"{value}: {_number(share)}" for value, share in summary.items())
        table.add_row(shown(name), shown(cells))
    for label, share in sorted(written["classes"].items(), key=lambda entry: -entry[1])[:top]:
        console.print(shown(f"{what} {label}: {share:.4f}"))
    console.print(table)
    best = written["most probable"]
    row = ", ".join(f"{name}={_number(value)}" for name, value in best["row"].items())
    console.print(shown(f"Most probable completion: {row}"))
    _say_if_not_exact(console, best)


def _number(value: Any) -> str:
    """Return a number with four significant digits, or all digits before the point.

    >>> _number(0.123456), _number(20000.4), _number(2.0), _number("Rome")
    ('0.1235', '20000', '2', 'Rome')
    """
    if not isinstance(value, float):
        return str(value)
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"


def _say_if_not_exact(console: Console, completion: dict[str, Any]) -> None:
    """Describe by how much a completion may miss the maximum."""
    if not completion["exact"]:
        console.print(
            "It is the best that was found; the log-probability of no other is higher by more than "
            f"{completion['gap']:.3g}."
        )


def _completed(completion: MostProbable) -> dict[str, Any]:
    """Return the class, log-probability and exactness of a completion."""
    return {
        "class": completion.y,
        "log-probability": completion.log_prob,
        "exact": bool(completion.exact),
        "gap": float(completion.gap),
    }


def _summary(answer: Any, top: int) -> dict[str, float]:
    """Return the most probable values, or a summary of a measurement's distribution."""
    if isinstance(answer, Discrete):
        ranked = sorted(answer.items(), key=lambda entry: -entry[1])[:top]
        return {str(value): float(share) for value, share in ranked}
    quantiles = {f"{q:.0%}": answer.quantile(q) for q in (0.05, 0.5, 0.95)}
    return {"mean": answer.mean, **quantiles}


def _asked(
    ask: str | None, coding: AnyCoding, evidence: dict[int, Any], moved: Any, top: int
) -> Any:
    """Return the variables to show: those asked for, or the unknown ones that changed most."""
    if ask is not None:
        number = {name: j for j, name in enumerate(coding.variables)}
        names = [ask] if ask in number else [name.strip() for name in ask.split(",")]
        unknown = [name for name in names if name not in number]
        if unknown:
            raise ValueError(
                f"--ask {unknown[0]!r}: the model has no such variable; its variables are "
                f"{listed(coding.variables)}"
            )
        return np.array([number[name] for name in names])
    moved = moved.copy()
    moved[list(evidence)] = -1.0
    order = np.argsort(-moved, kind="stable")[:top]
    return order[moved[order] >= 0]


def _labels(model: Any) -> list[Any]:
    """Return the classes, or the numbers of the components."""
    found = model.classes_ if hasattr(model, "classes_") else np.arange(model.weights_.size)
    return list(found.tolist())


def _known_class(model: Any, word: str | None) -> Any:
    """Return the class with a given name, None if none was given."""
    if word is None:
        return None
    for label in _labels(model):
        if str(label) == word:
            return label
    raise ValueError(f"--class {word}: the model has {listed(_labels(model))}")


def _posterior(model: Any, evidence: dict[int, Any], known: Any) -> dict[str, float]:
    if known is not None:
        return {str(label): float(label == known) for label in _labels(model)}
    if not hasattr(model, "predict_proba"):
        return {}
    names = getattr(model, "feature_names_in_", None)
    row = np.full((1, model.n_features_in_), np.nan, dtype=object)
    for j, value in evidence.items():
        row[0, j] = value
    if all(not isinstance(value, str) for value in evidence.values()):
        row = row.astype(np.float64)
    rows: Any = row
    if names is not None:
        rows = import_pandas("a model with named columns").DataFrame(row, columns=names)
    probability = model.predict_proba(rows)[0]
    return {str(y): float(p) for y, p in zip(_labels(model), probability, strict=True)}


def _show(answer: dict[str, Any], top: int, what: str) -> None:
    console = Console()
    if not console.is_terminal:
        console.width = 100
    given = ", ".join(f"{name}={value}" for name, value in answer["given"].items())
    console.print(shown(f"Given {given or 'nothing'}:"))
    if answer["classes"]:
        table = Table(what, "probability")
        ranked = sorted(answer["classes"].items(), key=lambda entry: -entry[1])
        for label, p in ranked[:top]:
            table.add_row(shown(label), f"{p:.4f}")
        console.print(table)
    table = Table("variable", "probability before", "probability now")
    for entry in answer["variables"]:
        table.add_row(shown(entry["name"]), f"{entry['before']:.4f}", f"{entry['given']:.4f}")
    console.print(table)
    completion = answer["most probable"]
    on = completion["on"]
    switched = ", ".join(on[:30]) + (f" and {len(on) - 30} more" if len(on) > 30 else "")
    console.print(
        shown(
            f"Most probable completion (log-probability {completion['log-probability']:.3f}, "
            f"{what} {completion['class']}): {switched or 'nothing'} on"
        )
    )
    _say_if_not_exact(console, completion)
