"""Named tables as answers: if the query is a table, after `set_output`, or with `names`."""

import functools
import inspect
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn import get_config

from exchangeable.arrays import is_assignment
from exchangeable.data.columns.output_tables import make_table
from exchangeable.data.columns.raw import library_of

Method = TypeVar("Method", bound=Callable[..., Any])
LIBRARIES = ("pandas", "polars")
OUTPUTS = ("default", *LIBRARIES)
CONFIG = "_sklearn_output_config"
"""Where scikit-learn stores the setting of `set_output`; `clone` copies it."""
SAID = ("given", "query", "target", "X")
"""Arguments that may name variables or be tables."""


def as_names(names: Any, n_variables: int, what: str) -> npt.NDArray[Any]:
    """Return the names of variables, from a list or from a transformer that knows them.

    >>> as_names(["tea", "milk"], 2, "names").tolist()
    ['tea', 'milk']
    """
    if hasattr(names, "get_feature_names_out"):
        names = names.get_feature_names_out()
    if isinstance(names, str) or not hasattr(names, "__len__"):
        raise TypeError(
            f"{what}={names!r}; expected a list of names, or a fitted transformer that has "
            "get_feature_names_out()"
        )
    listed = [str(name) if isinstance(name, str) else name for name in names]
    odd = next((name for name in listed if not isinstance(name, str)), None)
    if odd is not None:
        raise TypeError(f"{what} holds {odd!r} ({type(odd).__name__}); expected text")
    if len(listed) != n_variables:
        raise ValueError(f"{what} has {len(listed)} names for {n_variables} variables")
    if len(set(listed)) < len(listed):
        twice = next(name for name in listed if listed.count(name) > 1)
        raise ValueError(f"{what} holds {twice!r} twice; each variable needs a name of its own")
    array = np.empty(len(listed), dtype=object)
    array[:] = listed
    return array


class Form(NamedTuple):
    """How to write an answer.

    Attributes
    ----------
    library : str
        The library whose tables to create.
    names : array
        Names of the variables.
    index : optional
        The row labels, for pandas.
    """

    library: str
    names: npt.NDArray[Any]
    index: Any = None

    def matrix(self, values: Any) -> Any:
        """Return one row as a series, several as a table."""
        values = values.toarray() if hasattr(values, "toarray") else np.asarray(values)
        if values.ndim == 1:
            if self.library == "pandas":
                import pandas

                return pandas.Series(values, index=self.names)
            values = values[None]
        columns = {name: values[:, j] for j, name in enumerate(self.names)}
        index = self.index if self.index is not None and len(self.index) == len(values) else None
        dtypes = [str(values.dtype)] * len(columns)
        if self.library == "polars":
            dtypes = ["UInt8" if values.dtype == np.uint8 else "Float64"] * len(columns)
        if self.library == "pyarrow":
            dtypes = ["uint8" if values.dtype == np.uint8 else "float64"] * len(columns)
        nothing: list[tuple[Any, ...]] = [()] * len(columns)
        return make_table(self.library, columns, dtypes, nothing, [False] * len(columns), index)

    def states(self, values: Any, query: Any) -> Any:
        """Return a joint distribution, or those of several queries, labelled by states."""
        asked = [query] if isinstance(query, str | int | np.integer) else list(query)
        named = [key if isinstance(key, str) else str(self.names[key]) for key in asked]
        levels = list(product((0, 1), repeat=len(named)))
        flat = np.asarray(values).reshape(-1, len(levels))
        single = np.ndim(values) == len(named)
        if self.library == "pandas":
            import pandas

            states = pandas.MultiIndex.from_tuples(levels, names=named)
            if single:
                return pandas.Series(flat[0], index=states)
            return pandas.DataFrame(flat, columns=states, index=self.index)
        texts = [",".join(map("{}={}".format, named, state)) for state in levels]
        return Form(self.library, np.array(texts, dtype=object)).matrix(flat)


def form_of(estimator: Any, asked: Any, names: Any) -> Form | None:
    """Return how to write the answers to a query, None for arrays.

    Parameters
    ----------
    estimator : estimator
        The model that answers.
    asked : object
        The evidence, or the rows.
    names : array-like of str, transformer or None
        Names of the variables.
    """
    chosen = getattr(estimator, CONFIG, {}).get("transform") or get_config()["transform_output"]
    library = library_of(asked)
    told = getattr(estimator, CONFIG, {}).get("transform") == "default"
    if chosen == "default":
        chosen = "pandas" if names is not None else None if told else library
    if chosen is None:
        return None
    n = estimator.n_features_in_
    if names is not None:
        known = as_names(names, n, "names")
    elif hasattr(estimator, "feature_names_in_"):
        known = estimator.feature_names_in_
    else:
        known = np.array([f"x{j}" for j in range(n)], dtype=object)
    return Form(chosen, known, asked.index if library == "pandas" else None)


def in_frames(write: Callable[[Form, Any, Mapping[str, Any]], Any]) -> Callable[[Method], Method]:
    """Let a query accept `names`, and answer with a table if it was asked with one.

    Parameters
    ----------
    write : callable
        Converts an answer from arrays to tables, given the form and the arguments of the query.
    """

    def wrap(method: Method) -> Method:
        signature = inspect.signature(method)
        keyword = inspect.Parameter("names", inspect.Parameter.KEYWORD_ONLY, default=None)

        @functools.wraps(method)
        def asked(self: Any, *args: Any, names: Any = None, **options: Any) -> Any:
            arguments = signature.bind(self, *args, **options).arguments
            self._mixture()
            said = arguments.get("given", arguments.get("X"))
            form = form_of(self, said, names)
            if names is not None and form is not None:
                number = {name: j for j, name in enumerate(form.names)}
                for key in SAID:
                    if key in arguments:
                        arguments[key] = numbered(arguments[key], number)
            own = {key: value for key, value in arguments.items() if key != "self"}
            answer = method(self, **own)
            return answer if form is None else write(form, answer, own)

        parameters = [*signature.parameters.values(), keyword]
        asked.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return asked  # type: ignore[return-value]

    return wrap


def numbered(said: Any, number: Mapping[str, int]) -> Any:
    """Replace names of variables by their numbers.

    >>> numbered({"tea": 1}, {"milk": 0, "tea": 1})
    {1: 1}
    """
    if isinstance(said, str):
        return _number(said, number)
    if is_assignment(said):
        return {_number(key, number): value for key, value in said.items()}
    if isinstance(said, list | tuple) and any(isinstance(key, str) for key in said):
        return [_number(key, number) for key in said]
    return said


def _number(key: Any, number: Mapping[str, int]) -> Any:
    if not isinstance(key, str):
        return key
    if key not in number:
        some = ", ".join(list(number)[:10])
        raise ValueError(f"{key!r} is not one of names: {some}, …")
    return number[key]


class Output:
    """Mixin with `set_output`, for estimators that answer queries."""

    def set_output(self, *, transform: str | None = None) -> Any:
        """Set whether answers are arrays or tables.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"}, optional
            Answer with tables of these libraries, or with arrays. None changes nothing. By default
            answers are tables if the query is a table or has `names`.
        """
        if transform is None:
            return self
        if transform not in OUTPUTS:
            raise ValueError(
                f"transform={transform!r} is unknown; expected one of {', '.join(OUTPUTS)}"
            )
        setattr(self, CONFIG, {"transform": transform})
        return self
