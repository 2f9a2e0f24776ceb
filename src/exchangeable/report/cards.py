"""What the classes are like: a card for each with its most distinctive variables, and a table."""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import rel_entr

from exchangeable.arrays import FloatArray
from exchangeable.classes.profiles import Profiles, profiles_of

MOST_CARDS, MOST_LINES, MOST_COLUMNS = 24, 6, 8


class Telling(NamedTuple):
    """Averages over all classes, and how strongly each line of a profile distinguishes a class."""

    whole: FloatArray
    nats: FloatArray


def telling(profiles: Profiles) -> Telling:
    """Return the averages over classes, and the divergence of each class from them, in nats.

    It is the Kullback-Leibler divergence of a class from the average: for probabilities of a
    Bernoulli variable, for means of counts of a Poisson distribution, for means of measurements of
    a normal distribution with the overall variance. Lines with standard deviations are never
    distinctive.

    Examples
    --------
    >>> import numpy as np
    >>> from exchangeable.classes.profiles import Entry
    >>> entries = (Entry("a", "1", "binary"), Entry("b", "1", "binary"))
    >>> values = np.array([[0.1, 0.9], [0.5, 0.5]])
    >>> found = telling(Profiles(entries, np.array([0.5, 0.5]), values))
    >>> found.whole.tolist(), found.nats.round(3).tolist()
    ([0.5, 0.5], [[0.368, 0.368], [0.0, 0.0]])
    """
    sizes, values = profiles.sizes, profiles.values
    whole = values @ sizes
    nats = np.zeros(values.shape)
    for i, entry in enumerate(profiles.entries):
        own, all_of_them = values[i], whole[i]
        if entry.is_share:
            off = rel_entr(np.maximum(1 - own, 0), max(1 - all_of_them, 0))
            nats[i] = rel_entr(own, all_of_them) + off
        elif entry.kind == "count":
            nats[i] = rel_entr(own, all_of_them) - own + all_of_them
        elif entry.answer == "mean":
            variance = (values[i + 1] ** 2 + own**2) @ sizes - all_of_them**2
            whole[i + 1] = np.sqrt(max(variance, 0.0))
            nats[i] = (own - all_of_them) ** 2 / (2 * variance) if variance > 0 else 0.0
    return Telling(whole, nats)


def profile_data(model: Any, names: list[str]) -> dict[str, Any]:
    """Return the cards of the largest classes, and a table if there are other kinds of columns."""
    profiles = profiles_of(model)
    position = {item: j for j, item in enumerate(profiles.items)}
    binary = model._schema() is None
    owners = range(len(names)) if binary else [position[e.item] for e in profiles.entries]
    lines = [
        names[j] if binary else f"{names[j]}{' = ' if entry.is_share else ', '}{entry.answer}"
        for j, entry in zip(owners, profiles.entries, strict=True)
    ]
    found = telling(profiles)
    order = np.argsort(-profiles.sizes, kind="stable")
    cards = [_card(int(y), profiles, found, lines) for y in order[:MOST_CARDS]]
    if binary:
        return {"cards": cards}
    columns = order[:MOST_COLUMNS]
    rows = [
        [names[j], e.answer, _number(found.whole[i]), *map(_number, profiles.values[i, columns])]
        for i, (j, e) in enumerate(zip(owners, profiles.entries, strict=True))
    ]
    return {"cards": cards, "table": {"classes": columns.tolist(), "rows": rows}}


def _card(y: int, profiles: Profiles, found: Telling, lines: list[str]) -> dict[str, Any]:
    """Return the size of a class and the lines in which it differs most from the average."""
    best = np.argsort(-found.nats[:, y], kind="stable")[:MOST_LINES]
    return {
        "class": y,
        "size": float(profiles.sizes[y]),
        "lines": [
            {
                "text": lines[i],
                "share": profiles.entries[i].is_share,
                "own": float(profiles.values[i, y]),
                "whole": float(found.whole[i]),
            }
            for i in best
            if found.nats[i, y] > 0
        ],
    }


def _number(value: float) -> str:
    """Return a number with four significant digits."""
    return f"{value + 0.0:.4g}"
