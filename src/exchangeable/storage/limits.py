"""Limits of the work that a file may cause, checked before the work is done.

A small file can describe a large computation: a statistic over a million variables takes a few
numbers, the polynomials of an urn are quadratic in its size. So the cost of everything that is read
is estimated first.
"""

from exchangeable.storage.archive import ModelFileError

MOST_STEPS = 2e10
"""Steps, of about a nanosecond each, that all parts of a file may take up to the first score."""
STEPS_PER_ENTRY = 50
"""Cost of checking one entry of an array."""


class Budget:
    """The remaining work budget of a file.

    Parameters
    ----------
    steps : float, default=MOST_STEPS
        The total budget.
    """

    def __init__(self, steps: float = MOST_STEPS) -> None:
        self.left = steps

    def spend(self, steps: float, what: str) -> None:
        """Subtract the cost of something, or raise an error if it is too much."""
        self.left -= steps
        if not self.left >= 0:
            raise ModelFileError(
                f"{what} would take more than the {MOST_STEPS:.0e} steps that a file may take"
            )
