"""Neural mixtures as a family: training of a decoder in place of EM."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.data.examples import Examples
from exchangeable.data.groups import Group, group_ones
from exchangeable.devices.choice import (
    check_room,
    find_device,
    import_jax,
    out_of_memory_told,
)
from exchangeable.devices.networks.batches import Symbols, n_columns
from exchangeable.devices.networks.head import SHARE_CELLS, Settings
from exchangeable.families.contract import Begun, Trainer
from exchangeable.families.mixture import Mixture
from exchangeable.families.neural.components import Component, Independent
from exchangeable.families.neural.points import even_points
from exchangeable.families.neural.settings import Neural, checked
from exchangeable.families.neural.trees import ParentArray, Trees, n_trees, tree_of
from exchangeable.families.neural.urns import Urns
from exchangeable.families.problem import Problem, fill_by_frequency
from exchangeable.runtime import apart
from exchangeable.runtime.clock import OutOfTime, Pace
from exchangeable.runtime.interrupts import interrupted
from exchangeable.runtime.memory import check_memory

JAX_BYTES = 5e8
"""Approximate memory of JAX, its compiler and a batch."""
NEGLIGIBLE = 1e-5
"""Total share of the components that are dropped, smallest first."""
LEAST_CHANCE = 1e-6
FEWEST_ITERATIONS = 4
"""Training cut short before this many iterations has hardly started, and is not judged."""
TRAINING_PART = 0.6
"""Fraction of a limited time after which the components settle."""
FIRST_ITERATIONS = 10
"""Iterations with independent variables before trees are chosen."""
NO_SCORES = np.empty(0)
DEFAULTS = checked(Neural())
SETTLED = "settled"
"""The last phase of training, after the numbered stages."""


def work(n_rows: int, n_variables: int, n_components: int, settings: Settings = DEFAULTS) -> float:
    """Return the approximate memory of a fit: JAX, rows, components, and scores for shares.

    Components are decoded in single precision, layer by layer, and converted to double.
    """
    scores = 12.0 * max(min(SHARE_CELLS, float(n_rows) * n_components), n_components)
    layers = 4.0 * (2 * settings.latent + sum(settings.layers))
    components = n_components * (layers + 20.0 * n_columns(n_variables))
    return JAX_BYTES + scores + float(n_rows) * n_variables + components


class Stage(NamedTuple):
    """One stage of training.

    Attributes
    ----------
    component : Component
        What the outputs of the network represent.
    most : int
        Maximum number of iterations.
    last : bool
        Whether it is the last stage.
    layers : list of (weights, offset), optional
        The initial network.
    """

    component: Component
    most: int
    last: bool = True
    layers: Any = None


class NeuralTrainer(Trainer, ABC):
    """A network decodes the parameters of components from points of a latent space.

    P(x) ≈ 1/k Σ_p P(x | decoder(z_p)) for points z_p that are spread evenly over a normal
    distribution. The network is trained by gradients of the log-likelihood; then k points are
    decoded, and the result is an ordinary mixture.
    """

    _training: Any = None
    _component: Component
    _phase: str

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.settings = checked(problem.settings)
        self._ended: dict[str, Any] = {}

    def train(
        self,
        data: Any,
        rng: np.random.Generator,
        tol: float,
        max_iter: int,
        begun: Begun | None = None,
    ) -> Iterator[tuple[float, float]]:
        """Train, one iteration at a time, until held-out rows improve by less than `tol`.

        Training that was `begun` repeats the random draws before the first iteration and so chooses
        the same trees again; a file therefore only stores networks.
        """
        problem, purpose = self.problem, f"family={self.problem.settings.family!r}"
        device = find_device(problem.device, purpose)
        examples, k = problem.rows.rows, problem.n_components
        least = work(examples.n_rows, examples.n_variables, k, self.settings)
        (training,) = import_jax(purpose, "exchangeable.devices.networks.training")
        rows, valid = self.rows()
        columns = n_columns(rows.rows.n_variables)
        holes = rows.holes is not None or valid.holes is not None
        seen = [symbols(each, columns, holes) for each in (rows, valid)]
        latent, n_points = self.settings.latent, self.settings.points
        final = even_points(k, latent, rng)
        points = final if k <= n_points else even_points(n_points, latent, rng)
        kept = {} if begun is None else by_phase(begun.parts, training.Kept)
        n_iter, clock = 0 if begun is None else begun.n_iter, problem.clock
        pace = Pace(clock.part(TRAINING_PART) if self.settings.settle else clock)
        for number, stage in enumerate(self.stages(rng, columns, holes, max_iter)):
            self._component = component = stage.component
            settings, head = self.settings, component.head
            if holes:
                size = min(settings.batch_size, component.most_rows)
                settings = replace(settings, batch_size=size)
            check_memory_on(device, least + head.room(settings.batch_size, len(points)), purpose)
            task = training.Task(head, component.constants, component.bias, *seen, points, final)
            with out_of_memory_told(purpose):
                self._training = training.Training(
                    task, settings, rng, device, pace, apart.begin, stage.layers
                )
                self._phase = str(number)
                known = kept.pop(self._phase, None)
                if known is None and kept:
                    raise training.misfit(f"without phase {self._phase}")
                asked = tol, stage.most, stage.last, known, bool(kept)
                for worth in self._training.iterations(*asked):
                    n_iter += 1
                    yield worth
                self._end_phase()
            if self._training.late:
                break
        fewest = 1 if interrupted() else FEWEST_ITERATIONS
        if self._training.late and n_iter < fewest and not clock.patient:
            raise OutOfTime(f"there was time for {n_iter} iterations, too few to judge it")
        pace.clock, self._phase = clock, SETTLED
        settled = kept.pop(SETTLED, None)
        if kept:
            raise training.misfit(f"of {', '.join(kept)}, which is no part of it")
        with out_of_memory_told(purpose):
            yield from self._training.settled(max_iter - n_iter, settled)

    def state(self) -> Mapping[str, Any]:
        """Return the state needed to continue: finished phases, and the latest one."""
        return self._ended | named(self._phase, self._training.state())

    def _end_phase(self) -> None:
        """Store what later phases start from."""
        self._ended |= named(self._phase, self._training.state(done=True))

    def mixture(self, data: Any) -> Mixture:
        """Return the components of the best decoder, without those of negligible share."""
        with out_of_memory_told(f"family={self.problem.settings.family!r}"):
            outputs, shares = self._training.components()
        order = np.argsort(shares)
        kept = np.sort(order[np.cumsum(shares[order]) > NEGLIGIBLE])
        with np.errstate(divide="ignore"):
            return Mixture(self._component.model(outputs), np.log(shares)).only(kept)

    def scores(self, mixture: Mixture, n_jobs: int | None) -> tuple[FloatArray, FloatArray]:
        """Return log P of each training and held-out row, on the device if they are complete."""
        rows, valid = self.problem.rows, self.problem.valid_rows
        if rows.holes is None and (valid is None or valid.holes is None):
            with out_of_memory_told(f"family={self.problem.settings.family!r}"):
                each, held = self._training.scores()
            return each, held if valid is not None else NO_SCORES
        each = mixture.model.log_likelihoods(mixture.log_prior, rows, n_jobs)
        if valid is None:
            return each, NO_SCORES
        return each, mixture.model.log_likelihoods(mixture.log_prior, valid, n_jobs)

    @property
    def converged(self) -> bool:
        """Whether training has converged."""
        return bool(self._training.converged)

    def rows(self) -> tuple[Examples, Examples]:
        """Return the training rows and the held-out rows."""
        return self.problem.rows, self.problem.valid_rows or self.problem.rows

    def stages(
        self, rng: np.random.Generator, n_columns: int, holes: bool, max_iter: int
    ) -> Iterator[Stage]:
        """Yield what to train, one after the other; each has been trained before the next."""
        yield Stage(self.component(n_columns, holes), max_iter)

    @abstractmethod
    def component(self, n_columns: int, holes: bool) -> Component:
        """Return what the outputs of the network represent, and their initial values."""

    def means(self) -> FloatArray:
        """Return the smoothed frequency of each variable among the rows in which it is known."""
        examples = self.problem.rows
        everyone = Group(np.arange(examples.rows.n_rows), examples.weights)
        on = group_ones(examples.rows, [everyone], 1)[0]
        hidden = group_ones(examples.holes, [everyone], 1)[0] if examples.holes else 0.0
        known = np.maximum(examples.total - hidden, on)
        alpha = max(self.problem.alpha, LEAST_CHANCE)
        return np.asarray((on + alpha) / (known + 2 * alpha))


class IndependentTrainer(NeuralTrainer):
    """Components of independent variables."""

    def component(self, n_columns: int, holes: bool) -> Component:
        """Return components that start at the means of the rows."""
        return Independent(self.means(), n_columns, holes)


class UrnTrainer(NeuralTrainer):
    """Components of weighted urns, trained on rows whose missing entries are drawn."""

    def rows(self) -> tuple[Examples, Examples]:
        """Return the training and held-out rows, completed."""
        rows, valid = super().rows()
        return fill_by_frequency(rows), fill_by_frequency(valid)

    def component(self, n_columns: int, holes: bool) -> Component:
        """Return components that start at the means of the rows, with their counts."""
        return Urns(self.means(), n_columns)


class TreeTrainer(IndependentTrainer):
    """Components of trees: for the dependence that independent variables leave unexplained."""

    def stages(
        self, rng: np.random.Generator, n_columns: int, holes: bool, max_iter: int
    ) -> Iterator[Stage]:
        """Yield independent variables, and then trees whose edges start without effect."""
        first = min(FIRST_ITERATIONS, max_iter // 2)
        yield Stage(self.component(n_columns, holes), first, last=False)
        k = self.problem.n_components
        count = n_trees(self.settings.trees, min(self.settings.points, k), k)
        parents = [
            self._tree(rng, varied=self.problem.varied or number > 0) for number in range(count)
        ]
        trees = Trees(np.stack(parents, axis=1), self.means(), n_columns, holes)
        begin = self._training.repeated(2 * count)
        yield Stage(trees, max_iter - first, layers=begin)

    def _tree(self, rng: np.random.Generator, varied: bool) -> ParentArray:
        """Return the tree of the pairs that go together most; a varied one for weighted rows."""
        weights, n = self.problem.rows.weights, self.problem.rows.rows.n_variables
        drawn = weights * rng.standard_exponential(weights.size) if varied else weights
        return tree_of(self._training.gains(drawn)[:n, :n])


def named(phase: str, parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arrays of a phase under names that include the phase."""
    return {f"{phase}.{name}": part for name, part in parts.items()}


def by_phase(parts: Mapping[str, Any], kind: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the arrays of each phase, converted by `kind`.

    >>> by_phase({"0.best.0": 1, "0.rng": 2, "settled.rng": 3}, dict)
    {'0': {'best.0': 1, 'rng': 2}, 'settled': {'rng': 3}}
    """
    phases: dict[str, dict[str, Any]] = {}
    for name, part in parts.items():
        phase, _, own = name.partition(".")
        phases.setdefault(phase, {})[own] = part
    return {phase: kind(own) for phase, own in phases.items()}


def check_memory_on(device: Any, n_bytes: float, purpose: str) -> None:
    """Raise an error if training needs more memory than its device, or this machine, has."""
    check_room(device, n_bytes, purpose)
    if device.platform == "cpu":
        check_memory(n_bytes, purpose, "choose fewer components, points or rows in a batch")


def symbols(examples: Examples, n_columns: int, holes: bool) -> Symbols:
    """Return rows as bytes, padded by empty columns if requested."""
    matrix = examples.observed.symbols()
    missing = n_columns - matrix.shape[1]
    filled = np.pad(matrix, ((0, 0), (0, missing)), constant_values=-1 if holes else 0)
    return Symbols(filled, examples.weights)
