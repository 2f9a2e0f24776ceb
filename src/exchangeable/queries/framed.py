"""How the answers to each question are written in tables; see `frames`."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from exchangeable.arrays import is_sparse
from exchangeable.data.raw_columns import library_of
from exchangeable.queries.frames import Form


def _is_array(answer: Any) -> bool:
    """Whether an answer is not a table or a distribution already."""
    return isinstance(answer, np.ndarray) or is_sparse(answer)


def plain(form: Form, answer: Any, asked: Mapping[str, Any]) -> Any:
    """Leave an answer as it is."""
    return answer


def matrix(form: Form, answer: Any, asked: Mapping[str, Any]) -> Any:
    """Write a number for every variable; distributions get the names of their variables."""
    if isinstance(answer, Mapping):
        return {form.names[key] if isinstance(key, int) else key: answer[key] for key in answer}
    if isinstance(answer, list):
        return [matrix(form, each, asked) for each in answer]
    return form.matrix(answer)


def states(form: Form, answer: Any, asked: Mapping[str, Any]) -> Any:
    """Write a joint distribution."""
    return form.states(answer, asked["query"]) if _is_array(answer) else answer


def completion(form: Form, answer: Any, asked: Mapping[str, Any]) -> Any:
    """Write the completed rows."""
    return answer._replace(X=form.matrix(answer.X)) if _is_array(answer.X) else answer


def draws(form: Form, answer: Any, asked: Mapping[str, Any]) -> Any:
    """Write the rows drawn; their classes stay an array."""
    rows, classes = answer
    return (form.matrix(rows), classes) if _is_array(rows) else answer


def completions(form: Form, answer: Any, asked: Mapping[str, Any]) -> Any:
    """Write filled rows, in the types they came in."""
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
