"""One component over any statistic, as a model of a single class."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from exchangeable.arrays import UNASSIGNED, FloatArray, IntArray, SymbolArray
from exchangeable.data.observed import Observed
from exchangeable.statistics import Statistic


@dataclass(frozen=True)
class StatisticModel:
    """Binary variables that are partially exchangeable with respect to a statistic.

    Attributes
    ----------
    statistic : Statistic
        The statistic T.
    log_urns : array of shape (n_values,)
        log (w_t / |S_t|), the log-probability of a single member of each S_t.
    """

    statistic: Statistic
    log_urns: FloatArray

    @property
    def n_classes(self) -> int:
        """One."""
        return 1

    @property
    def own_marginals(self) -> None:
        """None: marginals depend on the other known entries of a row."""
        return

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return self.statistic.n_variables

    def score(self, observed: Observed, n_jobs: int | None = None) -> FloatArray:
        """Return log P(e) of every row, as a column."""
        rows = observed.symbols().astype(np.int64)
        return log_marginals(self.statistic, self.log_urns, rows)[:, None]

    def mean_marginals(self, observed: Observed, shares: FloatArray) -> FloatArray:
        """Return each row's share of the only class times its marginals."""
        return shares * self.marginals(observed, 0)

    def marginals(self, observed: Observed, y: int) -> FloatArray:
        """Return P(x_j = 1 | e) for every row and variable."""
        symbols = observed.symbols().astype(np.int64)
        result = np.maximum(symbols, 0).astype(np.float64)
        for i, assigned in enumerate(symbols):
            masses = self.statistic._log_masses(self.log_urns, assigned)
            total = np.logaddexp(masses[:, 0], masses[:, 1])
            if np.isfinite(total).all():
                result[i] = np.exp(masses[:, 1] - total)
        return result

    def complete(self, observed: Observed, y: int) -> tuple[SymbolArray, FloatArray]:
        """Return the most probable completion of every row, and its log-probability."""
        scores = np.full(observed.n_rows, -np.inf)
        rows = np.maximum(observed.symbols(), 0).astype(np.uint8)
        for i, assigned in enumerate(observed.symbols().astype(np.int64)):
            possible = np.isfinite(self.statistic._log_sizes(assigned))
            candidates = np.where(possible, self.log_urns, -np.inf)
            best = int(candidates.argmax())
            scores[i] = candidates[best]
            if scores[i] > -np.inf:
                rows[i] = self.statistic._complete(best, assigned)
        return rows, scores

    def draw(self, observed: Observed, y: int, rng: np.random.Generator) -> SymbolArray:
        """Return a random completion of every row."""
        symbols = observed.symbols()
        return self._drawn(symbols, np.arange(len(symbols))[:, None], rng)

    def draw_together(self, observed: Observed, rng: np.random.Generator) -> SymbolArray:
        """Return the same with less work: equal rows share it, so draws differ from `draw`'s."""
        symbols = observed.symbols()
        member = np.unique(symbols, axis=0, return_inverse=True)[1].ravel()
        ends = np.cumsum(np.bincount(member))
        return self._drawn(symbols, np.split(np.argsort(member, kind="stable"), ends)[:-1], rng)

    def _drawn(
        self,
        symbols: npt.NDArray[np.int8],
        groups: Iterable[npt.NDArray[np.int64]],
        rng: np.random.Generator,
    ) -> SymbolArray:
        """Return random completions of groups of equal rows."""
        rows = np.maximum(symbols, 0).astype(np.uint8)
        for members in groups:
            assigned = symbols[members[0]].astype(np.int64)
            log_joint = self.log_urns + self.statistic._log_sizes(assigned)
            total = logsumexp(log_joint)
            if np.isfinite(total):
                chance = np.exp(log_joint - total)
                drawn = rng.choice(chance.size, size=members.size, p=chance / chance.sum())
                for t in np.unique(drawn):
                    place = members[drawn == t]
                    rows[place] = self.statistic._draw(int(t), assigned, place.size, rng)
        return rows


def log_marginals(statistic: Statistic, log_urns: FloatArray, rows: IntArray) -> FloatArray:
    """Return the log-probability of the known entries of every row, equal rows computed once."""
    result = np.empty(len(rows))
    complete = (rows != UNASSIGNED).all(axis=1)
    result[complete] = log_urns[statistic._index(rows[complete])]
    if not complete.all():
        distinct, position = np.unique(rows[~complete], axis=0, return_inverse=True)
        found = [float(logsumexp(log_urns + statistic._log_sizes(row))) for row in distinct]
        result[~complete] = np.array(found)[position.ravel()]
    return result
