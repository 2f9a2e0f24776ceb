"""Recipes for computing the classes or posteriors of a chunk's rows, since they are not stored."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.groups import Group
from exchangeable.data.stream.chunk import Chunk
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.mixture import Mixture


class Recipe(Protocol):
    """How the classes of a chunk's rows are computed."""

    def groups(self, chunk: Chunk, n_jobs: int | None) -> list[Group]:
        """Return the rows of each class, with their share in it."""


class PosteriorRecipe:
    """Rows belong to components by their posteriors, unless these are negligible."""

    negligible = 1e-8

    def posterior(self, chunk: Chunk, n_jobs: int | None) -> FloatArray:
        """Return the posteriors of the rows with positive weight."""
        raise NotImplementedError

    def groups(self, chunk: Chunk, n_jobs: int | None) -> list[Group]:
        """Return the rows of each component."""
        by_component = []
        for share in self.posterior(chunk, n_jobs).T:
            mass = chunk.examples.weights * share
            members = np.flatnonzero(mass > self.negligible)
            by_component.append(Group(members, mass[members]))
        return by_component


@dataclass(frozen=True)
class Labelled(PosteriorRecipe):
    """Rows belong to the class of their label."""

    classes: npt.NDArray[Any]

    def posterior(self, chunk: Chunk, n_jobs: int | None) -> FloatArray:
        """Return 1 for the class of each row with positive weight, 0 for the others."""
        known = chunk.labelled(self.classes).clamp
        return np.asarray(known[:, None] == np.arange(self.classes.size), dtype=np.float64)

    def groups(self, chunk: Chunk, n_jobs: int | None) -> list[Group]:
        """Return the rows of each class."""
        return chunk.groups(self.classes)


@dataclass(frozen=True)
class Scored(PosteriorRecipe):
    """Posteriors under a mixture, of rows with all columns and their missing entries."""

    mixture: Mixture

    def posterior(self, chunk: Chunk, n_jobs: int | None) -> FloatArray:
        """Return the posteriors of the rows with positive weight."""
        data = InMemory(chunk.origin.examples, n_jobs=n_jobs)
        return self.mixture.model.posteriors(data, self.mixture.log_prior)


@dataclass(frozen=True)
class PartlyLabelled(PosteriorRecipe):
    """Labelled rows belong to the class of their label, the others by their posteriors."""

    mixture: Mixture
    classes: npt.NDArray[Any]

    def posterior(self, chunk: Chunk, n_jobs: int | None) -> FloatArray:
        """Return the posteriors of the rows with positive weight."""
        posterior = Scored(self.mixture).posterior(chunk, n_jobs)
        known = chunk.labelled(self.classes).clamp
        labelled = np.flatnonzero(known >= 0)
        posterior[labelled] = 0.0
        posterior[labelled, known[labelled]] = 1.0
        return posterior


@dataclass(frozen=True)
class Drawn(PosteriorRecipe):
    """Posteriors of the distinct rows that were drawn at random; `member` numbers all rows."""

    drawn: FloatArray
    member: IntArray

    def posterior(self, chunk: Chunk, n_jobs: int | None) -> FloatArray:
        """Return the posteriors of the rows with positive weight."""
        return self.drawn[self.member[chunk.first : chunk.first + chunk.n_counting]]


@dataclass(frozen=True)
class Dealt(PosteriorRecipe):
    """Each row assigned to one component."""

    component: npt.NDArray[np.integer[Any]]
    n_components: int

    def posterior(self, chunk: Chunk, n_jobs: int | None) -> FloatArray:
        """Return the posteriors of the rows with positive weight."""
        own = self.component[chunk.first : chunk.first + chunk.n_counting]
        return np.asarray(own[:, None] == np.arange(self.n_components), dtype=np.float64)


def class_weights(chunk: Chunk) -> dict[Any, float]:
    """Return the weight of each class in a chunk, by label; None for unlabelled rows."""
    classes = chunk.classes
    pairs = zip(classes.tolist(), chunk.groups(classes) if classes.size else [], strict=True)
    weights = {label: group.total for label, group in pairs}
    return weights | ({None: chunk.unlabelled_weight} if chunk.unlabelled_weight else {})
