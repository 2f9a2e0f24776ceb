"""Statistics as tables from which the page of a report computes: automata, one inside another."""

from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.statistics.automaton import Automaton

Told = dict[str, Any]
"""The tables of an automaton, or an outer one and the inner ones whose values it reads."""
COUNTING = Automaton(np.zeros((1, 2), dtype=np.int64), np.array([[0, 1]]), np.zeros(1, np.int64))
"""Adds up ones."""


def told_automaton(automaton: Automaton, n_variables: int, place: npt.NDArray[Any]) -> Told:
    """Return the tables of an automaton.

    Parameters
    ----------
    automaton : Automaton
        Reads the variables in order.
    n_variables : int
        How many it reads.
    place : array
        The position of the value that each total stands for, −1 where no assignment has it.
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
    """Return about how many logarithms or exponentials one pass over the variables takes."""
    if "outer" in told:
        inside = [page_steps(told["inner"][which]) for which in told["which"]]
        return page_steps(told["outer"]) + sum(inside)
    return float(2 * told["n"] * told["moves"].size * told["width"])
