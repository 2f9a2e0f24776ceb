"""Neural mixtures as a family: training of a decoder in place of EM."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.data.groups import Group, group_ones
from exchangeable.families.contract import Trainer
from exchangeable.families.mixture import Mixture
from exchangeable.families.neural.rows import n_columns
from exchangeable.families.neural.settings import checked
from exchangeable.families.problem import Problem
from exchangeable.runtime.devices import find_device, import_jax

HERE = "exchangeable.families.neural"
LEAST_CHANCE = 1e-6


class NeuralTrainer(Trainer):
    """A network decodes the parameters of components from points of a latent space.

    P(x) ≈ 1/k Σ_p P(x | decoder(z_p)) for points z_p that are spread evenly over a normal
    distribution. The network is trained by gradients of the log-likelihood; then k points are
    decoded, and what is left is an ordinary mixture.
    """

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
        training, components = import_jax(purpose, f"{HERE}.training", f"{HERE}.components")
        rows = problem.rows
        n, holes = rows.rows.n_variables, rows.holes is not None or has_holes(problem)
        component = components.Independent(self._means(), n_columns(n), holes)
        self._training = training.Training(
            component,
            self.settings,
            rows,
            problem.valid or rows,
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

    def _means(self) -> FloatArray:
        """Return how often each variable is on among the rows that know it, smoothed."""
        examples = self.problem.rows
        everyone = Group(np.arange(examples.rows.n_rows), examples.weights)
        on = group_ones(examples.rows, [everyone], 1)[0]
        hidden = group_ones(examples.holes, [everyone], 1)[0] if examples.holes else 0.0
        known = np.maximum(examples.total - hidden, on)
        alpha = max(self.problem.alpha, LEAST_CHANCE)
        return np.asarray((on + alpha) / (known + 2 * alpha))


def has_holes(problem: Problem) -> bool:
    """Whether held-out rows have entries that are not known."""
    return problem.valid is not None and problem.valid.holes is not None
