"""A family in one file: coins. All variables of a class are on with the same probability.

It shows all that it takes to add a family; `tests/families/test_contract.py` runs over it as over
the library's own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray, SymbolArray
from exchangeable.data.observed import Observed
from exchangeable.families.common.log_linear.model import posteriors_with_holes
from exchangeable.families.contract import Family, FamilySpec, Model, SearchSpace, single_variables
from exchangeable.families.mixture import Mixture
from exchangeable.families.sums import RowsInMemory, Sums
from exchangeable.partitions import Partition
from exchangeable.storage.checks import needed, numbers


@dataclass(frozen=True)
class CoinSums(Sums):
    """Weight of the known ones, and of all known entries, of each class."""

    ones: FloatArray
    known: FloatArray


@dataclass(frozen=True)
class CoinModel(Model):
    """The probability of each class's coin."""

    kind: ClassVar[str] = "coins"
    chance: FloatArray
    width: int

    @property
    def n_classes(self) -> int:
        return self.chance.size

    @property
    def n_variables(self) -> int:
        return self.width

    @property
    def n_parameters(self) -> int:
        return self.chance.size

    @property
    def partitions(self) -> list[Partition]:
        return single_variables(self.width, self.n_classes)

    def score(self, observed: Observed, n_jobs: int | None = None) -> FloatArray:
        on, off = _counts(observed)
        return np.outer(on, np.log(self.chance)) + np.outer(off, np.log1p(-self.chance))

    def marginals(self, observed: Observed, y: int) -> FloatArray:
        states = observed.symbols()
        return np.where(states < 0, self.chance[y], states)

    def complete(self, observed: Observed, y: int) -> tuple[SymbolArray, FloatArray]:
        states = observed.symbols()
        states[states < 0] = self.chance[y] > 0.5
        return states, self.score(Observed.from_symbols(states))[:, y]

    def draw(self, observed: Observed, y: int, rng: np.random.Generator) -> SymbolArray:
        states = observed.symbols()
        drawn = rng.random(states.shape) < self.chance[y]
        return np.where(states < 0, drawn, states).astype(np.int8)

    def expect(self, data: RowsInMemory, log_prior: FloatArray, moments: bool = False) -> CoinSums:
        examples = data.examples
        log_likelihood, posterior = posteriors_with_holes(self, examples, log_prior, data.n_jobs)
        mass = examples.weights[:, None] * posterior
        on, off = _counts(examples.observed)
        return CoinSums(log_likelihood, posterior, mass.sum(axis=0), on @ mass, (on + off) @ mass)

    def only(self, classes: IntArray) -> Self:
        return type(self)(self.chance[classes], self.width)

    @classmethod
    def stack(cls, models: Sequence["CoinModel"]) -> Self:
        return cls(np.concatenate([model.chance for model in models]), models[0].width)

    def encode(self) -> dict[str, npt.NDArray[Any]]:
        return {"chance": self.chance, "width": np.array([self.width])}

    @classmethod
    def decode(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        chance, width = needed(arrays, ("chance", "width"))
        return cls(numbers(chance, "chance", chance.shape, low=0, high=1), int(width[0]))


def _counts(observed: Observed) -> tuple[FloatArray, FloatArray]:
    """Return the numbers of known ones and known zeros of each row."""
    states = observed.symbols()
    return (states == 1).sum(axis=1).astype(float), (states == 0).sum(axis=1).astype(float)


class CoinFamily(Family):
    """A coin's probability is the smoothed share of ones."""

    closed_form = True
    remembers = False

    def start(self, data: Any, init: str, rng: np.random.Generator) -> Sums:
        k = self.problem.n_components
        return self.held(data, rng.dirichlet(np.ones(k), size=data.examples.rows.n_rows))

    def held(self, data: Any, posterior: FloatArray) -> Sums:
        return Sums(0.0, posterior, data.examples.weights @ posterior)

    def first(self, data: Any, sums: Any, blocks: Any, before: Any, rng: Any) -> Mixture:
        on, off = _counts(data.examples.observed)
        mass = data.examples.weights[:, None] * sums.posterior
        model = self._fitted(on @ mass, (on + off) @ mass, data.n_variables)
        return Mixture(model, self.log_shares(sums.totals))

    def following(self, data: Any, model: Any, sums: Any, step: int) -> list[Model]:
        return [self._fitted(sums.ones, sums.known, data.n_variables)]

    def prior_gain(self, before: Any, after: Any) -> float:
        change = np.log(after.chance / before.chance) + np.log1p(-after.chance)
        return float(self.problem.alpha * (change - np.log1p(-before.chance)).sum())

    def _fitted(self, ones: FloatArray, known: FloatArray, width: int) -> CoinModel:
        alpha = self.problem.alpha
        return CoinModel((ones + alpha) / (known + 2 * alpha), width)


SPEC = FamilySpec(
    name="coins",
    summary="all variables of a component are on with the same probability",
    model=CoinModel,
    family=CoinFamily,
    blocks=("independent",),
    blocks_hint="its variables are alike and independent",
    needs_smoothing=True,
    cannot={
        "partial_fit": "nobody has needed it",
        "chunks": "nobody has needed it",
    },
    search=SearchSpace(first_components=2, most_components=4),
)
