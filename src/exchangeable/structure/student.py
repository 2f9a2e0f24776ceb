"""Student's t-test inside compiled loops, where SciPy cannot be called."""

import math

from exchangeable.runtime.kernels.loops import helper, inlined


@inlined
def _beta_fraction(a, b, x):  # type: ignore[no-untyped-def]
    """Continued fraction of the incomplete beta function, by Lentz's method."""
    tiny = 1e-300
    c = 1.0
    d = 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > tiny else tiny)
    value = d
    for m in range(1, 10_000):
        for odd in range(2):
            if odd == 0:
                term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
            else:
                term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
            d = 1.0 + term * d
            d = 1.0 / (d if abs(d) > tiny else tiny)
            c = 1.0 + term / c
            c = c if abs(c) > tiny else tiny
            value *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return value


@helper
def two_sided_p(t, df):  # type: ignore[no-untyped-def]
    """Return P(|T| > |t|) for Student's t with `df` degrees of freedom.

    >>> round(two_sided_p(1.96, 1e6), 4)
    0.05
    """
    if t == 0.0:
        return 1.0
    if math.isinf(t):
        return 0.0
    a, b = 0.5 * df, 0.5
    x = df / (df + t * t)
    log_front = (
        math.lgamma(a + b)
        - math.lgamma(a)
        - math.lgamma(b)
        + a * math.log(x)
        + b * math.log(t * t / (df + t * t))
    )
    above = x >= (a + 1.0) / (a + b + 2.0)
    if above:
        a, b, x = b, a, 1.0 - x
    tail = math.exp(log_front) * _beta_fraction(a, b, x) / a
    return 1.0 - tail if above else tail
