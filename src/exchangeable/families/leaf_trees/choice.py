"""Which of several statistics a block has."""

from collections.abc import Sequence

import numpy as np

from exchangeable.data.examples import Examples
from exchangeable.families.statistics.family import EVIDENCE_PRIOR
from exchangeable.families.statistics.values import values_of
from exchangeable.statistics import Statistic
from exchangeable.structure.statistic_blocks import log_evidence

STEPS = 10
"""Steps of EM by which holes are filled before statistics are compared."""


def chosen_statistic(rows: Examples, statistics: Sequence[Statistic]) -> Statistic:
    """Return the statistic with the highest evidence for the block as a whole.

    A mixture over states of distributions of T is a distribution of T, so that the block's own rows
    tell which T it is, whatever the tree.
    """
    if len(statistics) == 1:
        return statistics[0]
    return statistics[int(np.argmax([_log_evidence(rows, each) for each in statistics]))]


def _log_evidence(rows: Examples, statistic: Statistic) -> float:
    """Return the log-evidence of a statistic.

    It is exact for complete rows. For others it is that of their expected completion, corrected by
    what the known entries and the completion are worth under the same parameters (the approximation
    of Cheeseman and Stutz).
    """
    (values,) = values_of(rows, [(np.arange(statistic.n_variables), statistic)])
    weights, log_sizes = rows.weights[:, None], statistic.log_sizes()[:, None]
    log_urns = np.zeros(log_sizes.shape)
    counts = values.histograms(weights, log_urns)
    for _ in range(STEPS):
        shares = counts + EVIDENCE_PRIOR
        log_urns = np.log(shares / shares.sum()) - log_sizes
        counts = values.histograms(weights, log_urns)
    known = float((weights * values.scores(log_urns)).sum())
    completed = float((counts * log_urns).sum())
    return log_evidence(counts, log_sizes[:, 0], EVIDENCE_PRIOR) + known - completed
