"""How a total of counts is distributed over its columns."""

import numpy as np
from scipy import special

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families.mixed.algebra.totals import highest_count, log_counts
from exchangeable.families.mixed.algebra.urn_weights import LEAST_WEIGHT


def split_count(shares: FloatArray, own: float, others: float) -> FloatArray:
    """Return the distribution of a column's count, given that of its total with others."""
    if not others > 0:
        return shares.copy()
    units = np.arange(shares.size, dtype=np.float64)
    mine = special.gammaln(own + units) - special.gammaln(own) - special.gammaln(units + 1)
    rest = special.gammaln(others + units) - special.gammaln(others) - special.gammaln(units + 1)
    both = special.gammaln(own + others + units) - special.gammaln(own + others)
    both -= special.gammaln(units + 1)
    found = np.zeros(shares.size)
    for total in np.flatnonzero(shares > 0):
        found[: total + 1] += shares[total] * np.exp(
            mine[: total + 1] + rest[total::-1] - both[total]
        )
    return found


def best_counts(
    known: float,
    weights: FloatArray,
    whole: float,
    totals_of: tuple[FloatArray, FloatArray],
    end: int,
) -> FloatArray:
    """Return the most probable counts of some columns of an urn, up to a total of `end`.

    The others have a known total; `whole` is the sum of all weights, and `totals_of` the mean and
    size of the distribution of totals.
    """
    units = np.arange(end + 1.0)
    best, choices = np.full(end + 1, -np.inf), list[IntArray]()
    best[0] = 0.0
    for weight in weights:
        gain = special.gammaln(weight + units) - special.gammaln(weight)
        gain -= special.gammaln(units + 1)
        each = [best[t::-1] + gain[: t + 1] for t in range(end + 1)]
        chosen = np.array([int(np.argmax(line)) for line in each])
        best = np.array([line[x] for line, x in zip(each, chosen, strict=True)])
        choices.append(chosen)
    totals = known + units
    worth = log_counts(totals, *totals_of)[:, 0] + best
    worth += special.gammaln(totals + 1)
    worth -= special.gammaln(totals + whole)
    left, counts = int(np.argmax(worth)), np.empty(weights.size)
    for i in range(weights.size - 1, -1, -1):
        counts[i] = choices[i][left]
        left -= int(counts[i])
    return counts


def best_split(shares: FloatArray, mean: float, size: float) -> FloatArray:
    """Return the most probable counts of some columns: units are added where they gain most."""
    end = highest_count(np.array([mean + 1e-300]), np.array([size]))
    if not shares.sum() > 0:
        return np.zeros(shares.size)
    own = shares / shares.sum()
    counts, best = np.zeros(shares.size), np.zeros(shares.size)
    log_totals = log_counts(np.arange(end + 1.0), np.array([mean + 1e-300]), np.array([size]))[:, 0]
    split, highest = 0.0, log_totals[0]
    for total in range(1, end + 1):
        column = int(np.argmax(own / (counts + 1)))
        counts[column] += 1
        split += np.log(own[column]) - np.log(counts[column]) + np.log(total)
        if log_totals[total] + split > highest:
            highest, best = log_totals[total] + split, counts.copy()
    return best


def drawn_split(
    total: int, weights: FloatArray, whole: float, rng: np.random.Generator
) -> FloatArray:
    """Return counts with a given total, drawn from an urn whose weights sum to `whole`."""
    counts, rest = np.zeros(weights.size), whole
    for j, own in enumerate(weights):
        rest = max(rest - own, 0.0)
        share = rng.beta(own, rest) if rest > LEAST_WEIGHT / 2 else 1.0
        counts[j] = rng.binomial(total, min(max(share, 0.0), 1.0)) if total else 0
        total -= int(counts[j])
    return counts
