"""Whether a fit can go on from parameters that were found before, or read from a file."""

from collections.abc import Sequence

from exchangeable.families.contract import FamilySpec, Model
from exchangeable.families.mixture import Mixture
from exchangeable.families.problem import Problem
from exchangeable.fitting.em import EMState
from exchangeable.partitions import Partition
from exchangeable.structure.learner import BlockLearner

Stage = tuple[FamilySpec, Problem]
"""A family to be fitted, and what it is asked to do."""


def misfit(model: Model, problem: Problem, n_variables: int) -> str | None:
    """Return in what a model is not of the shape asked for, None where it is."""
    if model.n_variables != n_variables:
        return f"to {model.n_variables} columns, but X has {n_variables}"
    if model.n_classes != problem.n_components:
        return f"of {model.n_classes} components, but n_components={problem.n_components}"
    if not model.reads(problem.statistic_blocks):
        return "with other statistics than those now asked for, which it would not change"
    asked, had = problem.structure, model.learned_partitions
    if isinstance(asked, BlockLearner):
        fixed = not asked.needs_moments
        asked = asked.without_rows(had[0].labels.size, model.n_classes) if fixed else had
    if not all(map(Partition.same_as, asked, had)):
        return "with other blocks than those now asked for, which it would not change"
    return None


def check_state(state: EMState, stages: Sequence[Stage], n_variables: int) -> None:
    """Refuse a state that was read from a file, but is not one of this fit.

    Compiled loops trust that parameters and rows go together. What a checkpoint was made for is
    compared before; a file may lie about it.

    Parameters
    ----------
    state : EMState
        What was read.
    stages : sequence of (FamilySpec, Problem)
        The families to be fitted, in their order.
    n_variables : int
        Number of columns of the rows.
    """
    if state.stage >= len(stages):
        raise _refusal(f"at the family number {state.stage + 1} of {len(stages)}")
    _check(state.mixture, stages[state.stage], n_variables)
    _check(state.best, stages[state.stage], n_variables)
    if state.before is not None:
        if not state.stage:
            raise _refusal("with an earlier fit, which there is none of")
        _check(state.before, stages[state.stage - 1], n_variables)


def _check(mixture: Mixture, stage: Stage, n_variables: int) -> None:
    spec, problem = stage
    if not isinstance(mixture.model, spec.model):
        raise _refusal(f"of {mixture.model.kind}, but family={spec.name!r}")
    told = misfit(mixture.model, problem, n_variables)
    if told is not None:
        raise _refusal(told)


def _refusal(told: str) -> ValueError:
    return ValueError(f"the checkpoint holds a fit {told}; remove it")
