"""How the answers to each query are written as tables; see `frames`."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from exchangeable.arrays import is_sparse
from exchangeable.data.columns.raw import library_of
from exchangeable.queries.frames import Form
from exchangeable.queries.recommendation import Recommendation


def _is_array(answer: Any) -> bool:
    """Whether an answer is neither a table nor a distribution yet."""
    return isinstance(answer, np.ndarray) or is_sparse(answer)


def plain(form: Form, answer: Any, asked: Mapping[str, Any]) -> Any:
    """Return an answer unchanged."""
    return answer


def matrix(form: Form, answer: Any, asked: Mapping[str, Any]) -> Any:
    """Write one number per variable; distributions get the names of their variables."""
    if isinstance(answer, Mapping):
        return {form.names[key] if isinstance(key, int) else key: answer[key] for key in answer}
    if isinstance(answer, list):
        return [matrix(form, each, asked) for each in answer]
    return form.matrix(answer)


def states(form: Form, answer: Any, asked: Mapping[str, Any]) -> Any:
    """Write a joint distribution."""
    return form.states(answer, asked["query"]) if _is_array(answer) else answer


def completion(form: Form, answer: Any, asked: Mapping[str, Any]) -> Any:
    """Write completed rows."""
    return answer._replace(X=form.matrix(answer.X)) if _is_array(answer.X) else answer


def draws(form: Form, answer: Any, asked: Mapping[str, Any]) -> Any:
    """Write drawn rows; their classes remain an array."""
    rows, classes = answer
    return (form.matrix(rows), classes) if _is_array(rows) else answer


def recommendations(form: Form, answer: Any, asked: Mapping[str, Any]) -> Any:
    """Write one line per recommendation, with its row if there are several."""
    single = not answer or isinstance(answer[0], Recommendation)
    rows = [answer] if single else answer
    index = form.index if form.index is not None else range(len(rows))
    lines = [(row, each) for row, found in zip(index, rows, strict=True) for each in found]
    columns = {
        "item": np.array([_named(form, each.item) for _, each in lines], dtype=object),
        "probability": np.array([each.probability for _, each in lines]),
        "lift": np.array([each.lift for _, each in lines]),
    }
    if not single:
        columns = {"row": np.array([row for row, _ in lines]), **columns}
    if form.library == "pandas":
        import pandas

        return pandas.DataFrame(columns)
    import polars

    return polars.DataFrame({name: values.tolist() for name, values in columns.items()})


def _named(form: Form, item: int | str) -> str:
    return item if isinstance(item, str) else str(form.names[item])


def completions(form: Form, answer: Any, asked: Mapping[str, Any]) -> Any:
    """Write filled-in rows, with the types of the input."""
    if not _is_array(answer):
        return answer
    if answer.ndim == 3:
        return [completions(form, each, asked) for each in answer]
    table, X = form.matrix(answer), asked["X"]
    if asked.get("method") == "marginal" or not library_of(X) == form.library == "pandas":
        return table
    kinds = {
        name: kind
        for name, kind in zip(form.names, X.dtypes, strict=True)
        if getattr(kind, "kind", "O") in "biu"
    }
    return table.astype(kinds)
