"""Why cells differ from the paper: one paragraph for each kind of difference."""

from exchangeable.experiments.views import Difference

UNKNOWN = "We know of no reason."
EVIDENCE = "Evidence merging finds better blocks than the paper's sweep; it is better on purpose."
REASONS: tuple[tuple[str, str, str, str], ...] = (("*", "*", "MEVM, evidence", EVIDENCE),)
"""Table, data set, model ("*" is any, "|" parts several), and the paragraph; the first counts."""


def explain(difference: Difference) -> str:
    """Return the paragraph about a difference."""
    named = (difference.table, difference.dataset, difference.model)
    for *wanted, reason in REASONS:
        if all(_covers(pattern, own) for pattern, own in zip(wanted, named, strict=True)):
            return reason
    return UNKNOWN


def _covers(pattern: str, name: str) -> bool:
    return pattern == "*" or name in pattern.split("|")
