"""Compiled loops over rows whose levels are codes of several columns."""

import numpy as np

from exchangeable.runtime.kernels.cache import compiled

_compile = compiled(fastmath={"contract"})


@_compile
def code_scores(members, log_shares, table):  # type: ignore[no-untyped-def]
    """Write the log-probability of each code, the sum of those of its levels; a line per class."""
    n_levels = log_shares.shape[0]
    for code in range(members.shape[0]):
        for y in range(table.shape[0]):
            table[y, code] = 0.0
        for m in range(members.shape[1]):
            level = members[code, m]
            if level < n_levels:
                for y in range(table.shape[0]):
                    table[y, code] += log_shares[level, y]


@_compile
def level_sums(members, code_sums, levels):  # type: ignore[no-untyped-def]
    """Add the mass of each code, a line per class, to those of its levels, a line per level."""
    n_levels = levels.shape[0]
    for code in range(members.shape[0]):
        for m in range(members.shape[1]):
            level = members[code, m]
            if level < n_levels:
                for y in range(code_sums.shape[0]):
                    levels[level, y] += code_sums[y, code]


@_compile
def score_codes(codes, table, joint):  # type: ignore[no-untyped-def]
    """Add the scores of the codes of all groups of columns; a line per class."""
    for group in range(codes.shape[0]):
        own = codes[group]
        for y in range(joint.shape[0]):
            line, scores = joint[y], table[y]
            for row in range(own.size):
                line[row] += scores[own[row]]


@_compile
def sum_codes(codes, mass, sums):  # type: ignore[no-untyped-def]
    """Add each row's mass to those of its codes; a line per class."""
    for group in range(codes.shape[0]):
        own = codes[group]
        for y in range(mass.shape[0]):
            line, total = mass[y], sums[y]
            for row in range(own.size):
                total[own[row]] += line[row]


@_compile
def share_out(mass, pseudo, starts, sizes, log_shares):  # type: ignore[no-untyped-def]
    """Write the logarithm of each level's share of its column; equal shares if there is no mass."""
    for j in range(starts.size):
        begin, end = starts[j], starts[j] + sizes[j]
        for y in range(mass.shape[1]):
            total = 0.0
            for level in range(begin, end):
                total += mass[level, y] + pseudo[level, 0]
            for level in range(begin, end):
                share = 1.0 / sizes[j]
                if total > 0:
                    share = (mass[level, y] + pseudo[level, 0]) / total
                log_shares[level, y] = np.log(share)


@_compile
def pseudo_score(pseudo, log_shares):  # type: ignore[no-untyped-def]
    """Return the score of pseudo-rows: the sum over levels that have some, and over classes."""
    score = 0.0
    for level in range(log_shares.shape[0]):
        if pseudo[level, 0] > 0:
            for y in range(log_shares.shape[1]):
                score += pseudo[level, 0] * log_shares[level, y]
    return score
