"""The result of training other than generative."""

from dataclasses import dataclass, field

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.families.mixture import Mixture
from exchangeable.fitting.hybrid.convex import Fit


@dataclass(frozen=True)
class Trained:
    """The result of hybrid training.

    Attributes
    ----------
    mixture : Mixture
        The classes, and their probabilities.
    n_iter : int
        Iterations of all fits to all rows, or epochs of training by gradient.
    converged : bool
        Whether all fits converged.
    loss : float
        Average loss of held-out rows; NaN if there were none.
    scales : dict from name to float
        The scale of each generative score.
    shares : array of shape (n_penalties,)
        The weight of the fits with each penalty.
    fits : list of Fit
        The fits to all rows, those without generative scores first.
    """

    mixture: Mixture
    n_iter: int
    converged: bool
    loss: float
    scales: dict[str, float] = field(default_factory=dict)
    shares: FloatArray = field(default_factory=lambda: np.empty(0))
    fits: list[Fit] = field(default_factory=list)
