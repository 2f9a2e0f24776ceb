"""Algorithm 1 of the paper, written out plainly: no merging of rows, no kernels, no tables."""

import numpy as np
from scipy.special import gammaln, logsumexp

from exchangeable.structure.sweep import sweep


def fit_blocks(X, weights, labels, alpha):
    """Return, per block, its variables and log(q / C) for every count."""
    blocks = []
    for b in range(labels.max() + 1):
        members = np.flatnonzero(labels == b)
        m = members.size
        h = np.bincount(X[:, members].sum(axis=1), weights, minlength=m + 1)
        count = np.arange(m + 1)
        log_choose = gammaln(m + 1) - gammaln(count + 1) - gammaln(m - count + 1)
        q = (h + alpha) / (weights.sum() + alpha * (m + 1))
        blocks.append((members, np.log(q) - log_choose))
    return blocks


def joint(X, components, prior):
    """Return log P(x, y)."""
    columns = [
        np.log(p) + sum(table[X[:, members].sum(axis=1)] for members, table in blocks)
        for p, blocks in zip(prior, components, strict=True)
    ]
    return np.stack(columns, axis=1)


def structural_em(X, posterior, n_iterations, alpha=0.1, significance=0.1):
    """Return the average log-likelihood, and the blocks, at the start and after each iteration."""
    n = len(X)

    def partitions(delta):
        found = []
        for y in range(delta.shape[1]):
            scaled = X * delta[:, [y]]
            found.append(sweep(scaled.mean(axis=0), scaled.var(axis=0, ddof=1), n, significance))
        return found

    def parameters(delta, labels):
        return [fit_blocks(X, delta[:, y], labels[y], alpha) for y in range(delta.shape[1])]

    labels = partitions(posterior)
    components, prior = parameters(posterior, labels), posterior.mean(axis=0)
    history, blocks = [logsumexp(joint(X, components, prior), axis=1).mean()], [labels]
    for _ in range(n_iterations):
        scores = joint(X, components, prior)
        delta = np.exp(scores - logsumexp(scores, axis=1, keepdims=True))
        prior = delta.mean(axis=0)
        tried = []
        for choice in (labels, partitions(delta)):
            candidate = parameters(delta, choice)
            likelihood = logsumexp(joint(X, candidate, prior), axis=1).mean()
            tried.append((likelihood, candidate, choice))
        best = max(tried, key=lambda entry: entry[0])
        history.append(best[0])
        components, labels = best[1], best[2]
        blocks.append(labels)
    return np.array(history), blocks
