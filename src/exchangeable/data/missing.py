"""Masks of missing entries, for data that cannot contain a NaN."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from exchangeable.arrays import check_sparse, is_sparse
from exchangeable.data.containers import as_matrix


def with_missing(X: Any, missing: Any) -> Any:
    """Return X with NaN where a mask is true.

    This is how a sparse matrix gets missing entries: entries that it does not store are known
    zeros, a stored NaN is missing.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Examples.
    missing : {array-like, sparse matrix} of bool of the same shape
        True for missing entries; the values of X there do not matter.

    Returns
    -------
    ndarray or CSR array
        Sparse if X is.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from exchangeable import with_missing
    >>> X = sp.csr_array([[1, 0, 0], [0, 1, 1]])
    >>> with_missing(X, [[False, True, False], [False, False, True]]).toarray().tolist()
    [[1.0, nan, 0.0], [0.0, 1.0, nan]]
    """
    X = as_matrix(X)
    shape = X.shape if is_sparse(X) else np.shape(X)
    mask: Any = missing if is_sparse(missing) else np.asarray(missing)
    if is_sparse(mask):
        check_sparse(mask, "missing")
    if mask.dtype != np.bool_ and not np.isin(mask.data if is_sparse(mask) else mask, [0, 1]).all():
        raise ValueError("missing must hold True where an entry is not known, False elsewhere")
    if mask.shape != shape:
        raise ValueError(f"missing has shape {mask.shape}, but X has shape {shape}")
    if not is_sparse(X):
        flat = mask.toarray() if is_sparse(mask) else mask
        return np.where(flat.astype(bool), np.nan, np.asarray(X, dtype=np.float64))
    gaps: Any = sp.csr_array(mask).astype(np.float64)
    gaps.sum_duplicates()
    gaps.eliminate_zeros()
    known: Any = sp.csr_array(X).astype(np.float64)
    known.sum_duplicates()
    known = known - known.multiply(gaps)
    gaps.data[:] = np.nan
    return sp.csr_array(known + gaps)
