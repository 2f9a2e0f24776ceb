"""The step size of stochastic EM, for rows that come in batches.

Steps decrease so slowly that their sum diverges and so fast that the sum of their squares converges
(Robbins and Monro): parameters converge, but new rows always have some effect.
"""

PART = 256.0
"""Weight of the rows between two steps."""
DECAY = 0.6
"""Steps are t to minus this power: between a half and one they satisfy the Robbins-Monro
conditions."""
REVISION = 1.2
"""Blocks and trees are revised when the number of rows has grown by this factor."""


def factors(seen: float, new: float, step: float | None = None) -> tuple[float, float]:
    """Return the factors of old and new sums, so that both together have the weight of all rows.

    Parameters
    ----------
    seen, new : float
        Weight of the rows so far, and of the new ones.
    step : float, optional
        Share of the new rows; by default it decreases as given by `DECAY`.

    Examples
    --------
    >>> old, fresh = factors(300.0, 100.0)
    >>> round(old * 300 + fresh * 100, 9)
    400.0
    >>> factors(300.0, 100.0, step=0.25)
    (1.0, 1.0)
    """
    if step is None:
        step = min(1.0, new / PART * (1 + seen / PART) ** -DECAY)
    return (1 - step) * (seen + new) / seen, step * (seen + new) / new
