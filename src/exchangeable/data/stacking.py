"""Concatenating several sets of rows."""

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from exchangeable.data.columns.schema import typed_rows
from exchangeable.data.examples import listed
from exchangeable.data.observed import Observed
from exchangeable.data.rows import NO_BITS, NO_INDICES, CountRows, Rows, TypedRows


def nowhere(n_rows: int, n_variables: int) -> Rows:
    """Return rows without any ones."""
    return Rows(n_rows, n_variables, NO_BITS, np.zeros(n_rows + 1, np.int64), NO_INDICES)


def stack_rows(parts: Sequence[Rows]) -> Rows:
    """Concatenate rows of the same form; those of bits become lists of ones."""
    first = parts[0]
    if isinstance(first, TypedRows):
        typed = [part for part in parts if isinstance(part, TypedRows)]
        return TypedRows.of(
            np.concatenate([part.values for part in typed]),
            first.types,
            np.concatenate([part.log_jacobian for part in typed]),
        )
    if isinstance(first, CountRows):
        counted = [part.matrix for part in parts if isinstance(part, CountRows)]
        return CountRows.of(sp.vstack(counted, format="csr"), first.types)
    lists = [listed(part) for part in parts]
    if any(part.n_rows and not part.indptr.size for part in lists):
        raise ValueError("a batch has too many ones to be listed; give smaller batches")
    lengths = np.concatenate([np.diff(part.indptr) for part in lists])
    return Rows(
        int(lengths.size),
        first.n_variables,
        NO_BITS,
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.concatenate([part.indices for part in lists]).astype(np.int32, copy=False),
    )


def stack_observed(parts: Sequence[Observed]) -> Observed:
    """Concatenate rows with missing entries; bits become numbers if other rows are numbers."""
    if len({isinstance(part.ones, TypedRows) for part in parts}) > 1:
        parts = [Observed(typed_rows(part), part.holes) for part in parts]
    holes = None
    if any(part.holes is not None for part in parts):
        holes = stack_rows([part.holes or nowhere(part.n_rows, part.n_variables) for part in parts])
    return Observed(stack_rows([part.ones for part in parts]), holes)
