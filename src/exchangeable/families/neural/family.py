"""Neural mixtures as a family: training of a decoder in place of EM."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.data.examples import Examples
from exchangeable.data.groups import Group, group_ones
from exchangeable.devices.choice import find_device, import_jax
from exchangeable.families.contract import Trainer
from exchangeable.families.mixture import Mixture
from exchangeable.families.neural.rows import n_columns
from exchangeable.families.neural.settings import checked
from exchangeable.families.problem import Problem, fill_by_frequency

HERE = "exchangeable.families.neural"
LEAST_CHANCE = 1e-6


class NeuralTrainer(Trainer, ABC):
    """A network decodes the parameters of components from points of a latent space.

    P(x) ≈ 1/k Σ_p P(x | decoder(z_p)) for points z_p that are spread evenly over a normal
    distribution. The network is trained by gradients of the log-likelihood; then k points are
    decoded, and what is left is an ordinary mixture.
    """

    module: ClassVar[str]
    """Where its components are written in JAX."""
    _training: Any = None

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.settings = checked(problem.settings)

    def train(
        self, data: Any, rng: np.random.Generator, tol: float, max_iter: int
    ) -> Iterator[tuple[float, float]]:
        """Train, one iteration at a time, until held-out rows gain less than `tol`."""
        problem, purpose = self.problem, f"family={self.problem.settings.family!r}"
        device = find_device(problem.device, purpose)
        training, made = import_jax(purpose, f"{HERE}.training", f"{HERE}.{self.module}")
        rows, valid = self.rows()
        columns = n_columns(rows.rows.n_variables)
        holes = rows.holes is not None or valid.holes is not None
        component = self.component(made, data, rng, columns, holes)
        self._training = training.Training(
            component,
            self.settings,
            rows,
            valid,
            problem.n_components,
            rng,
            device,
        )
        yield from self._training.iterations(tol, max_iter)

    def mixture(self, data: Any) -> Mixture:
        """Return the components of the best decoder."""
        mixture: Mixture = self._training.mixture()
        return mixture

    @property
    def converged(self) -> bool:
        """Whether training has ended because nothing more was to be gained."""
        return bool(self._training.converged)

    def rows(self) -> tuple[Examples, Examples]:
        """Return the rows to fit and the rows to stop by."""
        return self.problem.rows, self.problem.valid or self.problem.rows

    @abstractmethod
    def component(
        self, module: Any, data: Any, rng: np.random.Generator, n_columns: int, holes: bool
    ) -> Any:
        """Return what the outputs of the network stand for."""


class IndependentTrainer(NeuralTrainer):
    """Components of independent variables."""

    module = "components"

    def component(
        self, module: Any, data: Any, rng: np.random.Generator, n_columns: int, holes: bool
    ) -> Any:
        """Return components that begin at the means of the rows."""
        return module.Independent(self.means(), n_columns, holes)

    def means(self) -> FloatArray:
        """Return how often each variable is on among the rows that know it, smoothed."""
        examples = self.problem.rows
        everyone = Group(np.arange(examples.rows.n_rows), examples.weights)
        on = group_ones(examples.rows, [everyone], 1)[0]
        hidden = group_ones(examples.holes, [everyone], 1)[0] if examples.holes else 0.0
        known = np.maximum(examples.total - hidden, on)
        alpha = max(self.problem.alpha, LEAST_CHANCE)
        return np.asarray((on + alpha) / (known + 2 * alpha))


class UrnTrainer(IndependentTrainer):
    """Components of weighted urns, trained on rows whose holes are filled by a draw."""

    module = "urns"

    def rows(self) -> tuple[Examples, Examples]:
        """Return the rows to fit and the rows to stop by, complete."""
        rows, valid = super().rows()
        return fill_by_frequency(rows), fill_by_frequency(valid)

    def component(
        self, module: Any, data: Any, rng: np.random.Generator, n_columns: int, holes: bool
    ) -> Any:
        """Return components that begin at the means of the rows, with their counts."""
        return module.Urns(self.means(), n_columns)


class TreeTrainer(NeuralTrainer):
    """Components of trees."""

    module = "trees"

    def component(
        self, module: Any, data: Any, rng: np.random.Generator, n_columns: int, holes: bool
    ) -> Any:
        """Return components that begin as a small mixture of trees."""
        k = self.problem.n_components
        count = module.n_trees(self.settings.trees, min(self.settings.points, k), k)
        return module.Trees(module.first_trees(self.problem, data, count, rng), n_columns, holes)
