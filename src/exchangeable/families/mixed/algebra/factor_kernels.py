"""Compiled inversion of many small positive definite matrices."""

import math

from exchangeable.runtime.kernels.cache import compiled


@compiled(fastmath={"contract"})
def invert(matrices, work, log_dets):  # type: ignore[no-untyped-def]
    """Replace symmetric positive definite matrices by their inverses; write log-determinants.

    M = L·Lᵀ by Cholesky's method, into `work`, which becomes L⁻¹; M⁻¹ = L⁻ᵀ·L⁻¹.
    """
    r = work.shape[0]
    for row in range(matrices.shape[0]):
        own, total = matrices[row], 0.0
        for i in range(r):
            for j in range(i + 1):
                value = own[i, j]
                for f in range(j):
                    value -= work[i, f] * work[j, f]
                work[i, j] = math.sqrt(value) if i == j else value / work[j, j]
            total += math.log(work[i, i])
        log_dets[row] = 2 * total
        for j in range(r):
            work[j, j] = 1 / work[j, j]
            for i in range(j + 1, r):
                value = 0.0
                for f in range(j, i):
                    value -= work[i, f] * work[f, j]
                work[i, j] = value / work[i, i]
        for i in range(r):
            for j in range(i + 1):
                value = 0.0
                for f in range(i, r):
                    value += work[f, i] * work[f, j]
                own[i, j] = value
                own[j, i] = value
