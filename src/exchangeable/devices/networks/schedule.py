"""The learning rate: reduced if held-out rows improve too little, or numbers are not finite."""

from collections.abc import Sequence

import numpy as np

from exchangeable.devices.networks.head import Settings

CUT = 0.3
MOST_RECOVERIES = 3


class Schedule:
    """The learning rate as a function of the progress on held-out rows.

    Parameters
    ----------
    settings : Settings
        The initial learning rate, the patience, and the maximum number of reductions.
    tol : float
        The minimum improvement that counts as progress.

    Attributes
    ----------
    rate : float
        The learning rate.
    stale : int
        Iterations since the last progress.
    """

    def __init__(self, settings: Settings, tol: float) -> None:
        self.rate, self.stale = settings.learning_rate, 0
        self._tol, self._patience, self._cuts_left = tol, settings.patience, settings.cuts
        self._mark, self._recoveries = -np.inf, 0

    @property
    def state(self) -> tuple[tuple[float, ...], tuple[int, ...]]:
        """The state: real numbers, and counts."""
        return (self.rate, self._mark), (self.stale, self._cuts_left, self._recoveries)

    def restore(self, numbers: Sequence[float], counts: Sequence[int]) -> None:
        """Restore an earlier `state`."""
        self.rate, self._mark = numbers
        self.stale, self._cuts_left, self._recoveries = counts

    def note(self, held: float) -> None:
        """Process the log-likelihood of held-out rows after an iteration."""
        if held >= self._mark + self._tol:
            self._mark, self.stale = max(self._mark, held), 0
        else:
            self.stale += 1

    @property
    def out_of_patience(self) -> bool:
        """Whether there was no progress for too long."""
        return self.stale >= self._patience

    @property
    def ended(self) -> bool:
        """Whether the rate has been reduced as often as allowed."""
        return self._cuts_left == 0

    def cut(self) -> None:
        """Continue with a smaller rate."""
        self.rate, self.stale, self._cuts_left = self.rate * CUT, 0, self._cuts_left - 1

    def recover(self) -> None:
        """Continue with a smaller rate after a NaN likelihood; raise an error in the end."""
        self._recoveries += 1
        if self._recoveries > MOST_RECOVERIES:
            raise FloatingPointError(
                "training diverged: the likelihood is not a number, even after the "
                f"learning rate was cut to {self.rate:.2g}; give a smaller learning_rate"
            )
        self.rate *= CUT
