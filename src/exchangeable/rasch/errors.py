"""Standard errors of the items of a mixture, accounting for the unknown classes.

The information is the sum of the outer products of the derivatives of each person's log-probability
with respect to all parameters: items, distributions of totals, and sizes of the classes. Missing
answers are summed out exactly. With one class, derivatives given the score are sufficient, and the
conditional information is used instead.
"""

import warnings

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray
from exchangeable.families.common import total_kernels as totals
from exchangeable.families.items import ItemScale, items_of
from exchangeable.rasch.parameters import ItemParameters, to_thresholds

CHUNK = 1 << 12
LARGEST = 12.0
"""Thresholds beyond this represent answers that all or none of a class give."""
LEAST_TOTAL = 1e-300
LEAST_PERSONS = 0.5
"""Answers given by fewer persons of a class than this count as never given."""
NOTHING = 1e-9
"""Directions whose eigenvalue is below this share of the largest carry no information."""
BoolArray = npt.NDArray[np.bool_]


def class_parameters(scale: ItemScale, names: tuple[str, ...]) -> ItemParameters:
    """Return the centred thresholds of each class, NaN if they have diverged."""
    finite = _finite(scale)
    credits = np.where(finite, scale.log_credits, 0.0)
    thresholds = np.empty_like(scale.log_credits)
    for y in range(scale.n_classes):
        used = _usable(scale, y)
        kept = np.flatnonzero(used[items_of(scale.highest)])
        thresholds[:, y] = np.nan
        if used.sum() > 1:
            thresholds[kept, y] = to_thresholds(scale.highest[used]) @ credits[kept, y]
    far = np.abs(thresholds) > LARGEST
    if far.any():
        return class_parameters(_without(scale, far), names)
    return ItemParameters(names, scale.highest, thresholds)


def warn_of_infinite(parameters: ItemParameters) -> None:
    """Warn about items that have no finite estimate in some class."""
    for y in range(parameters.n_classes):
        lost = np.isnan(parameters.locations[:, y])
        if lost.any():
            shown = ", ".join(repr(parameters.names[j]) for j in np.flatnonzero(lost)[:8])
            warnings.warn(
                f"no finite estimate in class {y} for {shown}: (nearly) all persons of the class "
                "gave the same answer; these parameters are NaN",
                stacklevel=3,
            )


def without_unknown(scale: ItemScale, values: FloatArray, mass: FloatArray) -> ItemScale:
    """Return the scale with NaN for estimates that the answers do not support.

    A class with fewer persons than parameters supports none. In a class, an item is not supported
    if some answer was given by less than half a person: EM takes long to reach infinity.

    Parameters
    ----------
    scale : ItemScale
        The fitted items.
    values : array of shape (n_persons, n_items)
        The answers, NaN if missing.
    mass : array of shape (n_persons, n_classes)
        Weights of the persons in each class, by their posteriors.
    """
    persons, n_free = mass.sum(axis=0), len(scale.log_credits) - 1
    small = persons < n_free + 1
    for y in np.flatnonzero(small):
        warnings.warn(
            f"class {y} is (nearly) empty: it holds {persons[y]:.1f} persons, too few for "
            f"{n_free} item parameters, which are NaN; fit fewer classes",
            stacklevel=4,
        )
    lost = np.array(np.broadcast_to(small, scale.log_credits.shape))
    scores, possible = np.nansum(values, axis=1), ~np.isnan(values) @ scale.highest
    inside = mass * ((scores > 0) & (scores < possible))[:, None]
    items = items_of(scale.highest)
    for j, top in enumerate(scale.highest.tolist()):
        given = np.array([(values[:, j] == v) @ inside for v in range(top + 1)])
        lost[items == j] |= (given < LEAST_PERSONS).any(axis=0)
    return _without(scale, lost)


def with_errors(
    parameters: ItemParameters,
    scale: ItemScale,
    shares: FloatArray,
    posterior: FloatArray,
    values: FloatArray,
    weights: FloatArray,
) -> ItemParameters:
    """Return the items of several classes with the covariances of their thresholds.

    Parameters
    ----------
    parameters : ItemParameters
        The thresholds.
    scale : ItemScale
        The fitted items.
    shares : array of shape (n_classes,)
        Sizes of the classes.
    posterior : array of shape (n_persons, n_classes)
        Posterior probability of each class for each person.
    values : array of shape (n_persons, n_items)
        The answers, NaN if missing.
    weights : array of shape (n_persons,)
        Weight of each person.
    """
    k, n = scale.n_classes, len(scale.log_credits)
    free = _free(parameters, scale)
    n_free = int(free.sum())
    if (weights > 0).sum() <= n_free:
        warnings.warn(
            f"{int((weights > 0).sum())} persons are too few for standard errors of {n_free} "
            "parameters; fit fewer classes, or collect more answers",
            stacklevel=3,
        )
        return ItemParameters(parameters.names, parameters.highest, parameters.thresholds)
    information = np.zeros((n_free, n_free))
    makers = [_Derivatives(scale, y) for y in range(k)]
    for begin in range(0, len(values), CHUNK):
        part = slice(begin, begin + CHUNK)
        own = [maker.of(values[part], posterior[part, y]) for y, maker in enumerate(makers)]
        lines = np.concatenate([*own, posterior[part] - shares], axis=1)[:, free]
        information += (lines * weights[part, None]).T @ lines
    full = np.zeros((free.size, free.size))
    full[np.ix_(free, free)] = _inverse(information)
    step = n + len(scale.log_totals)
    steps = np.concatenate([np.arange(y * step, y * step + n) for y in range(k)])
    maps = np.zeros((k * n, k * n))
    for y in range(k):
        lost = np.isnan(parameters.thresholds[:, y])
        kept = y * n + np.flatnonzero(~lost)
        used = ~np.isnan(parameters.locations[:, y])
        if used.any():
            maps[np.ix_(kept, kept)] = to_thresholds(scale.highest[used])
    if _unknown(information, np.isin(np.flatnonzero(free), steps)):
        warnings.warn(
            "the answers do not tell the items of all classes: there are more classes than can be "
            "told apart; standard errors are NaN",
            stacklevel=3,
        )
        return ItemParameters(parameters.names, parameters.highest, parameters.thresholds)
    spread = maps @ full[np.ix_(steps, steps)] @ maps.T
    hidden = np.isnan(parameters.thresholds.T.ravel())
    spread[hidden] = np.nan
    spread[:, hidden] = np.nan
    return ItemParameters(parameters.names, parameters.highest, parameters.thresholds, spread)


def _eigen(information: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return factors that scale the information to a unit diagonal, and its eigensystem."""
    diagonal = np.diag(information)
    scales = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    values, vectors = np.linalg.eigh(information * np.outer(scales, scales))
    return scales, values, vectors


def _inverse(information: FloatArray) -> FloatArray:
    """Return the inverse, without directions that are not identified.

    There are always some: to which classes those who solve all items, or none, belong.
    """
    scales, values, vectors = _eigen(information)
    known = values > NOTHING * values.max()
    turned = (vectors * scales[:, None])[:, known]
    return np.asarray((turned / values[known]) @ turned.T)


def _unknown(information: FloatArray, steps: BoolArray) -> bool:
    """Whether a direction that is not identified involves items."""
    scales, values, vectors = _eigen(information)
    lost = (vectors * scales[:, None])[:, values <= NOTHING * values.max()]
    largest = np.abs(lost).max(axis=0, initial=1e-300)
    return bool((np.abs(lost[steps]) > 1e-3 * largest).any())


class _Derivatives:
    """Derivatives of log-probabilities with respect to log ε and log q of one class."""

    def __init__(self, scale: ItemScale, y: int) -> None:
        begins = np.concatenate([[0], np.cumsum(scale.highest)[:-1]]).astype(np.int64)
        raised = np.insert(scale.log_credits[:, y], begins, 0.0)
        self.starts = begins + np.arange(begins.size)
        sizes = scale.highest + 1
        norm = np.logaddexp.reduceat(raised, self.starts)
        shares = np.exp(raised - np.repeat(norm, sizes))
        self.q = np.exp(scale.log_totals[:, y])
        alone = np.empty(self.q.size)
        totals.independent_totals(self.starts, sizes, shares, alone)
        alone = np.maximum(alone, LEAST_TOTAL)
        self.scale = totals.Scale(self.starts, sizes, shares, self.q / alone)
        nothing = np.full((1, sizes.size), np.nan)
        given = np.zeros((self.q.size, shares.size))
        for t in range(self.q.size):
            unit = np.zeros(self.q.size)
            unit[t] = 1.0 / alone[t]
            unused = np.zeros((1, self.q.size))
            totals.expect_rows(nothing, self.scale._replace(ratio=unit), given[t : t + 1], unused)
        self.given = given

    def of(self, values: FloatArray, posterior: FloatArray) -> FloatArray:
        """Return them for some persons, each multiplied by the posterior of the class."""
        levels = np.zeros((len(values), self.given.shape[1]))
        reached = np.zeros((len(values), self.q.size))
        totals.expect_rows(np.ascontiguousarray(values), self.scale, levels, reached)
        steps = np.delete(levels - reached @ self.given, self.starts, axis=1)
        both = np.concatenate([steps, reached - self.q], axis=1)
        return np.asarray(both * posterior[:, None])


def _free(parameters: ItemParameters, scale: ItemScale) -> BoolArray:
    """Return the free parameters: not one step and one total per class, and not one class."""
    chosen = []
    for y in range(scale.n_classes):
        steps = ~np.isnan(parameters.thresholds[:, y])
        if steps.any():
            steps[np.flatnonzero(steps)[0]] = False
        q = np.exp(scale.log_totals[:, y])
        reached = q > 1e-8
        reached[np.argmax(q)] = False
        chosen += [steps, reached]
    sizes = np.ones(scale.n_classes, dtype=bool)
    sizes[0] = False
    return np.concatenate([*chosen, sizes])


def _finite(scale: ItemScale) -> BoolArray:
    return np.asarray(np.isfinite(scale.log_credits))


def _usable(scale: ItemScale, y: int) -> BoolArray:
    """Return which items have finite parameters in a class."""
    lost = np.bincount(items_of(scale.highest), ~_finite(scale)[:, y], scale.highest.size)
    return np.asarray(lost == 0)


def _without(scale: ItemScale, far: BoolArray) -> ItemScale:
    """Return the scale with some steps marked as infinite."""
    marked = np.where(far, -np.inf, scale.log_credits)
    return ItemScale(scale.columns, scale.highest, marked, scale.log_totals)
