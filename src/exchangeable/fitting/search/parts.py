"""The parts of a joined mixture, and which of their components are needed most."""

from dataclasses import dataclass, replace

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families import family_named
from exchangeable.families.contract import FamilySpec, Model, Trainer
from exchangeable.families.joined import JoinedModel
from exchangeable.families.mixture import Mixture

SHARE_STEPS = 30
"""Steps of the EM that fits shares."""
NO_WEIGHT = 1e-9
SHORTER = 0.95


@dataclass(frozen=True)
class Part:
    """The components of a family.

    Attributes
    ----------
    spec : FamilySpec
        The family.
    number : int
        The number of the part.
    mixture : Mixture
        The components.
    share : float
        Their weights.
    """

    spec: FamilySpec
    number: int
    mixture: Mixture
    share: float

    @property
    def size(self) -> int:
        """Number of parameters, including its share."""
        return self.mixture.n_parameters + 1

    def pruned(self, n_parameters: int, weights: FloatArray) -> "Part":
        """Return the components with high weight per parameter, up to a number of parameters.

        At least one is kept.
        """
        kept = most_useful(self.mixture, weights, n_parameters)
        log_prior = np.log(weights[kept] / weights[kept].sum())
        return replace(self, mixture=Mixture(self.mixture.model.only(kept), log_prior))

    def compacted(
        self, n_parameters: int, rank: int | None, rng: np.random.Generator
    ) -> "Part | None":
        """Return a compact version with at most this many parameters, None if there is none."""
        if n_parameters >= self.size and rank is None:
            return self
        few = self.spec.compact and self.spec.compact(self.mixture, n_parameters, rank, rng)
        return replace(self, mixture=few) if few else None


def fit_shares(likelihoods: FloatArray, shares: FloatArray) -> FloatArray:
    """Return the shares of parts, given the likelihoods of rows (lines) under each."""
    for _ in range(SHARE_STEPS):
        evidence = np.maximum(likelihoods @ shares, 1e-30)
        shares = shares * ((1 / evidence) @ likelihoods) / evidence.size
    return np.asarray(shares / shares.sum())


def parts_of(model: Model) -> list[Model]:
    """Return the parts of a model, which may be a single one."""
    return model.parts if isinstance(model, JoinedModel) else [model]


def part_numbers(model: Model) -> IntArray:
    """Return the number of the part of each component."""
    sizes = [part.n_classes for part in parts_of(model)]
    return np.repeat(np.arange(len(sizes)), sizes)


def em_family(family: str) -> FamilySpec | None:
    """Return the family for refitting components, None if there is none."""
    spec = family_named(family)
    if issubclass(spec.family, Trainer):
        spec = family_named(spec.refits) if spec.refits is not None else spec
    return None if issubclass(spec.family, Trainer) else spec


def most_useful(mixture: Mixture, weights: FloatArray, n_parameters: int) -> IntArray:
    """Return components with high weight per parameter, up to a number of parameters.

    Components that share parameters stay together; at least one is kept.
    """
    model = mixture.model
    units = model.units()
    mass, sizes = np.bincount(units, weights), unit_sizes(model)
    order = np.argsort(-mass / sizes, kind="stable")
    order = order[mass[order] > NO_WEIGHT]
    count = int(np.searchsorted(np.cumsum(sizes[order]), n_parameters, "right"))
    while True:
        count = max(1, count)
        kept = np.flatnonzero(np.isin(units, order[:count]) & (weights > 0))
        if count == 1 or model.only(kept).n_parameters + kept.size - 1 <= n_parameters:
            return kept
        count = int(SHORTER * count)


def unit_sizes(model: Model) -> FloatArray:
    """Return the approximate number of parameters of each set of components that share them."""
    sizes = []
    for part in parts_of(model):
        units = part.units()
        n_units = int(units[-1]) + 1
        sizes.append(part.n_parameters / n_units + np.bincount(units))
    return np.concatenate(sizes)
