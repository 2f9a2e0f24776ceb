"""Curves over ability: probabilities of answers, and information."""

from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families.items import answers_of, items_of


def answer_probabilities(
    highest: IntArray, log_credits: FloatArray, abilities: Any
) -> list[FloatArray]:
    """Return the probability of each answer to each item, shape (n_abilities, n_answers).

    Parameters
    ----------
    highest : array of shape (n_items,)
        The highest answer of each item.
    log_credits : array of shape (n_steps,)
        log ε of all steps.
    abilities : array-like of shape (n_abilities,)
        The abilities.

    Examples
    --------
    >>> answer_probabilities(np.array([1]), np.array([0.0]), [0.0])[0].tolist()
    [[0.5, 0.5]]
    """
    at, ends = np.asarray(abilities, dtype=np.float64).reshape(-1, 1), np.cumsum(highest)
    lines = []
    for begin, end in zip(ends - highest, ends, strict=True):
        scores = np.arange(1, end - begin + 1)
        joint = np.concatenate([np.zeros_like(at), log_credits[begin:end] + at * scores], axis=1)
        joint = np.exp(joint - joint.max(axis=1, keepdims=True))
        lines.append(joint / joint.sum(axis=1, keepdims=True))
    return lines


def expected_answers(highest: IntArray, log_credits: FloatArray, abilities: Any) -> FloatArray:
    """Return the mean answer to each item, shape (n_abilities, n_items): characteristic curves."""
    found = answer_probabilities(highest, log_credits, abilities)
    return np.stack([shares @ np.arange(shares.shape[1]) for shares in found], axis=1)


def item_information(highest: IntArray, log_credits: FloatArray, abilities: Any) -> FloatArray:
    """Return the variance of each answer, shape (n_abilities, n_items): its information.

    Their sum over items is the information of the test; the inverse of its square root is the
    standard error of an ability.
    """
    lines = []
    for shares in answer_probabilities(highest, log_credits, abilities):
        answers = np.arange(shares.shape[1])
        mean = shares @ answers
        lines.append(shares @ answers**2 - mean**2)
    return np.stack(lines, axis=1)


def log_normalisers(highest: IntArray, log_credits: FloatArray, nodes: FloatArray) -> FloatArray:
    """Return log Σ_v ε_v·e^{v·ability} of each item, shape (n_items, n_nodes)."""
    joint = log_credits[:, None] + answers_of(highest)[:, None] * nodes
    out = np.zeros((highest.size, nodes.size))
    for step, item in enumerate(items_of(highest)):
        out[item] = np.logaddexp(out[item], joint[step])
    return out
