"""The learning rate of training: cut where held-out rows gain too little, or numbers fail."""

from collections.abc import Sequence

import numpy as np

from exchangeable.devices.networks.head import Settings

CUT = 0.3
MOST_RECOVERIES = 3


class Schedule:
    """How long steps are, by what held-out rows have gained.

    Parameters
    ----------
    settings : Settings
        The first learning rate, after how many iterations without progress it is cut, and how
        often.
    tol : float
        What counts as progress.

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
        """All that changes: real numbers, and counts."""
        return (self.rate, self._mark), (self.stale, self._cuts_left, self._recoveries)

    def restore(self, numbers: Sequence[float], counts: Sequence[int]) -> None:
        """Go on from an earlier `state`."""
        self.rate, self._mark = numbers
        self.stale, self._cuts_left, self._recoveries = counts

    def note(self, held: float) -> None:
        """Take the log-likelihood of held-out rows after an iteration into account."""
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
        """Whether the rate has been cut as often as it may be."""
        return self._cuts_left == 0

    def cut(self) -> None:
        """Go on with shorter steps."""
        self.rate, self.stale, self._cuts_left = self.rate * CUT, 0, self._cuts_left - 1

    def recover(self) -> None:
        """Go on with shorter steps after the likelihood was not a number; give up in the end."""
        self._recoveries += 1
        if self._recoveries > MOST_RECOVERIES:
            raise FloatingPointError(
                "training diverged: the likelihood is not a number, even after the "
                f"learning rate was cut to {self.rate:.2g}; give a smaller learning_rate"
            )
        self.rate *= CUT
