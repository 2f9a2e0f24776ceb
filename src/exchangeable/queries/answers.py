"""Every question, written once over a mixture.

Every function takes a mixture and rows with holes. What is known of a row is its evidence e.
"""

from collections.abc import Callable

import numpy as np

from exchangeable.arrays import UNASSIGNED, FloatArray, IntArray, SymbolArray, normalize_log
from exchangeable.data.observed import Observed
from exchangeable.families.contract import Completions, Model
from exchangeable.families.mixture import Mixture
from exchangeable.runtime.threads import run

MAX_STATES = 1 << 16


def class_posterior(mixture: Mixture, observed: Observed, n_jobs: int | None = None) -> FloatArray:
    """Return P(y | e) of every row, all of which must be possible."""
    log_posterior, log_evidence = mixture.log_posterior(observed, n_jobs)
    check_possible(log_evidence)
    return np.exp(log_posterior)


def class_prior(mixture: Mixture, observed: Observed) -> FloatArray:
    """Return P(y) for every row: what `class_posterior` returns where nothing is known."""
    prior = normalize_log(mixture.log_prior[np.newaxis], mixture.log_prior)[0]
    return np.repeat(np.exp(prior), observed.n_rows, axis=0)


def check_possible(log_evidence: FloatArray) -> None:
    """Refuse rows that the model excludes: nothing follows from them."""
    impossible = np.flatnonzero(log_evidence == -np.inf)
    if impossible.size:
        raise ValueError(
            f"row {impossible[0]} of the evidence has probability zero in this model, so that "
            "nothing follows from it (alpha > 0 makes every row possible)"
        )


def marginals(mixture: Mixture, observed: Observed, n_jobs: int | None = None) -> FloatArray:
    """Return P(x_j = 1 | e) for every row and variable."""
    posterior = class_posterior(mixture, observed, n_jobs)

    def one(span: slice, part: Observed) -> FloatArray:
        chance = _average_over_classes(mixture.model, part, posterior[span], lambda p: p)[0]
        symbols = part.symbols()
        return np.where(symbols == UNASSIGNED, np.minimum(chance, 1.0), symbols)

    return _by_parts(observed, one, n_jobs)


def conditional(
    mixture: Mixture,
    observed: Observed,
    query: IntArray,
    n_jobs: int | None = None,
) -> FloatArray:
    """Return P(x_query = v | e) for every row and all v, shape (n_rows, 2, 2, …)."""
    n_states = 1 << query.size
    states = np.indices((2,) * query.size).reshape(query.size, n_states).T
    result = np.empty((observed.n_rows, n_states))
    for span, part in observed.chunks(n_states):
        symbols = np.repeat(part.symbols(), n_states, axis=0)
        symbols[:, query] = np.tile(states, (part.n_rows, 1))
        log_evidence = mixture.log_posterior(Observed.from_symbols(symbols), n_jobs)[1]
        result[span] = log_evidence.reshape(part.n_rows, n_states)
    log_shares, log_evidence = normalize_log(result, np.zeros(n_states))
    check_possible(log_evidence)
    return np.exp(log_shares).reshape(-1, *(2,) * query.size)


def most_probable(
    mixture: Mixture,
    observed: Observed,
    classes: IntArray,
    n_jobs: int | None = None,
) -> Completions:
    """Return the completion and class that are jointly most probable, out of some classes."""
    mixture.check_width(observed)
    best = Completions.none(observed)

    def one(piece: tuple[slice, Observed]) -> None:
        span, part = piece
        found = mixture.model.most_probable(part, mixture.log_prior, classes)
        for whole, some in zip(best, found, strict=True):
            whole[span] = some

    run(one, observed.chunks(), n_jobs)
    check_possible(best.log_prob)
    return best


def draw(
    mixture: Mixture,
    observed: Observed,
    rng: np.random.Generator,
    n_jobs: int | None = None,
) -> tuple[SymbolArray, IntArray]:
    """Return a completion of every row drawn from P(x, y | e), and its class."""
    classes = draw_classes(class_posterior(mixture, observed, n_jobs), rng)
    rows = np.empty((observed.n_rows, observed.n_variables), dtype=np.uint8)

    def one(task: tuple[int, np.random.Generator]) -> None:
        members = np.flatnonzero(classes == task[0])
        rows[members] = mixture.model.draw(observed.take(members), *task)

    drawn = [int(y) for y in np.unique(classes)]
    run(one, zip(drawn, rng.spawn(len(drawn)), strict=True), n_jobs)
    return rows, classes


def draw_classes(posterior: FloatArray, rng: np.random.Generator) -> IntArray:
    """Return a class for every row, drawn from the row's probabilities."""
    heights = np.cumsum(posterior, axis=1)
    uniform = rng.random((len(posterior), 1)) * heights[:, -1:]
    return np.asarray((heights <= uniform).sum(axis=1))


def class_information(
    mixture: Mixture, observed: Observed, n_jobs: int | None = None
) -> FloatArray:
    """Return how much knowing x_j would tell about the class: I(y; x_j | e) in nats."""
    posterior = class_posterior(mixture, observed, n_jobs)

    def one(span: slice, part: Observed) -> FloatArray:
        shares = posterior[span]
        chance, remaining = _average_over_classes(
            mixture.model, part, shares, lambda p: p, _entropy
        )
        return np.maximum(_entropy(np.minimum(chance, 1.0)) - remaining, 0.0)

    return _by_parts(observed, one, n_jobs)


def variable_information(
    mixture: Mixture,
    observed: Observed,
    target: int,
    n_jobs: int | None = None,
) -> FloatArray:
    """Return how much knowing x_j would tell about another variable: I(x_target; x_j | e).

    It is zero for the target itself, and wherever either is known.
    """
    before = marginals(mixture, observed, n_jobs)
    gain = _entropy(before)
    symbols = observed.symbols()
    open_rows = np.flatnonzero(symbols[:, target] == UNASSIGNED)
    for value in (0, 1):
        share = before[:, target] if value else 1 - before[:, target]
        members = open_rows[share[open_rows] > 0]
        if members.size:
            extended = symbols[members]
            extended[:, target] = value
            after = marginals(mixture, Observed.from_symbols(extended), n_jobs)
            gain[members] -= share[members, None] * _entropy(after)
    gain[:, target] = 0.0
    gain[symbols[:, target] != UNASSIGNED] = 0.0
    return np.maximum(gain, 0.0)


def _by_parts(
    observed: Observed, one: Callable[[slice, Observed], FloatArray], n_jobs: int | None
) -> FloatArray:
    """Return the matrix made of what `one` answers for each part of the rows."""
    result = np.empty((observed.n_rows, observed.n_variables))

    def fill(piece: tuple[slice, Observed]) -> None:
        result[piece[0]] = one(*piece)

    run(fill, observed.chunks(), n_jobs)
    return result


def _average_over_classes(
    model: Model,
    part: Observed,
    posterior: FloatArray,
    *functions: Callable[[FloatArray], FloatArray],
) -> list[FloatArray]:
    """Return Σ_y P(y | e)·f(P(x_j = 1 | e, y)) for each function f."""
    chances = model.own_marginals
    if chances is not None:
        symbols = part.symbols()
        known = symbols != UNASSIGNED
        return [
            np.where(known, function(symbols.astype(np.float64)), posterior @ function(chances))
            for function in functions
        ]
    sums = [np.zeros((part.n_rows, part.n_variables)) for _ in functions]
    for y in range(model.n_classes):
        members = np.flatnonzero(posterior[:, y] > 0)
        if members.size:
            chances = model.marginals(part.take(members), y)
            for total, function in zip(sums, functions, strict=True):
                total[members] += posterior[members, y, None] * function(chances)
    return sums


def _entropy(p: FloatArray) -> FloatArray:
    """Return the entropy of a variable that is on with probability p, in nats."""
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = np.where(p > 0, p * np.log(p), 0.0) + np.where(p < 1, (1 - p) * np.log1p(-p), 0.0)
    return -parts
