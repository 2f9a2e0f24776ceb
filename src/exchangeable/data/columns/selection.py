"""Some of the variables of rows."""

import numpy as np

from exchangeable.arrays import IntArray
from exchangeable.data.examples import Examples, prepared
from exchangeable.data.observed import Observed, flags
from exchangeable.data.rows import NO_BITS, Rows, as_rows


def take_columns(rows: Rows, columns: IntArray) -> Rows:
    """Return rows of some of the variables, in ascending order."""
    if not rows.indptr.size:
        return as_rows(flags(rows)[:, columns], None)
    number = np.full(rows.n_variables, -1, dtype=np.int32)
    number[columns] = np.arange(columns.size, dtype=np.int32)
    indices = number[rows.indices]
    kept = indices >= 0
    indptr = np.concatenate([[0], np.cumsum(kept)])[rows.indptr]
    return Rows(rows.n_rows, columns.size, NO_BITS, indptr, indices[kept])


def observed_columns(observed: Observed, columns: IntArray) -> Observed:
    """Return the known entries of some of the variables, in ascending order."""
    holes = None if observed.holes is None else take_columns(observed.holes, columns)
    return Observed(take_columns(observed.ones, columns), holes)


def example_columns(examples: Examples, columns: IntArray) -> Examples:
    """Return the examples with some of their variables; rows that become equal stay separate."""
    part = observed_columns(examples.observed, columns)
    return prepared(part.ones, examples.weights, examples.clamp, part.holes)
