"""The contract of a tractable statistic (Proposition 3.1 of the paper)."""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import (
    UNASSIGNED,
    Evidence,
    FloatArray,
    IntArray,
    RandomState,
    SymbolArray,
    as_generator,
    as_numbers,
    check_count,
    check_evidence,
    check_matrix,
)


class Statistic(ABC):
    """A function T of `n_variables` discrete variables, each with values 0..`n_symbols` − 1.

    Variables are partially exchangeable with respect to T if all assignments with the same T are
    equally likely. A statistic is tractable if, for every value t and every partial assignment e,
    the members of S_{t,e}, the assignments with T = t that agree with e, can be counted and
    constructed. This class defines that contract: everything written over it (see
    `exchangeable.EVM`) works for every statistic.

    The public methods check their input and call the hooks of the subclass, whose names start with
    an underscore. Hooks get evidence as an integer array, −1 where unassigned, and a value of T as
    its index in `values`.

    Parameters
    ----------
    n_variables : int
        Number of variables.
    n_symbols : int, default=2
        Number of values each variable can take.
    """

    def __init__(self, n_variables: int, n_symbols: int = 2) -> None:
        self.n_variables = check_count(n_variables, "n_variables")
        self.n_symbols = check_count(n_symbols, "n_symbols", minimum=2)

    @property
    @abstractmethod
    def values(self) -> IntArray:
        """The distinct values of T in order, one per row if T is a vector."""

    @property
    def n_values(self) -> int:
        """Number of distinct values of T."""
        return len(self.values)

    @abstractmethod
    def _index(self, X: IntArray) -> IntArray:
        """Return the index in `values` of T for every row."""

    @abstractmethod
    def _log_sizes(self, assigned: IntArray) -> FloatArray:
        """Return log |S_{t,e}| for all t."""

    @abstractmethod
    def _complete(self, position: int, assigned: IntArray) -> IntArray:
        """Return a member of S_{t,e}, which is known not to be empty."""

    @abstractmethod
    def _draw(
        self, position: int, assigned: IntArray, size: int, rng: np.random.Generator
    ) -> SymbolArray:
        """Return `size` uniform draws from S_{t,e}, which is known not to be empty."""

    def _on_page(self) -> dict[str, Any] | None:
        """Return the tables of an automaton for T (see `on_page`), None if there is none."""
        return None

    def _log_masses(self, log_weights: FloatArray, assigned: IntArray) -> FloatArray:
        """Return `log_masses`; this simple version calls `_log_sizes` per variable and symbol."""
        masses = np.full((self.n_variables, self.n_symbols), -np.inf)
        for variable, symbol in np.ndindex(masses.shape):
            if assigned[variable] in (UNASSIGNED, symbol):
                extended = assigned.copy()
                extended[variable] = symbol
                terms = log_weights + self._log_sizes(extended)
                masses[variable, symbol] = np.logaddexp.reduce(terms)
        return masses

    def _log_sizes_each(self, rows: IntArray) -> FloatArray:
        """Return `_log_sizes` of several partial assignments, one per row."""
        return np.array([self._log_sizes(row) for row in rows]).reshape(len(rows), self.n_values)

    def index(self, X: npt.ArrayLike) -> IntArray:
        """Return, for every row x of a matrix, the index of T(x) in `values`."""
        return self._index(check_matrix(X, self.n_variables, self.n_symbols))

    def position(self, t: Any) -> int:
        """Return the index of the value `t` in `values`."""
        try:
            value = np.asarray(t)
        except ValueError:
            value = np.asarray(None)
        if value.shape == self.values.shape[1:] and value.dtype.kind in "biuf":
            found = (self.values == value).reshape(self.n_values, -1).all(axis=1)
            if found.any():
                return int(found.argmax())
        first, last = self.values[0].tolist(), self.values[-1].tolist()
        raise ValueError(
            f"{t!r} is not a value of {self!r}; its {self.n_values} values run from "
            f"{first} to {last}"
        )

    def log_sizes(self, evidence: Evidence = None) -> FloatArray:
        """Return log |S_{t,e}| for all values t at once, −inf if the set is empty.

        Parameters
        ----------
        evidence : array-like of shape (n_variables,), dict or None
            A partial assignment: an array with NaN for unassigned variables, or a dict from
            variable to value.
        """
        return self._log_sizes(check_evidence(evidence, self.n_variables, self.n_symbols))

    @cached_property
    def log_sizes_of_all(self) -> FloatArray:
        """Logarithms of |S_t| for all values t, cached because EM needs them in every iteration."""
        return self.log_sizes()

    def complete(self, t: Any, evidence: Evidence = None) -> SymbolArray:
        """Return an assignment x with T(x) = t that agrees with the evidence."""
        position, assigned = self._member_of(t, evidence)
        return self._complete(position, assigned).astype(self._dtype)

    def sample(
        self,
        t: Any,
        evidence: Evidence = None,
        size: int | None = None,
        random_state: RandomState = None,
    ) -> SymbolArray:
        """Draw assignments uniformly from those with T(x) = t that agree with the evidence.

        Returns one assignment, or a matrix with `size` rows if `size` is given.
        """
        position, assigned = self._member_of(t, evidence)
        n_draws = 1 if size is None else check_count(size, "size", minimum=0)
        draws = self._draw(position, assigned, n_draws, as_generator(random_state))
        draws = draws.astype(self._dtype, copy=False)
        return draws[0] if size is None else draws

    def log_masses(self, log_weights: npt.ArrayLike, evidence: Evidence = None) -> FloatArray:
        """Return, per variable j and symbol v, log Σ_t exp(log_weights[t]) · |S_{t, e, x_j = v}|.

        If ``log_weights`` are the log-probabilities of a single member of each S_t, these are the
        joint log-probabilities of the evidence and x_j = v, for all variables at once.
        """
        weights = as_numbers(log_weights, "log_weights").astype(np.float64)
        if weights.shape != (self.n_values,):
            raise ValueError(f"log_weights has shape {weights.shape}, expected ({self.n_values},)")
        bad = np.flatnonzero(~(weights < np.inf))
        if bad.size:
            raise ValueError(
                f"log_weights[{bad[0]}] is {weights[bad[0]]}; expected a number below infinity"
            )
        assigned = check_evidence(evidence, self.n_variables, self.n_symbols)
        return self._log_masses(weights, assigned)

    @property
    def _dtype(self) -> type[np.integer[Any]]:
        return np.uint8 if self.n_symbols <= 256 else np.int64

    def _shuffle_free(
        self, completed: IntArray, assigned: IntArray, size: int, rng: np.random.Generator
    ) -> SymbolArray:
        """Return `size` copies of a completion, its unassigned entries in random order in each."""
        draws = np.tile(completed.astype(self._dtype), (size, 1))
        free = assigned == UNASSIGNED
        draws[:, free] = rng.permuted(draws[:, free], axis=1)
        return draws

    def _member_of(self, t: Any, evidence: Evidence) -> tuple[int, IntArray]:
        """Check a value and evidence, and that some assignment agrees with both."""
        position = self.position(t)
        assigned = check_evidence(evidence, self.n_variables, self.n_symbols)
        if self._log_sizes(assigned)[position] == -np.inf:
            raise ValueError(f"no assignment with T = {t!r} agrees with the evidence {evidence!r}")
        return position, assigned
