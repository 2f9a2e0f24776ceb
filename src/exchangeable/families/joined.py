"""Models of several families as one: the classes of all, one after another."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray, SymbolArray
from exchangeable.data.observed import Observed
from exchangeable.families.contract import Arrays, Completions, Model, Normal, Normals
from exchangeable.families.page import OnPage
from exchangeable.families.sums import RowsInMemory, Sums
from exchangeable.partitions import Partition


@dataclass(frozen=True)
class JoinedModel(Model):
    """Models of the same variables, with their classes in sequence.

    Every query is passed to the part of its class, so nothing is converted and any `Model` can be
    joined.

    Attributes
    ----------
    parts : list of Model
        The models, of any families.
    """

    kind: ClassVar[str] = "joined"
    parts: list[Model]

    @property
    def n_classes(self) -> int:
        """Number of classes of all parts."""
        return sum(part.n_classes for part in self.parts)

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return self.parts[0].n_variables

    @property
    def n_parameters(self) -> int:
        """Number of free parameters, without the probabilities of the classes."""
        return sum(part.n_parameters for part in self.parts)

    @property
    def n_steps(self) -> float:
        """Nanoseconds of the first score beyond those of the parts: none."""
        return 0.0

    @property
    def types(self) -> Any:
        """The schema of the columns, None if all are bits or parts disagree."""
        found = [getattr(part, "types", None) for part in self.parts]
        return found[0] if all(each == found[0] for each in found) else None

    @property
    def partitions(self) -> list[Partition]:
        """The blocks of each class."""
        return self._listed(lambda part: part.partitions)

    def log_urn_weights(self) -> FloatArray:
        """Return the log-weight of each variable in each class, 0 if a part has no weights."""
        return np.concatenate([part.log_urn_weights() for part in self.parts], axis=1)

    def units(self) -> IntArray:
        """Return the number of the set of classes with which each class shares parameters."""
        each, begin = list[IntArray](), 0
        for part in self.parts:
            each.append(part.units() + begin)
            begin = int(each[-1][-1]) + 1
        return np.concatenate(each)

    def only(self, classes: IntArray) -> Self:
        """Return the model of some of the classes, in the given order."""
        kept, begin = [], 0
        for part in self.parts:
            end = begin + part.n_classes
            mine = classes[(classes >= begin) & (classes < end)] - begin
            if mine.size:
                kept.append(part.only(mine))
            begin = end
        return type(self)(kept)

    @classmethod
    def stack(cls, models: Sequence["JoinedModel"]) -> Self:
        """Return the model of all classes of several models."""
        return cls([part for model in models for part in model.parts])

    def count_probabilities(self) -> list[list[FloatArray]]:
        """Return q(l | y) for every class, block and count l."""
        return self._listed(lambda part: part.count_probabilities())

    def edges(self) -> list[IntArray]:
        """Return, for each class, the (node, parent) of each edge of its forest."""
        return self._listed(lambda part: part.edges())

    def on_page(self) -> OnPage | None:
        """Return the page data of the parts, None if one of them has none."""
        parts = [part.on_page() for part in self.parts]
        found = [part for part in parts if part is not None]
        if len(found) < len(parts):
            return None
        steps = sum(part.steps for part in found)
        most = max(part.normals for part in found)
        return OnPage("joined", "exchangeable.families", {"parts": found}, steps, most)

    def score(self, observed: Observed, n_jobs: int | None = None) -> FloatArray:
        """Return log P(e | y), shape (n_rows, n_classes); e are a row's known entries."""
        return np.concatenate([part.score(observed, n_jobs) for part in self.parts], axis=1)

    def marginals(self, observed: Observed, y: int) -> FloatArray:
        """Return P(x_j = 1 | e, y), shape (n_rows, n_variables); known entries stay 0 or 1."""
        part, inner = self._class(y)
        return part.marginals(observed, inner)

    def mean_marginals(self, observed: Observed, shares: FloatArray) -> FloatArray:
        """Return Σ_y shares[row, y]·P(x_j = 1 | e, y), summed within the parts."""
        means, begin = np.zeros((observed.n_rows, self.n_variables)), 0
        for part in self.parts:
            end = begin + part.n_classes
            means += part.mean_marginals(observed, shares[:, begin:end])
            begin = end
        return means

    def predictive(
        self, observed: Observed, variable: int, y: int
    ) -> FloatArray | Normal | Normals:
        """Return the distribution of an unknown variable, given the known ones."""
        part, inner = self._class(y)
        return part.predictive(observed, variable, inner)

    def complete(self, observed: Observed, y: int) -> tuple[SymbolArray, FloatArray]:
        """Return the completion x of each row by the part of the class, and log P(x | y)."""
        part, inner = self._class(y)
        return part.complete(observed, inner)

    def most_probable(
        self, observed: Observed, log_prior: FloatArray, classes: IntArray
    ) -> Completions:
        """Return the best completion over the parts, among some classes."""
        best, begin = Completions.none(observed), 0
        for part in self.parts:
            end = begin + part.n_classes
            mine = classes[(classes >= begin) & (classes < end)] - begin
            if mine.size:
                found = part.most_probable(observed, log_prior[begin:end], mine)
                best.take_better(found._replace(classes=found.classes + begin))
            begin = end
        return best

    def draw(self, observed: Observed, y: int, rng: np.random.Generator) -> SymbolArray:
        """Return a completion of each row, drawn from P(x | e, y)."""
        part, inner = self._class(y)
        return part.draw(observed, inner, rng)

    def imagined(self, n_rows: int, y: int, rng: np.random.Generator) -> Observed:
        """Return rows drawn from P(x | y)."""
        part, inner = self._class(y)
        return part.imagined(n_rows, inner, rng)

    def expect(self, data: RowsInMemory, log_prior: FloatArray, moments: bool = False) -> Sums:
        """Raise an error: families are joined after they have been fitted."""
        raise TypeError("joined families are not fitted together; fit each, then join them")

    def encode(self) -> Arrays:
        """Raise an error: a file stores the parts one by one."""
        raise TypeError("the parts of joined families are encoded one by one")

    @classmethod
    def decode(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Raise an error: a file stores the parts one by one."""
        raise TypeError("the parts of joined families are decoded one by one")

    def _listed(self, entries: Callable[[Model], list[Any]]) -> list[Any]:
        """Return the results for the classes of all parts."""
        return list(chain.from_iterable(entries(part) for part in self.parts))

    def _class(self, y: int) -> tuple[Model, int]:
        """Return the part of a class, and the number of the class in it."""
        for part in self.parts:
            if y < part.n_classes:
                return part, y
            y -= part.n_classes
        raise IndexError(f"class {y} of none")
