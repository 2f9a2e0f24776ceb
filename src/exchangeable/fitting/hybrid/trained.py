"""What training other than generative returns."""

from dataclasses import dataclass, field

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.families.mixture import Mixture
from exchangeable.fitting.hybrid.convex import Fit


@dataclass(frozen=True)
class Trained:
    """What hybrid training has found.

    Attributes
    ----------
    mixture : Mixture
        The classes, and their probabilities.
    n_iter : int
        Iterations of all fits to all rows, or epochs of training by gradient.
    converged : bool
        Whether all ended because nothing more was to be gained.
    loss : float
        Average loss of rows held out; NaN where none were.
    scales : dict from name to float
        How much each generative score counts.
    shares : array of shape (n_penalties,)
        How much the fits with each penalty count.
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
