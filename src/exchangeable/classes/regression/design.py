"""Covariates as the columns of a regression: an intercept, numbers, and one column per category."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.data.columns.raw import RawColumn, raw_columns
from exchangeable.data.columns.values import finite_numbers

INTERCEPT = "(intercept)"
MOST_LEVELS = 100
DEPENDENT = 1e-9
"""If a singular value is below this share of the largest, columns are linearly dependent."""


@dataclass(frozen=True)
class Covariate:
    """A column of covariates: numbers, or categories, the first of which is the reference."""

    name: str
    levels: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Design:
    """How covariates are converted to a matrix.

    Attributes
    ----------
    covariates : tuple of Covariate
        The columns.
    """

    covariates: tuple[Covariate, ...]

    @property
    def terms(self) -> list[str]:
        """Names of the columns of the matrix."""
        names = [INTERCEPT]
        for covariate in self.covariates:
            levels = covariate.levels[1:]
            names += [f"{covariate.name}={v}" for v in levels] if levels else [covariate.name]
        return names

    @property
    def groups(self) -> dict[str, list[int]]:
        """The columns of the matrix that belong to each covariate."""
        found: dict[str, list[int]] = {}
        at = 1
        for covariate in self.covariates:
            width = max(len(covariate.levels) - 1, 1)
            found[covariate.name] = list(range(at, at + width))
            at += width
        return found

    @classmethod
    def of(cls, covariates: Any) -> "Design":
        """Decide the type of each column, and reject what cannot be estimated."""
        raw = _columns(covariates)
        design = cls(tuple(_covariate(column) for column in raw))
        design._check(design.matrix(covariates))
        return design

    def matrix(self, covariates: Any, n_rows: int | None = None) -> FloatArray:
        """Return the matrix of a table or array with the same columns.

        Parameters
        ----------
        covariates : table or array
            Values, none of them missing.
        n_rows : int, optional
            The expected number of rows.
        """
        raw = _columns(covariates)
        if len(raw) != len(self.covariates):
            raise ValueError(
                f"covariates has {len(raw)} columns, expected {len(self.covariates)}: "
                f"{', '.join(c.name for c in self.covariates)}"
            )
        size = raw[0].values.size
        if n_rows is not None and size != n_rows:
            raise ValueError(f"covariates has {size} rows, but X has {n_rows}; give one for each")
        columns = [np.ones(size)]
        for column, covariate in zip(raw, self.covariates, strict=True):
            _refuse_holes(column, covariate.name)
            if not covariate.levels:
                columns.append(finite_numbers(column.values, covariate.name, "a covariate"))
                continue
            values = column.values.tolist()
            unknown = [v for v in values if v not in covariate.levels]
            if unknown:
                raise ValueError(
                    f"covariate {covariate.name!r} is {unknown[0]!r} in some row; expected one of "
                    f"{list(covariate.levels)}"
                )
            array = np.array(values, dtype=object)
            columns += [(array == level).astype(np.float64) for level in covariate.levels[1:]]
        return np.stack(columns, axis=1)

    def _check(self, matrix: FloatArray) -> None:
        """Reject columns whose effects cannot be distinguished."""
        for name, column in zip(self.terms[1:], matrix.T[1:], strict=True):
            if np.ptp(column) == 0:
                raise ValueError(
                    f"covariate {name!r} is constant ({column[0]:g} in all rows): its effect "
                    "cannot be told from the intercept; leave it out"
                )
        if len(matrix) <= matrix.shape[1]:
            raise ValueError(
                f"covariates has {len(matrix)} rows for {matrix.shape[1]} coefficients per class; "
                "give more rows or fewer covariates"
            )
        scaled = matrix / np.sqrt((matrix**2).sum(axis=0))
        for width in range(2, matrix.shape[1] + 1):
            values = np.linalg.svd(scaled[:, :width], compute_uv=False)
            if values[-1] < DEPENDENT * values[0]:
                raise ValueError(
                    f"covariate {self.terms[width - 1]!r} is a linear combination of those before "
                    "it, so that their effects cannot be told apart; leave one of them out"
                )

    def to_plain(self) -> list[dict[str, Any]]:
        """Return the design as plain values, for model files."""
        return [{"name": c.name, "levels": list(c.levels)} for c in self.covariates]

    @classmethod
    def from_plain(cls, value: Any) -> "Design":
        """Return the design from the values of `to_plain`."""
        good = isinstance(value, list) and all(
            isinstance(entry, Mapping)
            and isinstance(entry.get("name"), str)
            and isinstance(entry.get("levels"), list)
            for entry in value
        )
        if not good:
            raise ValueError("covariates_ is not a description of covariates")
        return cls(tuple(Covariate(entry["name"], tuple(entry["levels"])) for entry in value))


def _columns(covariates: Any) -> list[RawColumn]:
    array = covariates
    if not hasattr(covariates, "columns") and not hasattr(covariates, "column_names"):
        array = np.asarray(covariates)
        if array.ndim == 1:
            name = getattr(covariates, "name", None)
            found = raw_columns(array[:, None])
            return [RawColumn(str(name), found[0].values, found[0].holes)] if name else found
    return list(raw_columns(array))


def _covariate(raw: RawColumn) -> Covariate:
    name = f"z{raw.name}" if isinstance(raw.name, int | np.integer) else str(raw.name)
    _refuse_holes(raw, name)
    if raw.levels is None and raw.values.dtype.kind in "biuf":
        return Covariate(name)
    known = set(raw.values.tolist())
    if raw.levels is None and all(isinstance(v, int | float) for v in known):
        return Covariate(name)
    order = sorted(known, key=str) if raw.levels is None else [v for v in raw.levels if v in known]
    if len(order) > MOST_LEVELS:
        raise ValueError(
            f"covariate {name!r} has {len(order)} categories, the limit is {MOST_LEVELS}; give "
            "numbers, or fewer categories"
        )
    if len(order) < 2:
        raise ValueError(
            f"covariate {name!r} is constant ({order[0]!r} in all rows): its effect cannot be told "
            "from the intercept; leave it out"
        )
    return Covariate(name, tuple(order))


def _refuse_holes(raw: RawColumn, name: str) -> None:
    n_holes = int(raw.holes.sum())
    if n_holes:
        raise ValueError(
            f"covariate {name!r} is missing in {n_holes} rows; drop these rows from X and "
            "covariates, or fill them in (ExchangeableImputer)"
        )
