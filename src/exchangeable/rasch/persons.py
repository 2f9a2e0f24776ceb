"""Abilities of persons, from their scores on the items they answered.

Warm's weighted likelihood estimate removes most of the bias of maximum likelihood and is finite for
every score. The expected a posteriori estimate (EAP) is the mean ability of persons with a given
score, if abilities are normally distributed.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families.items import Answered
from exchangeable.rasch import kernels
from exchangeable.rasch.curves import log_normalisers

METHODS = ("wle", "eap", "ml")
N_NODES = 81
REACH = 6.0
"""Integrals extend this many standard deviations to both sides."""
MOST_STEPS = 2000
CHUNK = 1 << 12


class Population(NamedTuple):
    """A normal distribution of abilities.

    Attributes
    ----------
    mean, deviation : float
        Its mean and standard deviation, on the scale on which the items' locations sum to zero.
    """

    mean: float
    deviation: float


@dataclass(frozen=True)
class Abilities:
    """Abilities and their standard errors, one per score or per person.

    Attributes
    ----------
    scores : array of shape (n,)
        The score on the answered items.
    estimate, standard_error : array of shape (n,)
        NaN if there is no estimate: nothing was answered, or maximum likelihood is infinite.
    method : {"wle", "eap", "ml"}
        The method of estimation. Standard errors of EAP are posterior standard deviations.
    """

    scores: IntArray
    estimate: FloatArray
    standard_error: FloatArray
    method: str

    def to_frame(self) -> Any:
        """Return the estimates as a pandas data frame."""
        import pandas as pd

        columns = {
            "score": self.scores,
            "ability": self.estimate,
            "standard error": self.standard_error,
        }
        return pd.DataFrame(columns)

    def __str__(self) -> str:
        lines = [f"score  ability ({self.method})     s.e."]
        rows = zip(self.scores, self.estimate, self.standard_error, strict=True)
        return "\n".join([*lines, *(f"{r:5d}  {a:13.4f}  {e:7.4f}" for r, a, e in rows)])


def estimate_abilities(
    highest: IntArray,
    log_credits: FloatArray,
    known: npt.NDArray[np.bool_],
    scores: IntArray,
    method: str = "wle",
    population: Population | None = None,
) -> Abilities:
    """Return an ability for each combination of answered items and score.

    Parameters
    ----------
    highest : array of shape (n_items,)
        The highest answer of each item.
    log_credits : array of shape (n_steps,)
        log ε of all steps.
    known : array of shape (n_lines, n_items)
        Which items were answered.
    scores : array of shape (n_lines,)
        The score on these.
    method : {"wle", "eap", "ml"}
        The method of estimation.
    population : Population, optional
        The population of abilities that EAP assumes.
    """
    if method not in METHODS:
        raise ValueError(f"method={method!r} is unknown; expected one of {', '.join(METHODS)}")
    estimate, error = np.full(scores.size, np.nan), np.full(scores.size, np.nan)
    possible = known @ highest
    if method == "eap":
        assert population is not None
        for begin in range(0, scores.size, CHUNK):
            part = slice(begin, begin + CHUNK)
            nodes, log_shares = _nodes(population)
            joint = _log_scores(highest, log_credits, known[part], scores[part], nodes) + log_shares
            shares = np.exp(joint - joint.max(axis=1, keepdims=True))
            shares /= shares.sum(axis=1, keepdims=True)
            estimate[part] = shares @ nodes
            spread = (nodes - estimate[part][:, None]) ** 2
            error[part] = np.sqrt((shares * spread).sum(axis=1))
        return Abilities(scores, estimate, error, method)
    chosen = possible > 0 if method == "wle" else (scores > 0) & (scores < possible)
    begins = np.concatenate([[0], np.cumsum(highest)[:-1]]).astype(np.int64)
    items = kernels.Items(begins, highest, np.ascontiguousarray(log_credits))
    found, spread = np.empty(int(chosen.sum())), np.empty(int(chosen.sum()))
    kernels.solve_abilities(
        np.ascontiguousarray(known[chosen]), scores[chosen], items, method == "wle", found, spread
    )
    estimate[chosen], error[chosen] = found, spread
    return Abilities(scores, estimate, error, method)


def fit_population(highest: IntArray, log_credits: FloatArray, answered: Answered) -> Population:
    """Return the normal distribution of abilities that maximises the likelihood, by EM.

    Parameters
    ----------
    highest : array of shape (n_items,)
        The highest answer of each item.
    log_credits : array of shape (n_steps,)
        log ε of all steps.
    answered : Answered
        The answers, with extreme scores.
    """
    nodes = np.linspace(-2 * REACH, 2 * REACH, 2 * N_NODES - 1)
    whose = np.repeat(np.arange(len(answered.patterns)), np.diff(answered.begins))
    scores, weights = answered.scores, answered.weights
    mean, variance = 0.0, 1.0
    parts = [slice(i, i + CHUNK) for i in range(0, scores.size, CHUNK)]
    logs = [
        _log_scores(highest, log_credits, answered.patterns[whose[part]], scores[part], nodes)
        for part in parts
    ]
    for _ in range(MOST_STEPS):
        log_shares = -0.5 * (nodes - mean) ** 2 / variance
        first, second = 0.0, 0.0
        for part, log_score in zip(parts, logs, strict=True):
            joint = log_score + log_shares
            shares = np.exp(joint - joint.max(axis=1, keepdims=True))
            shares *= (weights[part] / shares.sum(axis=1))[:, None]
            mass = shares.sum(axis=0)
            first, second = first + mass @ nodes, second + mass @ nodes**2
        total = weights.sum()
        new = first / total, max(second / total - (first / total) ** 2, 1e-6)
        moved = abs(new[0] - mean) + abs(new[1] - variance)
        mean, variance = new
        if moved < 1e-7:
            break
    return Population(float(mean), float(np.sqrt(variance)))


def _nodes(population: Population) -> tuple[FloatArray, FloatArray]:
    """Return abilities and their log-weights, up to a constant."""
    standard = np.linspace(-REACH, REACH, N_NODES)
    return population.mean + population.deviation * standard, -0.5 * standard**2


def _log_scores(
    highest: IntArray,
    log_credits: FloatArray,
    known: npt.NDArray[np.bool_],
    scores: IntArray,
    nodes: FloatArray,
) -> FloatArray:
    """Return log P(score | ability), without terms that do not depend on ability."""
    norm = log_normalisers(highest, log_credits, nodes)
    return np.asarray(scores[:, None] * nodes - known.astype(np.float64) @ norm)
