"""Classes that are mixtures: the components of one model, in groups."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray, SymbolArray, normalize_log
from exchangeable.data.columns.schema import typed, typed_rows
from exchangeable.data.observed import Observed
from exchangeable.data.rows import CountRows, TypedRows
from exchangeable.families.contract import Arrays, Model, Normal, Normals, averaged
from exchangeable.families.page import OnPage
from exchangeable.families.sums import RowsInMemory, Sums


@dataclass(frozen=True)
class GroupedModel(Model):
    """Classes that consist of components of an inner model, of any family, with probabilities.

    Attributes
    ----------
    inner : Model
        The components.
    group : array of shape (n_components,)
        The class of each component, in ascending order.
    log_shares : array of shape (n_components,)
        Log-probability of each component in its class.
    """

    kind: ClassVar[str] = "grouped"
    inner: Model
    group: IntArray
    log_shares: FloatArray

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.group[-1]) + 1

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return self.inner.n_variables

    @property
    def n_parameters(self) -> int:
        """Number of free parameters, without the probabilities of the classes."""
        return self.inner.n_parameters + self.group.size - self.n_classes

    @property
    def n_steps(self) -> float:
        """Nanoseconds of the first score beyond those of the components: none."""
        return 0.0

    @property
    def types(self) -> Any:
        """The schema of the columns, None if all are bits."""
        return getattr(self.inner, "types", None)

    @property
    def partitions(self) -> list[Any]:
        """The blocks of each class's most probable component."""
        return [self.inner.partitions[each] for each in self._leading()]

    def count_probabilities(self) -> list[list[FloatArray]]:
        """Return q(l | y) of the blocks of each class's most probable component."""
        found = self.inner.count_probabilities()
        return [found[each] for each in self._leading()]

    def edges(self) -> list[IntArray]:
        """Return the edges of each class's most probable component."""
        found = self.inner.edges()
        return [found[each] for each in self._leading()]

    def log_urn_weights(self) -> FloatArray:
        """Return the log-weights of each class's most probable component."""
        return self.inner.log_urn_weights()[:, self._leading()]

    def on_page(self) -> OnPage | None:
        """Return the page data of the components, with their classes and shares."""
        inner = self.inner.on_page()
        if inner is None:
            return None
        data = {"inner": inner, "group": self.group, "shares": self.log_shares}
        most = int(np.bincount(self.group).max()) * inner.normals
        return OnPage("grouped", "exchangeable.families", data, 3 * inner.steps, most)

    def score(self, observed: Observed, n_jobs: int | None = None) -> FloatArray:
        """Return log P(e | y), shape (n_rows, n_classes); e are a row's known entries."""
        joint = self.inner.score(observed, n_jobs) + self.log_shares
        return np.logaddexp.reduceat(joint, self._starts(), axis=1)

    def marginals(self, observed: Observed, y: int) -> FloatArray:
        """Return P(x_j = 1 | e, y), shape (n_rows, n_variables); known entries stay as they are.

        For numbers it is the mean.
        """
        share = self._shares(observed, y)
        total = np.zeros((observed.n_rows, self.n_variables))
        for column, component in zip(share.T, self._members(y), strict=True):
            total += column[:, None] * self.inner.marginals(observed, int(component))
        return total if _of_numbers(observed) else np.minimum(total, 1.0)

    def predictive(
        self, observed: Observed, variable: int, y: int
    ) -> FloatArray | Normal | Normals:
        """Return the distribution of an unknown variable, given the known ones."""
        each = [self.inner.predictive(observed, variable, int(z)) for z in self._members(y)]
        return averaged(each, self._shares(observed, y))

    def complete(self, observed: Observed, y: int) -> tuple[SymbolArray, FloatArray]:
        """Return, for class y, the best of its components' most probable completions."""
        best: SymbolArray | None = None
        worth = np.full(observed.n_rows, -np.inf)
        for component in self._members(y):
            rows = self.inner.complete(observed, int(component))[0]
            found = self.score(_completed(rows, observed))[:, y]
            better = found > worth
            best = rows if best is None else np.where(better[:, None], rows, best)
            worth = np.maximum(worth, found)
        assert best is not None
        return best, worth

    def draw(self, observed: Observed, y: int, rng: np.random.Generator) -> SymbolArray:
        """Return a completion of each row, drawn from P(x | e, y)."""
        reached = np.cumsum(self._shares(observed, y), axis=1)
        uniforms = rng.random((observed.n_rows, 1)) * reached[:, -1:]
        chosen = (uniforms >= reached[:, :-1]).sum(axis=1)
        kind = np.float64 if _of_numbers(observed) else np.int8
        out: SymbolArray = np.empty((observed.n_rows, self.n_variables), dtype=kind)
        for number, component in enumerate(self._members(y)):
            rows = np.flatnonzero(chosen == number)
            if rows.size:
                out[rows] = self.inner.draw(observed.take(rows), int(component), rng)
        return out

    def imagined(self, n_rows: int, y: int, rng: np.random.Generator) -> Observed:
        """Return rows drawn from P(x | y)."""
        if self.types is None:
            return super().imagined(n_rows, y, rng)
        nothing = typed(np.full((n_rows, self.n_variables), np.nan), self.types)
        return typed(np.asarray(self.draw(nothing, y, rng), dtype=np.float64), self.types)

    def expect(self, data: RowsInMemory, log_prior: FloatArray, moments: bool = False) -> Sums:
        """Raise an error: components are grouped after they have been fitted."""
        raise TypeError("the components of each class are fitted by themselves, before")

    def only(self, classes: IntArray) -> Self:
        """Return the model of some of the classes, in the given order."""
        kept = np.flatnonzero(np.isin(self.group, classes))
        group = np.unique(self.group[kept], return_inverse=True)[1]
        return type(self)(self.inner.only(kept), group, self.log_shares[kept])

    @classmethod
    def stack(cls, models: Sequence["GroupedModel"]) -> Self:
        """Return the model of all classes of several models."""
        first = np.cumsum([0] + [model.n_classes for model in models])
        groups = [model.group + start for model, start in zip(models, first, strict=False)]
        inner = type(models[0].inner).stack([model.inner for model in models])
        shares = np.concatenate([model.log_shares for model in models])
        return cls(inner, np.concatenate(groups), shares)

    def encode(self) -> Arrays:
        """Return the arrays besides the components, which a file stores separately."""
        return {"group": self.group.astype(np.int64), "log_shares": self.log_shares}

    @classmethod
    def decode(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Raise an error: a file stores the components separately."""
        raise TypeError("the components of a grouped model are decoded on their own")

    def _starts(self) -> IntArray:
        return np.searchsorted(self.group, np.arange(self.n_classes))

    def _members(self, y: int) -> IntArray:
        return np.flatnonzero(self.group == y)

    def _leading(self) -> list[int]:
        """Return the most probable component of each class."""
        members = [self._members(y) for y in range(self.n_classes)]
        return [int(each[np.argmax(self.log_shares[each])]) for each in members]

    def _shares(self, observed: Observed, y: int) -> FloatArray:
        """Return P(component | e, y), shape (n_rows, n_components of the class)."""
        members = self._members(y)
        log_shares = self.log_shares[members]
        joint = self.inner.only(members).score(observed) + log_shares
        return np.exp(normalize_log(joint, log_shares)[0])


def _of_numbers(observed: Observed) -> bool:
    """Whether rows hold numbers of columns of any kind rather than bits."""
    return isinstance(observed.ones, TypedRows | CountRows)


def _completed(rows: Any, observed: Observed) -> Observed:
    """Return completed rows in the form of the given ones."""
    if not _of_numbers(observed):
        return Observed.from_symbols(rows)
    before = typed_rows(observed)
    return typed(np.asarray(rows, dtype=np.float64), before.types, before.log_jacobian)
