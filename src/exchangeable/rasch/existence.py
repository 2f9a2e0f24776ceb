"""Whether items have finite estimates, and messages if they have not (Fischer 1981)."""

import warnings

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import connected_components

from exchangeable.rasch.answers import Answers

FEW_PERSONS = 30
"""Standard errors based on fewer persons mean little."""
MOST_NAMES = 8
FIRST = 2_000
"""Number of persons checked first, in the hope that they are enough."""


def usable_items(answers: Answers) -> npt.NDArray[np.bool_]:
    """Return which items have finite estimates, with a warning that names the others.

    An item to which all informative persons gave the same answer has none. Without it, other
    persons may have an extreme score, so the remaining items are checked again.
    """
    used = np.ones(answers.highest.size, dtype=bool)
    while True:
        inside = answers.only(items=used)
        inside = inside.only(persons=inside.informative)
        if used.sum() < 2 or not len(inside.values):
            break
        low = inside.values.view(np.uint8).min(axis=0)  # −1 is the largest of these
        high = inside.values.max(axis=0)
        if (low < high).all():
            break
        used = used.copy()
        used[np.flatnonzero(used)[~(low < high)]] = False
    if not used.all():
        names = listed([answers.names[j] for j in np.flatnonzero(~used)])
        warnings.warn(
            f"no finite estimate for {names}: everybody whose score is not extreme gave the same "
            "answer (all or nobody solved it); they are left out, and their parameters are NaN",
            stacklevel=5,
        )
    if used.sum() < 2:
        raise ValueError(
            f"{used.sum()} of {used.size} items can be used; a Rasch model needs at least two "
            "items that some persons solve and others do not"
        )
    return used


def check_existence(answers: Answers) -> None:
    """Raise an error if the likelihood of the answers has no maximum.

    For every division of the items into two groups, somebody must do better in the first and worse
    in the second. So the graph of items, with an edge from one item to another if a person does not
    have the lowest answer in the one and not the highest in the other, must be strongly connected.
    """
    n_persons = len(answers.values)
    if not n_persons:
        raise ValueError(
            "no person tells anything about the items: all scores are the lowest or the highest "
            "possible with the items answered"
        )
    check_answers(answers)
    if not answers.known.all():
        known = answers.known.astype(np.float32)
        _check_linked(answers, known.T @ known > 0)
    for size in (FIRST, n_persons):  # more persons only add links
        n_groups, group = _strong_groups(answers, size)
        if n_groups == 1:
            break
    if n_groups > 1:
        smallest = int(np.argmin(np.bincount(group)))
        names = listed([answers.names[j] for j in np.flatnonzero(group == smallest)])
        raise ValueError(
            f"the items cannot be put on one scale: nobody does better in {names} and worse in the "
            f"other items, or the other way round, so that differences have no finite estimate "
            f"(perfect separation; {n_persons:,} persons tell something). Leave them out, or "
            "collect more answers"
        )
    if n_persons < FEW_PERSONS:
        warnings.warn(
            f"only {n_persons} persons have a score that is not extreme; standard errors are those "
            f"of large samples and say little below about {FEW_PERSONS} persons",
            stacklevel=5,
        )


def _strong_groups(answers: Answers, size: int) -> tuple[int, npt.NDArray[np.int32]]:
    """Return the groups of items connected in both directions by the first persons."""
    values, known = answers.values[:size], answers.known[:size]
    above = (values > 0).astype(np.float32)
    below = ((values < answers.highest) & known).astype(np.float32)
    n_groups, group = connected_components(above.T @ below > 0, connection="strong")
    return n_groups, group


def check_answers(answers: Answers) -> None:
    """Raise an error for items with answers that nobody gave."""
    seen = np.zeros((answers.highest.size, int(answers.highest.max()) + 1), dtype=bool)
    for answer in range(seen.shape[1]):
        seen[:, answer] = (answers.values == answer).any(axis=0)
    for j, top in enumerate(answers.highest.tolist()):
        for answer in range(top + 1):
            if not seen[j, answer]:
                raise ValueError(
                    f"answer {answer} of item {answers.names[j]!r} was given by nobody whose score "
                    "is not extreme, so that its threshold has no finite estimate; merge it with "
                    "the answer next to it"
                )


def _check_linked(answers: Answers, together: npt.NDArray[np.bool_]) -> None:
    n_groups, group = connected_components(together, directed=False)
    if n_groups > 1:
        names = listed([answers.names[j] for j in np.flatnonzero(group == group[-1])])
        raise ValueError(
            f"nobody with information answered both {names} and other items, so that they cannot "
            "be put on one scale; fit them by themselves, or add answers that link them"
        )


def listed(names: list[str]) -> str:
    """Return some names as a text.

    >>> listed(["a", "b"])
    "items 'a', 'b'"
    """
    shown = ", ".join(map(repr, names[:MOST_NAMES])) + (", …" if len(names) > MOST_NAMES else "")
    return f"item{'s' * (len(names) > 1)} {shown}"
