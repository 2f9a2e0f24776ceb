"""Many fits of the same model to different rows, without creating an estimator for each.

A bootstrap fits the same model to hundreds of sets of rows. `Refits` stores how an estimator was
fitted and uses the family's `quick_fit`, which runs EM from several starts in one compiled call if
it can, or else runs `Runs` as `fit` does.
"""

from dataclasses import dataclass, replace

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.data.examples import Examples
from exchangeable.families import family_named
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.contract import Family, FamilySpec
from exchangeable.families.family import QuickFit
from exchangeable.families.problem import Problem
from exchangeable.fitting.em import EMState, StopRule
from exchangeable.fitting.runs import Runs, begin, families_of

SHORT = 15
"""Iterations after which the best of several starts is chosen."""
LEAST_GAIN = 2e-3
"""A fit has converged when the log-likelihood of all rows improves by less than this."""


@dataclass(frozen=True)
class Refits:
    """How a mixture was fitted, for refits to other rows.

    Attributes
    ----------
    spec : FamilySpec
        The family.
    problem : Problem
        Blocks, priors and number of components, without rows.
    rule : StopRule
        When a run stops.
    init : {"rows", "random", "both"}
        How runs start.
    """

    spec: FamilySpec
    problem: Problem
    rule: StopRule
    init: str

    @classmethod
    def of(
        cls, spec: FamilySpec, problem: Problem, rule: StopRule, init: str, n_variables: int
    ) -> "Refits":
        """Return refits by the family with the fastest way to the same parameters.

        If all blocks are single variables, the family that replaces this one for columns that are
        not binary gives the same fit, and may have compiled loops for it.
        """
        partitions = problem.known_partitions(n_variables)
        single = partitions is not None and all(p.n_blocks == n_variables for p in partitions)
        if single and spec.other_kinds is not None and problem.pooling is None:
            spec = family_named(spec.other_kinds)
        return cls(spec, problem, rule, init)

    def fit(
        self,
        examples: Examples,
        rng: np.random.Generator,
        start: FloatArray | None = None,
        restarts: int = 0,
    ) -> QuickFit:
        """Return the best fit over given posteriors and some random starts.

        All starts run for a few iterations; only the best continues until convergence.

        Parameters
        ----------
        examples : Examples
            The rows.
        rng : Generator
            Generates the random starts.
        start : array of shape (n_rows, n_classes), optional
            Initial posteriors of the rows.
        restarts : int
            Number of additional random starts.
        """
        data = InMemory(examples, n_jobs=1)
        problem = replace(self.problem, examples=examples)
        tol = min(self.rule.tol * examples.total, LEAST_GAIN)
        most = self.rule.max_iter
        if issubclass(self.spec.family, Family):
            found = self.spec.family(problem).quick_fit(data, start, restarts, rng, tol, most)
            if found is not None:
                return found
        return self._slowly(problem, data, rng, start, restarts, tol / examples.total)

    def _slowly(
        self,
        problem: Problem,
        data: InMemory,
        rng: np.random.Generator,
        start: FloatArray | None,
        restarts: int,
        tol: float,
    ) -> QuickFit:
        """Do the same by EM, as estimators do; families that are trained only start at random."""
        rule = replace(self.rule, tol=tol)
        few = data.examples.rows.n_rows < problem.n_components
        init = "random" if few else self.init
        trained = not issubclass(self.spec.family, Family)
        if (trained or self.spec.earlier(problem) is not None) and start is not None:
            start, restarts = None, restarts + 1
        generators = rng.spawn(max(restarts, 1))
        runs = Runs(self.spec, problem, data, rule, init, generators)
        short = replace(rule, max_iter=rule.max_iter if trained else min(SHORT, rule.max_iter))
        begun = replace(runs, rule=short)
        states: list[EMState] = []
        if start is not None:
            family = families_of(self.spec, problem)[-1]
            first = begin(data, family, family.held(data, start))
            states.append(replace(begun, warm=first.mixture).run(0, threads=1))
        states += [begun.run(number, threads=1) for number in range(restarts)]
        best = max(states, key=lambda state: state.worth)
        if not best.ended and best.n_iter < rule.max_iter and not trained:
            best = runs.run(0, best, threads=1)
        return QuickFit(best.best, best.history[best.best_iter] * data.total, best.converged)
