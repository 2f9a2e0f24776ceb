"""Scales of predictors are those under which labels are likeliest, of whole rows and with holes."""

import numpy as np
import pytest
from scipy.special import log_softmax

from exchangeable.data.rows import Rows
from exchangeable.fitting.hybrid.design import Design
from exchangeable.fitting.hybrid.pooling import RIDGE, pool


def made_views(n_classes, n_rows=300):
    """Labels, and two predictors of whole rows, of which the second is better when some is hidden.

    Its third view says nothing.
    """
    rng = np.random.default_rng(0)
    labels = rng.integers(0, n_classes, n_rows)
    right = np.eye(n_classes)[labels]
    strengths = [[2.0, 1.0], [0.2, 1.5], [0.0, 0.0]]
    views = np.array([[s * right for s in view] for view in strengths])
    views += rng.normal(size=views.shape)
    if n_classes == 2:
        views = views[..., 1:] - views[..., :1]
    nothing = np.zeros(n_rows + 1, dtype=np.int64), np.empty(0, dtype=np.int32)
    rows = Rows(n_rows, 1, np.empty((0, 0), dtype=np.uint64), *nothing)
    return Design(rows, labels, rng.uniform(0.5, 2.0, n_rows), n_classes), views


def loss_of(design, views, scales, bases, shares):
    """The penalised average loss that scales and bases have."""
    spread = np.sqrt(np.average((views[0] ** 2).mean(axis=2), axis=1, weights=design.weights))
    total = 0.5 * RIDGE * (((scales * spread) ** 2).sum() + (bases**2).sum())
    for view, base, share in zip(views, bases, shares, strict=True):
        scores = np.tensordot(scales, view, 1) + base
        if scores.shape[1] == 1:
            scores = np.column_stack([np.zeros(len(scores)), scores])
        right = log_softmax(scores, axis=1)[np.arange(len(scores)), design.labels]
        total -= share * np.average(right, weights=design.weights)
    return total


@pytest.mark.parametrize("n_classes", [2, 4])
def test_no_other_scales_are_better(n_classes):
    design, views = made_views(n_classes)
    scales, base, loss = pool(design, views[:1], 1)
    best = loss_of(design, views[:1], scales, base[None], [1.0])
    assert loss < best
    rng = np.random.default_rng(1)
    for _ in range(50):
        other = np.maximum(scales + rng.normal(scale=0.05, size=2), 0.0)
        moved = base + rng.normal(scale=0.05, size=base.shape)
        assert loss_of(design, views[:1], other, moved[None], [1.0]) > best - 1e-9


@pytest.mark.parametrize("n_classes", [2, 4])
def test_what_helps_when_some_is_hidden_counts_for_more(n_classes):
    design, views = made_views(n_classes)
    whole, *_ = pool(design, views[:1], 1)
    both, _, loss = pool(design, views[:2], 1)
    assert both[1] / both[0] > 1.5 * whole[1] / whole[0]
    assert loss >= pool(design, views[:1], 1)[2] - 1e-4
    assert pool(design, views, 1)[0].sum() < both.sum()
