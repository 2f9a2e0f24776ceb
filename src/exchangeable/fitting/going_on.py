"""Checks of parameters found earlier, or read from a file, from which a fit continues."""

from collections.abc import Sequence

from exchangeable.families.contract import FamilySpec, Model
from exchangeable.families.mixture import Mixture
from exchangeable.families.problem import Problem
from exchangeable.fitting.em import EMState
from exchangeable.fitting.training import TrainingState
from exchangeable.partitions import Partition
from exchangeable.structure.learner import BlockLearner

Stage = tuple[FamilySpec, Problem]
"""A family to be fitted, and its problem."""


def misfit(model: Model, problem: Problem, n_variables: int) -> str | None:
    """Return how a model's shape differs from that requested, or None."""
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


def check_state(
    state: EMState | TrainingState, stages: Sequence[Stage], n_variables: int
) -> EMState:
    """Return a state read from a file, after checking that it belongs to this fit.

    Compiled loops rely on consistent parameters and rows. The description of a checkpoint was
    compared before, but a file may be wrong about it.

    Parameters
    ----------
    state : EMState or TrainingState
        The state that was read.
    stages : sequence of (FamilySpec, Problem)
        The families to be fitted, in their order.
    n_variables : int
        Number of columns of the rows.
    """
    if isinstance(state, TrainingState):
        raise refusal(f"that is trained, but family={stages[-1][0].name!r} is fitted by EM")
    if state.stage >= len(stages):
        raise refusal(f"at the family number {state.stage + 1} of {len(stages)}")
    _check(state.mixture, stages[state.stage], n_variables)
    _check(state.best, stages[state.stage], n_variables)
    if state.before is not None:
        if not state.stage:
            raise refusal("with an earlier fit, which there is none of")
        _check(state.before, stages[state.stage - 1], n_variables)
    return state


def _check(mixture: Mixture, stage: Stage, n_variables: int) -> None:
    spec, problem = stage
    if not isinstance(mixture.model, spec.model):
        raise refusal(f"of {mixture.model.kind}, but family={spec.name!r}")
    told = misfit(mixture.model, problem, n_variables)
    if told is not None:
        raise refusal(told)


def refusal(told: str) -> ValueError:
    """Return the error about a checkpoint of a different fit."""
    return ValueError(f"the checkpoint holds a fit {told}; remove it")
