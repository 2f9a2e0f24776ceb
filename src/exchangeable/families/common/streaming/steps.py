"""How far sums over rows lean towards those of new rows, where rows come in batches.

Steps shrink as rows come in, so slowly that they add up without end and so fast that their squares
do not (Robbins and Monro): then parameters settle, and yet new rows never count for nothing.
"""

PART = 256.0
"""Weight of the rows between two steps."""
DECAY = 0.6
"""Steps are t to minus this power: between a half and one they satisfy Robbins and Monro."""
REVISION = 1.2
"""Blocks and trees are revised when the rows have become this many times more."""


def factors(seen: float, new: float, step: float | None = None) -> tuple[float, float]:
    """Return by what old and new sums are multiplied, so that both together weigh as all rows.

    Parameters
    ----------
    seen, new : float
        Weight of the rows so far, and of the new ones.
    step : float, optional
        Share of the new rows; by default it shrinks as `DECAY` says.

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
