"""The paper's family: independent blocks of exchangeable variables."""

import numpy as np

from exchangeable.families.blocks.classes import BlockClasses
from exchangeable.families.blocks.family import BlockFamily
from exchangeable.families.blocks.model import BlockModel
from exchangeable.families.blocks.online import BlockStream
from exchangeable.families.common.log_linear import LogLinear
from exchangeable.families.contract import FamilySpec, SearchSpace
from exchangeable.families.mixture import Mixture, weighed


def _normalise(scores: LogLinear, n_jobs: int | None = None) -> tuple[Mixture, float] | None:
    """Return independent variables for linear scores: log Z = Σ_j log(1 + exp(slope))."""
    if not scores.is_linear:
        return None
    log_total = scores.base + np.logaddexp(0.0, scores.slope).sum(axis=0)
    return weighed(BlockModel.of_odds(scores.slope), log_total)


SPECS = (
    FamilySpec(
        name="blocks",
        summary="blocks of exchangeable variables, independent of each other (the paper's model)",
        model=BlockModel,
        family=BlockFamily,
        direct=BlockClasses,
        stream=BlockStream,
        blocks=("evidence", "welch", "independent", "full", "given"),
        relearns=True,
        search=SearchSpace(),
        normalise=_normalise,
        other_kinds="mixed",
    ),
)
