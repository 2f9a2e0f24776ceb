"""How much work a file may cause, checked before the work is done.

A small file can describe large work: a statistic over a million variables takes a few numbers, the
polynomials of an urn the square of its size. So whatever is read is first asked what it will cost.
"""

from exchangeable.storage.archive import ModelFileError

MOST_STEPS = 2e10
"""Steps, about as many nanoseconds, that all parts of a file may take until the first score."""
STEPS_PER_ENTRY = 50
"""What it takes to check one entry of an array."""


class Budget:
    """What is left of the steps that one file may take.

    Parameters
    ----------
    steps : float, default=MOST_STEPS
        How many there are in all.
    """

    def __init__(self, steps: float = MOST_STEPS) -> None:
        self.left = steps

    def spend(self, steps: float, what: str) -> None:
        """Take away what something will cost, refusing what is too much."""
        self.left -= steps
        if not self.left >= 0:
            raise ModelFileError(
                f"{what} would take more than the {MOST_STEPS:.0e} steps that a file may take"
            )
