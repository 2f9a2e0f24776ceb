"""Drawings of the trees of classes, if a family has them and they are small enough."""

from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.families.contract import Model

MOST_NODES, MOST_TREES, MOST_MEMBERS = 80, 24, 4


def tree_data(inner: Model, log_prior: FloatArray, names: list[str]) -> dict[str, Any]:
    """Return the nodes and edges of the trees of the largest classes; nothing without edges.

    Nodes are blocks if all ends of edges are numbers of blocks, and variables otherwise. Trees with
    too many nodes are left out, and the page says so.
    """
    edges = inner.edges()
    if not any(len(each) for each in edges):
        return {}
    trees, left_out = [], 0
    for y in np.argsort(-log_prior, kind="stable")[:MOST_TREES]:
        blocks = inner.partitions[y].blocks
        over_blocks = len(edges[y]) == 0 or int(edges[y].max()) < len(blocks)
        labels = [_label(block, names) for block in blocks] if over_blocks else names
        if len(labels) > MOST_NODES:
            left_out += 1
        else:
            trees.append({"class": int(y), "nodes": labels, "edges": edges[y].tolist()})
    return {"trees": trees, "treesLeftOut": left_out}


def _label(block: Any, names: list[str]) -> str:
    """Return the names of a block's first variables."""
    listed = ", ".join(names[j] for j in list(block)[:MOST_MEMBERS])
    more = len(block) - MOST_MEMBERS
    return f"{listed} and {more:,} more" if more > 0 else listed
