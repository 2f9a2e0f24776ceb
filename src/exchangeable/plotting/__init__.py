"""Plots of models, in the style of scikit-learn's displays; they need matplotlib.

Each display is created by a class method (``from_estimator``, ``from_data``), holds the numbers it
shows, draws them with ``plot``, and stores axes and figure in ``ax_`` and ``figure_``.
"""

from exchangeable.plotting._blocks import BlockMapDisplay
from exchangeable.plotting._contributions import ContributionsDisplay
from exchangeable.plotting._counts import CountDistributionDisplay
from exchangeable.plotting._exchangeability import ExchangeabilityDisplay
from exchangeable.plotting._history import EMHistoryDisplay
from exchangeable.plotting._items import ItemCurvesDisplay
from exchangeable.plotting._profiles import ProfileDisplay

__all__ = [
    "BlockMapDisplay",
    "ContributionsDisplay",
    "CountDistributionDisplay",
    "EMHistoryDisplay",
    "ExchangeabilityDisplay",
    "ItemCurvesDisplay",
    "ProfileDisplay",
]
