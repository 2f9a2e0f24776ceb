"""Statistics in model files: those of the library by arguments, user-defined ones by class."""

import importlib
import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from exchangeable.statistics import (
    AtLeast,
    BlockCounts,
    CategoricalCounts,
    Count,
    FirstAndLast,
    LongestRun,
    Nested,
    Pooled,
    Runs,
    SecondOrderTransitions,
    Statistic,
    Transitions,
    WeightedSum,
)
from exchangeable.storage.archive import ModelFileError
from exchangeable.storage.limits import Budget
from exchangeable.storage.values import short

OWN = "own"
"""What files call the class of a statistic that is not part of the library."""
TRUSTED: ContextVar[frozenset[str]] = ContextVar("trusted statistics", default=frozenset())
STEPS_PER_VARIABLE = 40_000
"""Cost of an automaton per variable, however few cells its tables have."""
STEPS_PER_CELL = 40
"""Cost per cell of its tables, and of other statistics per entry of theirs."""
N_PASSES = 4
"""Number of passes until the first answer: for the statistic, its set sizes, and the masses, in
both directions."""
OUTER = ("FirstAndLast", "Runs", "SecondOrderTransitions", "Transitions", "WeightedSum")
"""Statistics of the library that may read values of others, which have two values each."""


def encode_statistic(statistic: Any, name: str) -> dict[str, Any] | None:
    """Return the constructor of a statistic, or None for anything else."""
    if not isinstance(statistic, Statistic):
        return None
    kind = type(statistic)
    arguments: dict[str, Any]
    if isinstance(statistic, Pooled) and kind is Pooled:
        arguments = {"n": statistic.n, "k": statistic.k, "tau": statistic.tau}
    elif isinstance(statistic, Nested) and kind is Nested:
        arguments = {
            "outer": encode_statistic(statistic.outer, name),
            "inner": [encode_statistic(inner, name) for inner in statistic.inner],
            "groups": [group.tolist() for group in statistic.groups],
        }
    elif isinstance(statistic, BlockCounts) and kind is BlockCounts:
        arguments = {"blocks": [block.tolist() for block in statistic.blocks]}
    elif kind is CategoricalCounts:
        arguments = {"n_variables": statistic.n_variables, "n_symbols": statistic.n_symbols}
    elif isinstance(statistic, AtLeast) and kind is AtLeast:
        arguments = {"n_variables": statistic.n_variables, "minimum": statistic.minimum}
    elif isinstance(statistic, WeightedSum) and kind is WeightedSum:
        arguments = {"weights": statistic.weights}
    elif kind in BY_SIZE:
        arguments = {"n_variables": statistic.n_variables}
    else:
        return _encode_own(statistic, name)
    return {"class": kind.__name__, "n_values": statistic.n_values, **arguments}


def _encode_own(statistic: Statistic, name: str) -> dict[str, Any]:
    """Return the import path of the class of a user's statistic, and its arguments."""
    kind = type(statistic)
    path = f"{kind.__module__}:{kind.__qualname__}"
    try:
        found = _import(path)
    except (ImportError, AttributeError):
        found = None
    library = kind.__module__.partition(".")[0] == __name__.partition(".")[0]
    if library or found is not kind or kind.__module__ == "__main__":
        raise TypeError(
            f"{name} is {statistic!r}, which is made of Python functions; a model file holds data "
            "only, never code. Write it as a subclass of Statistic in a module of its own, or "
            "pickle the model"
        )
    arguments = {}
    for parameter in inspect.signature(kind).parameters:
        value = getattr(statistic, parameter, None)
        if not _is_plain(value):
            raise TypeError(
                f"{name} is {statistic!r}, whose argument {parameter} is {value!r}; to be saved, a "
                "statistic keeps its arguments under their names, as numbers, text or lists of them"
            )
        arguments[parameter] = value
    return {"class": OWN, "path": path, "n_values": statistic.n_values, "arguments": arguments}


def _import(path: str) -> Any:
    """Return what is found at ``module:name``."""
    module, _, qualified = path.partition(":")
    found: Any = importlib.import_module(module)
    for part in qualified.split("."):
        found = getattr(found, part)
    return found


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_plain(each) for each in value)
    return isinstance(value, str | int | float | bool)


@contextmanager
def trusted(paths: Sequence[str]) -> Iterator[None]:
    """Allow files to refer to these classes, as ``module:name``, while they are read."""
    token = TRUSTED.set(frozenset(paths))
    try:
        yield
    finally:
        TRUSTED.reset(token)


def check_cost(encoded: dict[str, Any], budget: Budget) -> None:
    """Refuse to write what could not be read again; a user's own classes are not created here."""
    if encoded["class"] != OWN:
        with trusted(_own_paths(encoded)):
            plan_statistic(encoded, encoded["n_values"], budget)


def _own_paths(encoded: dict[str, Any]) -> list[str]:
    """Return the import paths of the users' own classes, of a statistic and of those inside."""
    if encoded["class"] == OWN:
        return [encoded["path"]]
    inside = [encoded["outer"], *encoded["inner"]] if "outer" in encoded else []
    return [path for each in inside for path in _own_paths(each)]


def _plan_own(value: dict[str, Any], n_values: int) -> Callable[[], Statistic]:
    """Return the constructor of a user's own statistic, if reading it was allowed."""
    path, arguments = value.get("path"), value.get("arguments")
    if not isinstance(path, str) or not isinstance(arguments, dict):
        raise ModelFileError("a statistic does not say where its class is")
    if path not in TRUSTED.get():
        raise ModelFileError(
            f"needs the class {short(path)}, which is not of this library: making it runs its "
            f"code. If you trust it, load with statistics=[{short(path)}]"
        )
    if not all(_is_plain(each) for each in arguments.values()):
        raise ModelFileError(f"the arguments of {short(path)} are not plain")
    try:
        kind = _import(path)
    except (ImportError, AttributeError, ValueError) as error:
        raise ModelFileError(f"the class {short(path)} cannot be imported: {error}") from None
    if not (isinstance(kind, type) and issubclass(kind, Statistic)):
        raise ModelFileError(f"{short(path)} is not a Statistic")
    return _with_values(lambda: kind(**arguments), n_values)


def decode_statistic(
    value: Any, n_values: int | None = None, budget: Budget | None = None
) -> Statistic:
    """Return the statistic with given arguments, for which the file has `n_values` weights.

    Parameters
    ----------
    value : dict
        The result of `encode_statistic`.
    n_values : int, optional
        Number of weights, if the file has any.
    budget : Budget, optional
        The remaining work budget of the file.
    """
    if n_values is None:
        n_values = value.get("n_values") if isinstance(value, dict) else None
        if type(n_values) is not int or n_values < 1:
            raise ModelFileError("a statistic does not say how many values it has")
    make = plan_statistic(value, n_values, budget or Budget())
    try:
        return make()
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"statistic {short(value)} does not make sense: {error}") from None


def plan_statistic(value: Any, n_values: int, budget: Budget) -> Callable[[], Statistic]:
    """Return the constructor of the statistic, after checking that its cost is acceptable."""
    if not isinstance(value, dict):
        raise ModelFileError("statistic is not an object")
    kind = value.get("class")
    if value.get("n_values", n_values) != n_values:
        raise ModelFileError(f"statistic {short(kind)}: values do not go with {n_values} weights")
    if kind == OWN:
        return _plan_own(value, n_values)
    arguments = {key: entry for key, entry in value.items() if key not in ("class", "n_values")}
    if not isinstance(kind, str) or kind not in PLANS:
        raise ModelFileError(f"statistic {short(kind)} is unknown here")
    whole = kind not in ("Nested", "BlockCounts", "WeightedSum")
    try:
        if whole and not all(type(entry) is int for entry in arguments.values()):
            raise ValueError("arguments must be whole numbers")
        return PLANS[kind](n_values, budget, **arguments)
    except ModelFileError:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        raise ModelFileError(f"statistic {kind!r} does not make sense: {error}") from None


def _spend_automaton(budget: Budget, n_variables: int, n_cells: int) -> None:
    """Subtract the cost of an automaton's passes; `n_cells` are its states times its totals."""
    steps = n_variables * (STEPS_PER_VARIABLE + STEPS_PER_CELL * n_cells)
    budget.spend(N_PASSES * steps, f"a statistic that reads {n_variables:,} variables")


def _spend_values(budget: Budget, n_values: int, width: int) -> None:
    """Subtract the cost of tables over all values, which are vectors."""
    steps = STEPS_PER_CELL * n_values * width
    budget.spend(N_PASSES * steps, f"a statistic with {n_values:,} values of {width:,} numbers")


def _count(n_values: int, budget: Budget, n_variables: int) -> Callable[[], Statistic]:
    if not 0 < n_variables == n_values - 1:
        raise ValueError(f"{n_variables} variables do not go with {n_values} weights")
    _spend_values(budget, n_values, 1)
    return lambda: Count(n_variables)


def _transitions(n_values: int, budget: Budget, n_variables: int) -> Callable[[], Statistic]:
    if not n_variables > 0 or n_variables // 2 + 1 != n_values:
        raise ValueError(f"{n_variables} variables do not go with {n_values} weights")
    _spend_automaton(budget, n_variables, 2 * n_values)
    return lambda: Transitions(n_variables)


def _runs(n_values: int, budget: Budget, n_variables: int) -> Callable[[], Statistic]:
    if not 0 < n_variables == n_values:
        raise ValueError(f"{n_variables} variables do not go with {n_values} weights")
    _spend_automaton(budget, n_variables, 3 * (n_values + 1))
    return lambda: Runs(n_variables)


def _first_and_last(n_values: int, budget: Budget, n_variables: int) -> Callable[[], Statistic]:
    if not n_variables > 0 or n_values != min(2**n_variables, 4):
        raise ValueError(f"{n_variables} variables do not go with {n_values} weights")
    _spend_automaton(budget, n_variables, 5 * 4)
    return lambda: FirstAndLast(n_variables)


def _longest_run(n_values: int, budget: Budget, n_variables: int) -> Callable[[], Statistic]:
    if not 0 < n_variables == n_values - 1:
        raise ValueError(f"{n_variables} variables do not go with {n_values} weights")
    _spend_automaton(budget, n_variables, n_values * n_values)
    return lambda: LongestRun(n_variables)


def _second_order(n_values: int, budget: Budget, n_variables: int) -> Callable[[], Statistic]:
    if not 0 < n_variables < 4 * n_values + 4:
        raise ValueError(f"{n_variables} variables do not go with {n_values} weights")
    _spend_automaton(budget, n_variables, 7 * (n_variables // 2 + 1) ** 2)
    return _with_values(lambda: SecondOrderTransitions(n_variables), n_values)


def _weighted_sum(n_values: int, budget: Budget, weights: list[int]) -> Callable[[], Statistic]:
    if not isinstance(weights, list) or not all(type(weight) is int for weight in weights):
        raise ValueError("weights must be whole numbers")
    total = sum(weights)
    if not weights or min(weights) < 0 or n_values > total + 1:
        raise ValueError(f"these weights do not go with {n_values} weights of values")
    _spend_automaton(budget, len(weights), (len(weights) + 1) * (total + 1))
    return _with_values(lambda: WeightedSum(weights), n_values)


def _at_least(
    n_values: int, budget: Budget, n_variables: int, minimum: int
) -> Callable[[], Statistic]:
    if not (0 < minimum <= n_variables and n_values == 2):
        raise ValueError(f"minimum={minimum} of {n_variables} does not go with {n_values} weights")
    _spend_values(budget, n_variables + 1, 1)
    return lambda: AtLeast(n_variables, minimum)


def _with_values(make: Callable[[], Statistic], n_values: int) -> Callable[[], Statistic]:
    """Return a constructor that rejects a statistic with another number of values."""

    def checked() -> Statistic:
        statistic = make()
        if statistic.n_values != n_values:
            raise ValueError(f"{n_values} weights are not one per value")
        return statistic

    return checked


def _categorical(
    n_values: int, budget: Budget, n_variables: int, n_symbols: int
) -> Callable[[], Statistic]:
    if not (0 < n_variables < n_values and 1 < n_symbols <= n_values):
        raise ValueError(f"{n_variables} variables do not go with {n_values} weights")
    _spend_values(budget, n_values, n_symbols)
    rest = min(n_variables, n_symbols - 1)  # C(a + b, b) ≥ 2^min(a, b)
    if rest >= n_values.bit_length() or math.comb(n_variables + n_symbols - 1, rest) != n_values:
        raise ValueError(f"{n_values} weights are not one per value")
    return lambda: CategoricalCounts(n_variables, n_symbols)


def _pooled(n_values: int, budget: Budget, n: int, k: int, tau: int) -> Callable[[], Statistic]:
    if not (0 < k <= n and 0 <= tau < k * k and (n // k) ** 2 + 1 == n_values):
        raise ValueError(f"n={n}, k={k}, tau={tau} do not go with {n_values} weights")
    _spend_automaton(budget, n_values - 1, n_values)
    _spend_automaton(budget, n * n, 2 * (tau + 2))  # every square is asked by itself
    return lambda: Pooled(n, k, tau)


def _block_counts(
    n_values: int, budget: Budget, blocks: list[list[int]]
) -> Callable[[], Statistic]:
    product = 1
    for block in blocks:
        product *= len(block) + 1
        if product > n_values:
            break
    if product != n_values:
        raise ValueError(f"{n_values} weights are not one per value")
    _spend_values(budget, n_values, len(blocks))
    return lambda: BlockCounts(blocks)


def _nested(
    n_values: int, budget: Budget, outer: dict[str, Any], inner: list[Any], groups: list[list[int]]
) -> Callable[[], Statistic]:
    if not isinstance(outer, dict) or outer.get("class") not in (*OUTER, OWN):
        raise ValueError("the outer statistic is not one that can be saved")
    reads = plan_statistic(outer, n_values, budget)
    parts = [plan_statistic(entry, _inner_values(outer, entry), budget) for entry in inner]
    return lambda: Nested(reads(), [make() for make in parts], groups)  # type: ignore[arg-type]


def _inner_values(outer: dict[str, Any], inner: Any) -> int:
    """Return the number of values of an inner statistic: those that the outer one reads."""
    if outer.get("class") != OWN:
        return 2
    n_values = inner.get("n_values") if isinstance(inner, dict) else None
    if type(n_values) is not int or n_values < 1:
        raise ValueError("an inner statistic does not say how many values it has")
    return n_values


BY_SIZE = (Count, Transitions, Runs, FirstAndLast, LongestRun, SecondOrderTransitions)
"""Statistics that are defined by their number of variables."""
PLANS: dict[str, Callable[..., Callable[[], Statistic]]] = {
    "AtLeast": _at_least,
    "BlockCounts": _block_counts,
    "CategoricalCounts": _categorical,
    "Count": _count,
    "FirstAndLast": _first_and_last,
    "LongestRun": _longest_run,
    "Nested": _nested,
    "Pooled": _pooled,
    "Runs": _runs,
    "SecondOrderTransitions": _second_order,
    "Transitions": _transitions,
    "WeightedSum": _weighted_sum,
}
