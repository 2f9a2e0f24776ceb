"""Statistics as tables for the page of a report: automata, possibly nested."""

from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.statistics.automaton import Automaton

Told = dict[str, Any]
"""The tables of an automaton, or of an outer one and the inner ones whose values it reads."""
COUNTING = Automaton(np.zeros((1, 2), dtype=np.int64), np.array([[0, 1]]), np.zeros(1, np.int64))
"""Sums ones."""


def told_automaton(automaton: Automaton, n_variables: int, place: npt.NDArray[Any]) -> Told:
    """Return the tables of an automaton.

    Parameters
    ----------
    automaton : Automaton
        Reads the variables in order.
    n_variables : int
        Number of variables that it reads.
    place : array
        The index of the value of each total, −1 if no assignment has it.
    """
    running = Automaton(automaton.moves, automaton.gains, np.zeros_like(automaton.final))
    return {
        "n": n_variables,
        "moves": automaton.moves,
        "gains": automaton.gains,
        "final": automaton.final,
        "width": running.max_total(n_variables) + 1,
        "place": np.asarray(place, dtype=np.int64),
    }


def page_steps(told: Told) -> float:
    """Return the approximate number of logarithms or exponentials in a pass over the variables."""
    if "outer" in told:
        inside = [page_steps(told["inner"][which]) for which in told["which"]]
        return page_steps(told["outer"]) + sum(inside)
    return float(2 * told["n"] * told["moves"].size * told["width"])
