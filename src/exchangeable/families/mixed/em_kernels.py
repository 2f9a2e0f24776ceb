"""Compiled EM, in a single call, for components of independent columns with levels.

Many fits to small sets of distinct rows, such as those of a bootstrap, spend their time between
passes. Here all passes of a fit are one call, accelerated by squared extrapolation (Varadhan and
Roland 2008).
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.runtime.kernels.cache import compiled
from exchangeable.runtime.kernels.loops import copy, helper
from exchangeable.runtime.kernels.vectors import logarithm

TILE = 256
"""Number of rows whose scores are held at once."""
LEAST_ROW = 1e-290
"""Rows that are less probable than this are scored by logarithms."""
LEAST_SHARE = 1e-12
"""Lower bound of a class's probability."""
_compile = compiled()


class LevelRows(NamedTuple):
    """Rows of columns with levels, with groups of columns encoded as one code.

    Attributes
    ----------
    codes : array of shape (n_groups, n_rows)
        The code of each row in each group of columns; the groups are concatenated.
    members : array of shape (n_codes, most columns of a group)
        The levels that a code represents, by their index among those of all columns; the number of
        levels if missing.
    weights : array of shape (n_rows,)
        How much each row counts.
    """

    codes: npt.NDArray[np.int32]
    members: npt.NDArray[np.int32]
    weights: FloatArray


class LevelLayout(NamedTuple):
    """The layout of the levels of columns, and the prior's weight of each.

    Attributes
    ----------
    starts, sizes : arrays of shape (n_columns,)
        The first level of each column, and how many it has.
    pseudo : array of shape (n_levels,)
        Weight that the prior gives to each level.
    """

    starts: IntArray
    sizes: IntArray
    pseudo: FloatArray


class LevelParameters(NamedTuple):
    """Parameters of all classes.

    Attributes
    ----------
    shares : array of shape (n_classes, n_levels + 1)
        The probability of each level, and 1 for missing ones.
    prior : array of shape (n_classes,)
        The probability of each class.
    """

    shares: FloatArray
    prior: FloatArray


class Workspace(NamedTuple):
    """Workspaces.

    Tables and sums of levels, tables of codes (logarithms, and probabilities) and their sums, one
    line per class; totals of classes; and of a tile the scores, one line per class, their sums, and
    its log-likelihoods.
    """

    table: FloatArray
    sums: FloatArray
    code_table: FloatArray
    code_shares: FloatArray
    code_sums: FloatArray
    totals: FloatArray
    joint: FloatArray
    norm: FloatArray
    scores: FloatArray


@helper
def _weigh_tile(rows, begin, end, prior, workspace):  # type: ignore[no-untyped-def]
    """Write P(x, y) of some rows, one line per class, and P(x); return whether none is too small.

    A few products are faster than an exponential, and as accurate.
    """
    norm, enough, least = workspace.norm, True, LEAST_ROW
    for r in range(end - begin):
        norm[r] = 0.0
    for y in range(prior.size):
        line, own = workspace.joint[y], workspace.code_shares[y]
        for r in range(end - begin):
            line[r] = prior[y]
        for j in range(rows.codes.shape[0]):
            codes = rows.codes[j]
            for r in range(end - begin):
                line[r] *= own[codes[begin + r]]
        for r in range(end - begin):
            norm[r] += line[r]
    for r in range(end - begin):
        enough &= norm[r] > least
    return enough


@helper
def _share_tile(rows, begin, end, workspace):  # type: ignore[no-untyped-def]
    """Turn P(x, y) into the weight of each row in each class; return the log-likelihood."""
    total, norm, scores = 0.0, workspace.norm, workspace.scores
    for r in range(end - begin):
        scores[r] = rows.weights[begin + r] * logarithm(norm[r])
        norm[r] = rows.weights[begin + r] / norm[r]
    for y in range(workspace.joint.shape[0]):
        line = workspace.joint[y]
        for r in range(end - begin):
            line[r] *= norm[r]
    for r in range(end - begin):
        total += scores[r]
    return total


@helper
def _score_tile(rows, begin, end, prior, workspace):  # type: ignore[no-untyped-def]
    """Write log P(x, y) of some rows, one line per class."""
    for y in range(prior.size):
        line, own = workspace.joint[y], workspace.code_table[y]
        for r in range(end - begin):
            line[r] = np.log(prior[y])
        for j in range(rows.codes.shape[0]):
            codes = rows.codes[j]
            for r in range(end - begin):
                line[r] += own[codes[begin + r]]


@helper
def _settle_tile(rows, begin, end, joint):  # type: ignore[no-untyped-def]
    """Turn log P(x, y) into the weight of each row in each class; return the log-likelihood."""
    total = 0.0
    k = joint.shape[0]
    for r in range(end - begin):
        highest = joint[0, r]
        for y in range(1, k):
            highest = max(highest, joint[y, r])
        if highest == -np.inf:
            for y in range(k):
                joint[y, r] = rows.weights[begin + r] / k
            total += rows.weights[begin + r] * highest
            continue
        norm = 0.0
        for y in range(k):
            joint[y, r] = np.exp(joint[y, r] - highest)
            norm += joint[y, r]
        scale = rows.weights[begin + r] / norm
        for y in range(k):
            joint[y, r] *= scale
        total += rows.weights[begin + r] * (highest + np.log(norm))
    return total


@helper
def _fill_code_table(rows, workspace):  # type: ignore[no-untyped-def]
    """Write the log-probabilities of codes."""
    for y in range(workspace.code_table.shape[0]):
        for code in range(rows.members.shape[0]):
            score = 0.0
            for m in range(rows.members.shape[1]):
                score += workspace.table[y, rows.members[code, m]]
            workspace.code_table[y, code] = score


@helper
def _maximise(layout, workspace, parameters):  # type: ignore[no-untyped-def]
    """Turn sums into parameters."""
    n, least = 0.0, LEAST_SHARE
    for y in range(parameters.prior.size):
        n += workspace.totals[y]
    norm = 0.0
    for y in range(parameters.prior.size):
        parameters.prior[y] = max(workspace.totals[y] / n, least)
        norm += parameters.prior[y]
        for j in range(layout.starts.size):
            begin, end = layout.starts[j], layout.starts[j] + layout.sizes[j]
            mass = 0.0
            for level in range(begin, end):
                workspace.sums[y, level] += layout.pseudo[level]
                mass += workspace.sums[y, level]
            for level in range(begin, end):
                share = workspace.sums[y, level] / mass if mass > 0 else 1.0 / (end - begin)
                parameters.shares[y, level] = share
    for y in range(parameters.prior.size):
        parameters.prior[y] /= norm


@_compile
def step(rows, layout, parameters, workspace):  # type: ignore[no-untyped-def]
    """Make one step of EM in place, and return the log-likelihood and log-prior before it."""
    k, n_levels = parameters.shares.shape
    penalty = 0.0
    for y in range(k):
        for level in range(n_levels):
            workspace.table[y, level] = np.log(parameters.shares[y, level])
            workspace.sums[y, level] = 0.0
        for level in range(layout.pseudo.size):
            if layout.pseudo[level] > 0:
                penalty += layout.pseudo[level] * workspace.table[y, level]
        workspace.totals[y] = 0.0
    for y in range(k):
        for code in range(rows.members.shape[0]):
            share = 1.0
            for m in range(rows.members.shape[1]):
                share *= parameters.shares[y, rows.members[code, m]]
            workspace.code_shares[y, code] = share
            workspace.code_sums[y, code] = 0.0
    log_likelihood, in_logs = 0.0, False
    n_rows = rows.weights.size
    for begin in range(0, n_rows, TILE):
        end = min(begin + TILE, n_rows)
        if _weigh_tile(rows, begin, end, parameters.prior, workspace):
            log_likelihood += _share_tile(rows, begin, end, workspace)
        else:
            if not in_logs:
                _fill_code_table(rows, workspace)
                in_logs = True
            _score_tile(rows, begin, end, parameters.prior, workspace)
            log_likelihood += _settle_tile(rows, begin, end, workspace.joint)
        for y in range(k):
            line, sums = workspace.joint[y], workspace.code_sums[y]
            for r in range(end - begin):
                workspace.totals[y] += line[r]
            for j in range(rows.codes.shape[0]):
                codes = rows.codes[j]
                for r in range(end - begin):
                    sums[codes[begin + r]] += line[r]
    for y in range(k):
        for code in range(rows.members.shape[0]):
            for m in range(rows.members.shape[1]):
                workspace.sums[y, rows.members[code, m]] += workspace.code_sums[y, code]
    _maximise(layout, workspace, parameters)
    return log_likelihood, penalty


@helper
def _extrapolate(flat0, flat1, flat2, out):  # type: ignore[no-untyped-def]
    """Write the squared extrapolation of three successive points; the step is bounded below."""
    rr, vv = 0.0, 0.0
    for i in range(flat0.size):
        r = flat1[i] - flat0[i]
        v = flat2[i] - flat1[i] - r
        rr += r * r
        vv += v * v
    length = -np.sqrt(rr / vv) if vv > 0 else -1.0
    length = min(length, -1.0)
    for i in range(flat0.size):
        r = flat1[i] - flat0[i]
        v = flat2[i] - flat1[i] - r
        out[i] = max(flat0[i] - 2 * length * r + length * length * v, 0.1 * flat2[i])


@helper
def _normalise(layout, parameters):  # type: ignore[no-untyped-def]
    """Normalise the probabilities of classes, and of the levels of each column."""
    norm = 0.0
    for y in range(parameters.prior.size):
        norm += parameters.prior[y]
        parameters.shares[y, parameters.shares.shape[1] - 1] = 1.0
        for j in range(layout.starts.size):
            begin, end = layout.starts[j], layout.starts[j] + layout.sizes[j]
            mass = 0.0
            for level in range(begin, end):
                mass += parameters.shares[y, level]
            for level in range(begin, end):
                parameters.shares[y, level] /= mass
    for y in range(parameters.prior.size):
        parameters.prior[y] /= norm


@_compile
def run(rows, layout, parameters, workspace, points, tol, max_iter):  # type: ignore[no-untyped-def]
    """Run EM in place until a step improves by less than `tol`.

    `points` is workspace for three sets of parameters. Returns the log-likelihood of the
    parameters, the number of steps, and whether it has converged.
    """
    first, second, third = points
    n_steps, converged = 0, False
    while n_steps < max_iter and not converged:
        copy(parameters.shares.ravel(), first.shares.ravel())
        copy(parameters.prior, first.prior)
        likelihood, penalty = step(rows, layout, parameters, workspace)
        before = likelihood + penalty
        copy(parameters.shares.ravel(), second.shares.ravel())
        copy(parameters.prior, second.prior)
        likelihood, penalty = step(rows, layout, parameters, workspace)
        gained = likelihood + penalty - before
        n_steps += 2
        converged = gained < tol
        if converged or n_steps >= max_iter:
            continue
        copy(parameters.shares.ravel(), third.shares.ravel())
        copy(parameters.prior, third.prior)
        _extrapolate(
            first.shares.ravel(),
            second.shares.ravel(),
            third.shares.ravel(),
            parameters.shares.ravel(),
        )
        _extrapolate(first.prior, second.prior, third.prior, parameters.prior)
        _normalise(layout, parameters)
        ahead, ahead_penalty = step(rows, layout, parameters, workspace)
        n_steps += 1
        if not ahead + ahead_penalty >= likelihood + penalty:
            copy(third.shares.ravel(), parameters.shares.ravel())
            copy(third.prior, parameters.prior)
    copy(parameters.shares.ravel(), first.shares.ravel())
    copy(parameters.prior, first.prior)
    likelihood, penalty = step(rows, layout, first, workspace)
    return likelihood, n_steps, converged
