"""Inner loops of conditional fits: residuals of a softmax by row, gradients by variable.

Both gather and write each line once, so that threads share nothing and results do not depend on
how many there are. Of two classes one is enough: with a single column of slopes the classes score
0 and that column.
"""

import numpy as np

from exchangeable.runtime.kernel_cache import compiled, for_kernels

_compile = compiled(fastmath={"contract", "reassoc"})


@for_kernels(fastmath={"reassoc"}, forceinline=True)
def _sum_of(values, chosen):  # type: ignore[no-untyped-def]
    """Return the sum of some values."""
    total = 0.0
    for k in range(chosen.size):
        total += values[chosen[k]]
    return total


@_compile
def score(indptr, indices, first, last, slope, scores):  # type: ignore[no-untyped-def]
    """Add the slopes of each row's ones to its scores."""
    width = slope.shape[1]
    if width == 1:
        single = slope.ravel()
        for row in range(first, last):
            scores[row, 0] += _sum_of(single, indices[indptr[row] : indptr[row + 1]])
        return
    total = np.empty(width)
    for row in range(first, last):
        total[:] = scores[row]
        for k in range(indptr[row], indptr[row + 1]):
            add = slope[indices[k]]
            for y in range(width):
                total[y] += add[y]
        scores[row] = total


@_compile
def settle(scores, first, last, labels, weights):  # type: ignore[no-untyped-def]
    """Turn scores into weighted residuals P(y | x) − [y is the label]; return the summed loss."""
    width, loss = scores.shape[1], 0.0
    for row in range(first, last):
        line, label, weight = scores[row], labels[row], weights[row]
        if width == 1:
            margin = line[0] if label else -line[0]
            small = np.exp(-abs(margin))
            loss += weight * (np.log1p(small) + max(-margin, 0.0))
            wrong = small / (1.0 + small) if margin > 0 else 1.0 / (1.0 + small)
            line[0] = -weight * wrong if label else weight * wrong
            continue
        highest = line.max()
        own, total = line[label] - highest, 0.0
        for y in range(width):
            line[y] = np.exp(line[y] - highest)
            total += line[y]
        loss += weight * (np.log(total) - own)
        for y in range(width):
            line[y] *= weight / total
        line[label] -= weight
    return loss


@_compile
def gather(indptr, rows, first, last, residuals, out):  # type: ignore[no-untyped-def]
    """Write for each variable the sum of the residuals of the rows in which it is on."""
    width = residuals.shape[1]
    if width == 1:
        single = residuals.ravel()
        for j in range(first, last):
            out[j, 0] = _sum_of(single, rows[indptr[j] : indptr[j + 1]])
        return
    total = np.empty(width)
    for j in range(first, last):
        total[:] = 0.0
        for k in range(indptr[j], indptr[j + 1]):
            add = residuals[rows[k]]
            for y in range(width):
                total[y] += add[y]
        out[j] = total
