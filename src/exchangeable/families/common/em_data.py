"""Rows as EM sees them: in memory, or in chunks and on a cluster, where only sums are had."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.examples import Examples
from exchangeable.data.groups import Group, group_ones
from exchangeable.data.stream.chunk import Chunk
from exchangeable.data.stream.passes import Passes
from exchangeable.families.mixture import Mixture
from exchangeable.families.sums import Sums

NO_POSTERIOR = np.empty((0, 0))


@dataclass
class InMemory:
    """Rows in memory.

    Attributes
    ----------
    examples : Examples
        The distinct rows.
    member, row_weight : arrays of shape (n_rows,)
        Which of them each row of the data is, and how much that row counts; one row for each
        distinct one by default.
    n_jobs : int, optional
        Number of threads.
    device : jax device, optional
        Where passes are made, as far as models can; on the processor by default.
    memo : dict
        What models keep from pass to pass. Each run of EM has rows of its own, with its own memo.
    """

    examples: Examples
    member: IntArray | None = None
    row_weight: FloatArray | None = None
    n_jobs: int | None = None
    device: Any = None
    memo: dict[str, Any] = field(default_factory=dict, repr=False)

    def for_run(self, n_jobs: int | None) -> "InMemory":
        """Return the rows for one run of EM, with an empty memo."""
        return replace(self, n_jobs=n_jobs, memo={})

    @property
    def total(self) -> float:
        """The weight of all rows together."""
        return self.examples.total

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return self.examples.rows.n_variables

    @property
    def fingerprint(self) -> int:
        """A checksum of rows and weights."""
        return self.examples.fingerprint

    def expect(self, mixture: Mixture, moments: bool = False) -> Sums:
        """Return what a pass under some parameters sums."""
        model, log_prior = mixture.model, mixture.log_prior
        if self.device is not None:
            sums = model.expect_on(self.device, self, log_prior, moments)
            if sums is not None:
                return sums
        return model.expect(self, log_prior, moments)

    def best(self, candidates: Sequence[Mixture], moments: bool = False) -> tuple[Sums, Mixture]:
        """Return the candidate with the highest log-likelihood, and what a pass under it sums."""
        if self.device is not None:
            made = [
                (each.model.expect_on(self.device, self, each.log_prior, moments), each)
                for each in candidates
            ]
            passes = [(sums, each) for sums, each in made if sums is not None]
            if len(passes) == len(made):
                return max(passes, key=lambda one: one[0].log_likelihood)
        return type(candidates[0].model).best(self, candidates, moments)


class Recipe(Protocol):
    """How the classes of a chunk's rows are found."""

    def groups(self, chunk: Chunk, n_jobs: int | None) -> list[Group]:
        """Return the rows of each class, by what share of them is the class's."""


@dataclass(frozen=True)
class Labelled:
    """Rows belong to the class of their label."""

    classes: npt.NDArray[Any]

    def groups(self, chunk: Chunk, n_jobs: int | None) -> list[Group]:
        """Return the rows of each class."""
        return chunk.groups(self.classes)


class PosteriorRecipe:
    """Rows belong to components by their posteriors, unless next to nothing of them does."""

    negligible = 1e-8

    def posterior(self, chunk: Chunk, n_jobs: int | None) -> FloatArray:
        """Return the posteriors of the rows that count."""
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
class Scored(PosteriorRecipe):
    """Posteriors under a mixture."""

    mixture: Mixture

    def posterior(self, chunk: Chunk, n_jobs: int | None) -> FloatArray:
        """Return the posteriors of the rows that count."""
        data = InMemory(chunk.examples, n_jobs=n_jobs)
        return self.mixture.model.posteriors(data, self.mixture.log_prior)


@dataclass(frozen=True)
class Dealt(PosteriorRecipe):
    """Each row dealt to one component."""

    component: npt.NDArray[np.integer[Any]]
    n_components: int

    def posterior(self, chunk: Chunk, n_jobs: int | None) -> FloatArray:
        """Return the posteriors of the rows that count."""
        own = self.component[chunk.first : chunk.first + chunk.n_counting]
        return np.asarray(own[:, None] == np.arange(self.n_components), dtype=np.float64)


@dataclass(frozen=True)
class StreamedSums(Sums):
    """What a pass over chunks sums; in place of the posteriors stands how to find them again.

    Attributes
    ----------
    inner : Sums
        The family's own sums.
    recipe : PosteriorRecipe
        How to find the posteriors of a chunk.
    """

    inner: Sums
    recipe: PosteriorRecipe


@dataclass(frozen=True)
class Streamed:
    """Rows in chunks, or on a cluster.

    Posteriors are not kept: a pass computes those that it needs from the parameters again.

    Attributes
    ----------
    passes : Passes
        The rows.
    n_rows : int
        Number of rows that count.
    total : float
        The weight of all rows together.
    average : array of shape (n_variables,)
        Share of the weight that has each variable on.
    """

    passes: Passes
    n_rows: int
    total: float
    average: FloatArray

    @classmethod
    def of(cls, passes: Passes) -> "Streamed":
        """Make the first pass."""
        n_rows, total, ones = passes.total(partial(_first_look, n_jobs=passes.n_jobs))
        return cls(passes, int(n_rows), float(total), ones / total if total > 0 else ones)

    def for_run(self, n_jobs: int | None) -> "Streamed":
        """Return the rows for one run of EM; runs over chunks take turns, with all threads."""
        return self

    @property
    def n_jobs(self) -> int | None:
        """Number of threads."""
        return self.passes.n_jobs

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return self.passes.n_variables

    @property
    def fingerprint(self) -> int:
        """A checksum of the rows."""
        return self.passes.fingerprint

    def expect(self, mixture: Mixture, moments: bool = False) -> StreamedSums:
        """Return what a pass under some parameters sums."""
        return self._expect([mixture], moments)[0]

    def best(self, candidates: Sequence[Mixture], moments: bool = False) -> tuple[Sums, Mixture]:
        """Return the candidate with the highest log-likelihood, and what a pass under it sums."""
        sums = self._expect(candidates, moments)
        best = len(candidates) - 1
        for number in range(best):
            if sums[number].log_likelihood >= sums[best].log_likelihood:
                best = number
        return sums[best], candidates[best]

    def _expect(self, candidates: Sequence[Mixture], moments: bool) -> list[StreamedSums]:
        summed = self.passes.total(
            partial(_chunk_sums, candidates=candidates, moments=moments, n_jobs=self.n_jobs)
        )
        streamed = []
        for mixture, (kind, values) in zip(candidates, summed, strict=True):
            inner = kind.sums(values)
            streamed.append(
                StreamedSums(
                    inner.log_likelihood,
                    NO_POSTERIOR,
                    inner.totals,
                    inner,
                    Scored(mixture),
                    moments=inner.moments,
                )
            )
        return streamed


class _Kind:
    """The type of some sums; adding two of a kind changes nothing, so that passes can add it."""

    def __init__(self, kind: type[Sums]) -> None:
        self.kind = kind

    def __add__(self, other: "_Kind") -> "_Kind":
        return self

    def sums(self, values: dict[str, Any]) -> Sums:
        return self.kind(**values, posterior=NO_POSTERIOR)


def _first_look(chunk: Chunk, n_jobs: int | None = None) -> tuple[int, float, FloatArray]:
    """Return the number of rows that count, their weight, and how often each variable is on."""
    group = Group(np.arange(chunk.rows.n_rows), chunk.weights)
    return chunk.n_counting, group.total, group_ones(chunk.rows, [group], n_jobs)[0]


def _chunk_sums(
    chunk: Chunk, candidates: Sequence[Mixture], moments: bool, n_jobs: int | None = None
) -> list[tuple[_Kind, dict[str, Any]]]:
    """Return, under each of several mixtures, the sums over a chunk without its posteriors."""
    data = InMemory(chunk.examples, n_jobs=n_jobs)
    summed = []
    for mixture in candidates:
        sums = mixture.model.expect(data, mixture.log_prior, moments)
        values = {f.name: getattr(sums, f.name) for f in fields(sums) if f.name != "posterior"}
        summed.append((_Kind(type(sums)), values))
        data.memo.clear()
    return summed
