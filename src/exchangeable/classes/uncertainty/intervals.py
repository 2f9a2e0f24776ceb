"""Confidence intervals of probabilities and numbers."""

from dataclasses import replace

import numpy as np
from scipy.special import expit, logit, ndtri

from exchangeable.arrays import FloatArray
from exchangeable.classes.profiles import Profiles


def with_errors(
    profiles: Profiles, size_errors: FloatArray, errors: FloatArray, level: float, note: str
) -> Profiles:
    """Return profiles with intervals that are symmetric on the scale of logits, or of numbers."""
    shares = np.array([entry.is_share for entry in profiles.entries])
    interval = normal_interval(profiles.values, errors, level)
    if shares.any():
        interval[:, shares] = logit_interval(profiles.values[shares], errors[shares], level)
    return replace(
        profiles,
        size_errors=size_errors,
        errors=errors,
        size_interval=logit_interval(profiles.sizes, size_errors, level),
        interval=interval,
        level=level,
        note=note,
    )


def normal_interval(values: FloatArray, errors: FloatArray, level: float) -> FloatArray:
    """Return values plus and minus errors times the normal quantile."""
    half = ndtri((1 + level) / 2) * errors
    return np.stack([values - half, values + half])


def logit_interval(shares: FloatArray, errors: FloatArray, level: float) -> FloatArray:
    """Return intervals of probabilities, symmetric on the scale of logits.

    >>> logit_interval(np.array([0.5]), np.array([0.1]), 0.95).round(3).ravel().tolist()
    [0.313, 0.687]
    """
    inside = (shares > 0) & (shares < 1)
    safe = np.where(inside, shares, 0.5)
    half = ndtri((1 + level) / 2) * errors / (safe * (1 - safe))
    ends = np.stack([expit(logit(safe) - half), expit(logit(safe) + half)])
    return np.where(inside, ends, np.nan)
