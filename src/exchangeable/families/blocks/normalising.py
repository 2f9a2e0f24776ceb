"""Linear scores of classes as independent variables."""

import numpy as np

from exchangeable.families.blocks.model import BlockModel
from exchangeable.families.common.log_linear.scores import LogLinear
from exchangeable.families.mixture import Mixture, weighed


def normalise(scores: LogLinear, n_jobs: int | None = None) -> tuple[Mixture, float] | None:
    """Return independent variables for linear scores: log Z = Σ_j log(1 + exp(slope))."""
    if not scores.is_linear:
        return None
    log_total = scores.base + np.logaddexp(0.0, scores.slope).sum(axis=0)
    return weighed(BlockModel.of_odds(scores.slope), log_total)
