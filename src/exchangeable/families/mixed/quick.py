"""Compiled fits from many starts, if all columns are independent and have levels."""

from functools import cached_property

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.data.columns.schema import typed_rows
from exchangeable.data.examples import Examples
from exchangeable.families.mixed import em_kernels
from exchangeable.families.mixed.parts.base import Prior
from exchangeable.families.mixed.parts.levels import Levels
from exchangeable.families.mixed.rows.codes import coded, positions
from exchangeable.runtime.interrupts import check_interrupt

OWN_SHARE = 0.25
"""How close a class is to a row at the start."""
SHORT = 15
"""Steps after which the best of several starts is chosen."""
ROUND = 3
"""Steps of a round of EM, two and one for extrapolation; the next needs only its parameters."""
ENTRIES = 1e8
"""Number of entries read, some tenths of a second, before checking for an interrupt."""


class QuickLevels:
    """A set of rows to which classes are fitted from several starts.

    Parameters
    ----------
    blank : Levels
        Any part over the columns, for the layout of their levels.
    prior : Prior
        The prior of the levels.
    examples : Examples
        The rows.
    """

    def __init__(self, blank: Levels, prior: Prior, examples: Examples) -> None:
        self.blank, self.prior = blank, prior
        values = typed_rows(examples.observed).values[:, blank.columns]
        self.n_levels = int(blank.sizes.sum())
        self.levels = positions(values, blank.starts, self.n_levels)
        codes = coded(self.levels, blank.starts, blank.sizes)
        self.rows = em_kernels.LevelRows(*codes, examples.weights)
        pseudo = np.broadcast_to(blank.pseudo_rows(prior), (self.n_levels, 1))[:, 0]
        self.layout = em_kernels.LevelLayout(
            blank.starts, blank.sizes, np.ascontiguousarray(pseudo)
        )

    def from_posterior(self, posterior: FloatArray) -> em_kernels.LevelParameters:
        """Return the parameters that fit given posteriors."""
        mass = self.rows.weights[:, None] * posterior
        k = posterior.shape[1]
        sums = np.zeros((self.n_levels + 1, k))
        for codes in self.levels:
            for y in range(k):
                sums[:, y] += np.bincount(codes, mass[:, y], minlength=self.n_levels + 1)
        part = self.blank.following({"levels": sums[:-1]}, self.prior)
        totals = np.maximum(mass.sum(axis=0), em_kernels.LEAST_SHARE)
        return self._parameters(np.exp(part.log_shares).T, totals / totals.sum())

    @cached_property
    def average(self) -> FloatArray:
        """The probabilities of the levels in all rows together."""
        return self.from_posterior(np.ones((self.rows.weights.size, 1))).shares[:, :-1]

    def from_rows(self, k: int, rng: np.random.Generator) -> em_kernels.LevelParameters:
        """Return the parameters of classes each of which is close to a row."""
        average = self.average
        share = self.rows.weights / self.rows.weights.sum()
        chosen = rng.choice(share.size, size=k, replace=bool(np.count_nonzero(share) < k), p=share)
        own = np.tile(average, (k, 1))
        for codes, start, size in zip(
            self.levels, self.blank.starts, self.blank.sizes, strict=True
        ):
            known = codes[chosen] < self.n_levels
            own[known, start : start + size] = 0.0
            own[np.flatnonzero(known), codes[chosen][known]] = 1.0
        noise = rng.uniform(0.9, 1.1, own.shape)
        shares = ((1 - OWN_SHARE) * average + OWN_SHARE * own) * noise
        totals = np.add.reduceat(shares, self.blank.starts, axis=1)
        shares /= np.repeat(totals, self.blank.sizes, axis=1)
        return self._parameters(shares, np.full(k, 1.0 / k))

    @staticmethod
    def _parameters(shares: FloatArray, prior: FloatArray) -> em_kernels.LevelParameters:
        whole = np.concatenate([shares, np.ones((len(shares), 1))], axis=1)
        return em_kernels.LevelParameters(np.ascontiguousarray(whole), prior)

    def run(
        self, parameters: em_kernels.LevelParameters, tol: float, max_iter: int
    ) -> tuple[float, int, bool]:
        """Run EM in place; return the log-likelihood, number of steps, and whether it converged.

        An interrupt from the keyboard ends it with an error.
        """
        shares, prior = parameters
        by_code = prior.size, len(self.rows.members)
        workspace = em_kernels.Workspace(
            table=np.empty_like(shares),
            sums=np.empty_like(shares),
            code_table=np.empty(by_code),
            code_shares=np.empty(by_code),
            code_sums=np.empty(by_code),
            totals=np.empty_like(prior),
            joint=np.empty((prior.size, em_kernels.TILE)),
            norm=np.empty(em_kernels.TILE),
            scores=np.empty(em_kernels.TILE),
        )
        points = tuple(
            em_kernels.LevelParameters(np.empty_like(shares), np.empty_like(prior))
            for _ in range(3)
        )
        some = ROUND * max(int(ENTRIES / (ROUND * self.rows.codes.size * prior.size)), 1)
        n_steps, converged = 0, False
        while True:
            check_interrupt()
            likelihood, more, converged = em_kernels.run(
                self.rows,
                self.layout,
                parameters,
                workspace,
                points,
                tol,
                min(some, max_iter - n_steps),
            )
            n_steps += more
            if converged or n_steps >= max_iter:
                return likelihood, n_steps, converged

    def fit(
        self,
        k: int,
        start: FloatArray | None,
        restarts: int,
        rng: np.random.Generator,
        tol: float,
        max_iter: int,
    ) -> tuple[em_kernels.LevelParameters, float, bool]:
        """Return the best fit from posteriors and random starts, and its log-likelihood."""
        begun = [] if start is None else [self.from_posterior(start)]
        begun += [self.from_rows(k, rng) for _ in range(restarts)]
        if len(begun) > 1:
            worth = [self.run(parameters, tol, SHORT)[0] for parameters in begun]
            begun = [begun[int(np.argmax(worth))]]
        likelihood, _, converged = self.run(begun[0], tol, max_iter)
        return begun[0], likelihood, converged

    def part(self, parameters: em_kernels.LevelParameters) -> Levels:
        """Return parameters as a part."""
        with np.errstate(divide="ignore"):
            log_shares = np.ascontiguousarray(np.log(parameters.shares[:, :-1].T))
        return Levels(self.blank.columns, self.blank.types, log_shares)
