"""All queries, implemented once for every mixture.

Every function takes a mixture and rows with missing entries. The known entries of a row are its
evidence e.
"""

from collections.abc import Callable

import numpy as np

from exchangeable.arrays import UNASSIGNED, FloatArray, IntArray, SymbolArray, normalize_log
from exchangeable.data.observed import Observed, part_rows
from exchangeable.families.contract import Completions, Model
from exchangeable.families.mixture import MOST_CELLS, Mixture
from exchangeable.runtime.threads import run

MAX_STATES = 1 << 16


def class_posterior(
    mixture: Mixture, observed: Observed, n_jobs: int | None = None, first: int = 0
) -> FloatArray:
    """Return P(y | e) for every row; rows are numbered from `first` and must all be possible."""
    log_posterior, log_evidence = mixture.log_posterior(observed, n_jobs)
    check_possible(log_evidence, first)
    return np.exp(log_posterior)


def class_prior(mixture: Mixture, observed: Observed) -> FloatArray:
    """Return P(y) for every row: what `class_posterior` returns if nothing is known."""
    prior = normalize_log(mixture.log_prior[np.newaxis], mixture.log_prior)[0]
    return np.repeat(np.exp(prior), observed.n_rows, axis=0)


def check_possible(log_evidence: FloatArray, first: int = 0) -> None:
    """Raise an error for rows, numbered from `first`, that are impossible under the model."""
    impossible = np.flatnonzero(log_evidence == -np.inf)
    if impossible.size:
        raise ValueError(
            f"row {first + impossible[0]} of the evidence has probability zero in this model, so "
            "that nothing follows from it (alpha > 0 makes every row possible)"
        )


def marginals(mixture: Mixture, observed: Observed, n_jobs: int | None = None) -> FloatArray:
    """Return P(x_j = 1 | e) for every row and variable."""

    def one(span: slice, part: Observed) -> FloatArray:
        posterior = class_posterior(mixture, part, n_jobs, span.start)
        chance = mixture.model.mean_marginals(part, posterior)
        symbols = part.symbols()
        return np.where(symbols == UNASSIGNED, np.minimum(chance, 1.0), symbols)

    return _by_parts(mixture, observed, one, n_jobs)


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
    """Return the jointly most probable completion and class, among some classes."""
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
    """Return a draw from P(x, y | e) for every row: a completion and its class."""
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
    """Return the information gain about the class, I(y; x_j | e) in nats."""

    def one(span: slice, part: Observed) -> FloatArray:
        posterior = class_posterior(mixture, part, n_jobs, span.start)
        chance, remaining = _means_and_entropies(mixture.model, part, posterior)
        return np.maximum(_entropy(np.minimum(chance, 1.0)) - remaining, 0.0)

    return _by_parts(mixture, observed, one, n_jobs)


def variable_information(
    mixture: Mixture,
    observed: Observed,
    target: int,
    n_jobs: int | None = None,
) -> FloatArray:
    """Return the information gain about another variable, I(x_target; x_j | e).

    It is zero for the target itself, and wherever either variable is known.
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
    mixture: Mixture,
    observed: Observed,
    one: Callable[[slice, Observed], FloatArray],
    n_jobs: int | None,
) -> FloatArray:
    """Return the matrix of the answers of `one`, called for one part of the rows at a time.

    The rows of a part, and their class probabilities, take little memory.
    """
    result = np.empty((observed.n_rows, observed.n_variables))
    copies = max(1.0, part_rows(observed.n_variables) * mixture.log_prior.size / MOST_CELLS)

    def fill(piece: tuple[slice, Observed]) -> None:
        result[piece[0]] = one(*piece)

    run(fill, observed.chunks(copies), n_jobs)
    return result


def _means_and_entropies(
    model: Model, part: Observed, posterior: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return Σ_y P(y | e)·P(x_j = 1 | e, y), and the same sums of the entropies of these terms."""
    chances = model.own_marginals
    if chances is not None:
        known = ~part.hole_flags()
        entropies = np.where(known, 0.0, posterior @ _entropy(chances))
        return model.mean_marginals(part, posterior), entropies
    means, entropies = np.zeros((2, part.n_rows, part.n_variables))
    for y in range(model.n_classes):
        members = np.flatnonzero(posterior[:, y] > 0)
        if members.size:
            chances, share = model.marginals(part.take(members), y), posterior[members, y, None]
            means[members] += share * chances
            entropies[members] += share * _entropy(chances)
    return means, entropies


def _entropy(p: FloatArray) -> FloatArray:
    """Return the entropy of a variable that is on with probability p, in nats."""
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = np.where(p > 0, p * np.log(p), 0.0) + np.where(p < 1, (1 - p) * np.log1p(-p), 0.0)
    return -parts
