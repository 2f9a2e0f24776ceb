"""The choice between several statistics of a block."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.data.examples import Examples
from exchangeable.families.statistics.family import EVIDENCE_PRIOR
from exchangeable.families.statistics.values import values_of
from exchangeable.families.sums import EMData
from exchangeable.statistics import Statistic
from exchangeable.structure.statistic_blocks import log_evidence

STEPS = 10
"""Steps of EM for missing entries before statistics are compared."""


def chosen_statistic(data: EMData, statistics: Sequence[Statistic]) -> Statistic:
    """Return the statistic with the highest evidence for the block as a whole.

    A mixture over states of distributions of T is a distribution of T, so the block's own rows
    determine the choice of T, whatever the tree.
    """
    if len(statistics) == 1:
        return statistics[0]
    return statistics[int(np.argmax([_log_evidence(data, each) for each in statistics]))]


def _log_evidence(data: EMData, statistic: Statistic) -> float:
    """Return the log-evidence of a statistic.

    It is exact for complete rows. For others it is that of their expected completion, corrected by
    the difference of the log-likelihoods of the known entries and of the completion under the same
    parameters (the approximation of Cheeseman and Stutz).
    """
    log_sizes = statistic.log_sizes()[:, None]
    log_urns = np.zeros(log_sizes.shape)
    counts, known = data.summed(partial(_counted, statistic=statistic, log_urns=log_urns))
    for _ in range(STEPS):
        shares = counts + EVIDENCE_PRIOR
        log_urns = np.log(shares / shares.sum()) - log_sizes
        counts, known = data.summed(partial(_counted, statistic=statistic, log_urns=log_urns))
    completed = float((counts * log_urns).sum())
    return float(log_evidence(counts, log_sizes[:, 0], EVIDENCE_PRIOR) + known - completed)


def _counted(
    examples: Examples, statistic: Statistic, log_urns: FloatArray
) -> tuple[FloatArray, float]:
    """Return the expected weight of the rows with each value, and the log-likelihood of all."""
    (values,) = values_of(examples, [(np.arange(statistic.n_variables), statistic)])
    weights = examples.weights[:, None]
    known = float((weights * values.scores(log_urns)).sum())
    return values.histograms(weights, log_urns), known
