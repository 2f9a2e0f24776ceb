"""Profiles of classes: their sizes, and how each item is answered in each class."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from exchangeable.arrays import UNASSIGNED, FloatArray
from exchangeable.classes.rows import column_names
from exchangeable.classes.tables import Table, Tabular, cell_text
from exchangeable.data.columns.schema import Schema, typed
from exchangeable.data.observed import Observed
from exchangeable.families.contract import Model, Normal, Normals
from exchangeable.families.mixture import Mixture
from exchangeable.queries.distributions import Continuous

ESTIMATES = "estimate"


@dataclass(frozen=True)
class Entry:
    """What a line of a profile describes.

    Attributes
    ----------
    item : str
        Name of the column.
    answer : str
        A level, or "mean" or "SD" for numbers.
    kind : str
        Kind of the column.
    """

    item: str
    answer: str
    kind: str

    @property
    def is_share(self) -> bool:
        """Whether the values are probabilities."""
        return self.kind in ("binary", "nominal", "ordinal")


@dataclass(frozen=True)
class Profiles(Tabular):
    """Sizes of classes, and answers in each, with standard errors if they are known.

    Attributes
    ----------
    entries : tuple of Entry
        What the lines describe.
    sizes : array of shape (n_classes,)
        Share of each class.
    values : array of shape (n_entries, n_classes)
        Probabilities, means and standard deviations.
    size_errors, errors : arrays like `sizes` and `values`, or None
        Standard errors.
    size_interval, interval : arrays of shape (2, …), or None
        Confidence limits.
    level : float
        The confidence level.
    note : str
        The method of estimating errors.
    labels : tuple
        Labels of the classes of a classifier; other classes are numbered.

    Examples
    --------
    >>> import numpy as np
    >>> from exchangeable import ExchangeableMixture
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((500, 3)) < np.where(rng.random((500, 1)) < 0.4, 0.1, 0.9)
    >>> model = ExchangeableMixture(2, blocks="independent", n_init=3, random_state=0).fit(X)
    >>> profiles = model.profiles()
    >>> profiles.values.shape
    (3, 2)
    >>> print(profiles.to_markdown().splitlines()[0].replace(" ", ""))
    |item|answer|class0|class1|
    >>> profiles.to_frame().shape  # sizes first, then the items
    (4, 4)
    """

    entries: tuple[Entry, ...]
    sizes: FloatArray
    values: FloatArray
    size_errors: FloatArray | None = None
    errors: FloatArray | None = None
    size_interval: FloatArray | None = None
    interval: FloatArray | None = None
    level: float = 0.95
    note: str = field(default="", compare=False)
    labels: tuple[Any, ...] = ()

    @property
    def names(self) -> list[str]:
        """Names of the classes in tables and pictures."""
        known = self.labels or range(self.sizes.size)
        return [f"class {label}" for label in known]

    @property
    def items(self) -> list[str]:
        """Names of the columns, in their order."""
        return list(dict.fromkeys(entry.item for entry in self.entries))

    def ordered(self, items: Sequence[str] | None = None, by_size: bool = False) -> "Profiles":
        """Return the profiles of some items in a given order, the largest class first if wanted.

        Parameters
        ----------
        items : sequence of str, optional
            Names of columns; all by default.
        by_size : bool, default=False
            Whether to order classes by size. Their numbers are then no longer those of `predict`.
        """
        wanted = self.items if items is None else list(items)
        unknown = [name for name in wanted if name not in self.items]
        if unknown:
            raise ValueError(f"items names {unknown[0]!r}; expected some of {self.items}")
        lines = np.array(
            [i for name in wanted for i, e in enumerate(self.entries) if e.item == name],
            dtype=np.int64,
        )
        order = np.argsort(-self.sizes, kind="stable") if by_size else np.arange(self.sizes.size)

        def chosen(array: FloatArray | None) -> FloatArray | None:
            return None if array is None else array[..., lines, :][..., order]

        return replace(
            self,
            entries=tuple(self.entries[i] for i in lines),
            sizes=self.sizes[order],
            values=self.values[lines][:, order],
            size_errors=None if self.size_errors is None else self.size_errors[order],
            errors=chosen(self.errors),
            size_interval=None if self.size_interval is None else self.size_interval[:, order],
            interval=chosen(self.interval),
            labels=tuple(self.labels[y] for y in order) if self.labels else (),
        )

    def as_table(self) -> Table:
        """Return one row per answer and one column per class, with standard errors in brackets."""
        columns: dict[str, Sequence[Any]] = {
            "item": ["class size", *(entry.item for entry in self.entries)],
            "answer": ["", *(entry.answer for entry in self.entries)],
        }
        for y, name in enumerate(self.names):
            own = [self.sizes[y], *self.values[:, y]]
            if self.errors is None or self.size_errors is None:
                columns[name] = own
            else:
                errors = [self.size_errors[y], *self.errors[:, y]]
                pairs = zip(own, errors, strict=True)
                columns[name] = [f"{cell_text(v)} ({cell_text(e)})" for v, e in pairs]
        return Table(columns, "Class profiles", note=self.note)

    def data_table(self) -> Table:
        """Return items by classes; with errors, one row per class and answer, and intervals."""
        if self.errors is None:
            return self.as_table()
        columns: dict[str, list[Any]] = {
            name: [] for name in ("class", "item", "answer", ESTIMATES, "SE", "low", "high")
        }
        sized = (self.size_errors, self.size_interval)
        for y, label in enumerate(self.labels or range(self.sizes.size)):
            _append(columns, label, "class size", "", self.sizes[y], _at(*sized, (y,)))
            for i, entry in enumerate(self.entries):
                known = _at(self.errors, self.interval, (i, y))
                _append(columns, label, entry.item, entry.answer, self.values[i, y], known)
        return Table({**columns}, "Class profiles", note=self.note)


def _at(
    errors: FloatArray | None, interval: FloatArray | None, where: tuple[int, ...]
) -> tuple[float, float, float]:
    nothing = float("nan")
    error = nothing if errors is None else float(errors[where])
    if interval is None:
        return error, nothing, nothing
    return error, float(interval[(0, *where)]), float(interval[(1, *where)])


def _append(
    columns: dict[str, list[Any]],
    label: Any,
    item: str,
    answer: str,
    value: float,
    known: tuple[float, float, float],
) -> None:
    line = (label, item, answer, float(value), *known)
    for name, cell in zip(columns, line, strict=True):
        columns[name].append(cell)


def entries_of(model: Any) -> tuple[Entry, ...]:
    """Return what the lines of a fitted model's profiles describe."""
    names, schema = column_names(model), model._schema()
    if schema is None:
        return tuple(Entry(name, "1", "binary") for name in names)
    entries = []
    for name, column in zip(names, schema.columns, strict=True):
        answers = [str(level) for level in column.levels]
        if column.kind == "binary":
            answers = answers[1:]
        elif column.kind == "count":
            answers = ["mean"]
        elif column.kind == "continuous":
            answers = ["mean", "SD"]
        entries += [Entry(name, answer, column.kind) for answer in answers]
    return tuple(entries)


def profile_values(model: Model, schema: Schema | None) -> FloatArray:
    """Return the values of all lines in every class."""
    if schema is None:
        unknown = np.full((1, model.n_variables), UNASSIGNED, dtype=np.int8)
        nothing = Observed.from_symbols(unknown)
        means = [model.marginals(nothing, y)[0] for y in range(model.n_classes)]
        return np.stack(means, axis=1)
    nothing = typed(np.full((1, model.n_variables), np.nan), schema.types)
    return np.stack(
        [_class_values(model, schema, nothing, y) for y in range(model.n_classes)], axis=1
    )


def _class_values(model: Model, schema: Schema, nothing: Observed, y: int) -> FloatArray:
    found: list[float] = []
    for j, column in enumerate(schema.columns):
        answer = model.predictive(nothing, j, y)
        if isinstance(answer, Normal | Normals):
            weights, means, variances = (each[0] for each in answer.mixture)
            own = Continuous(weights, means, variances, column.transform)
            found += [own.mean, own.std]
        elif column.kind == "binary":
            found.append(float(answer[0, 1]))
        elif column.levels:
            found += answer[0].tolist()
        else:
            found.append(float(answer[0] @ np.arange(answer.shape[1])))
    return np.array(found)


def profiles_of(model: Any, mixture: Mixture | None = None) -> Profiles:
    """Return the profiles of a fitted model, or of other parameters of the same columns."""
    mixture = model._mixture() if mixture is None else mixture
    values = profile_values(mixture.model, model._schema())
    labels = tuple(model.classes_.tolist()) if hasattr(model, "classes_") else ()
    return Profiles(entries_of(model), np.exp(mixture.log_prior), values, labels=labels)
