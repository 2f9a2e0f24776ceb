"""Latent trees from distances (Choi, Tan, Anandkumar and Willsky 2011).

For binary variables the information distance −log |correlation| adds up along the paths of a tree.
Chow-Liu grouping starts from the minimum spanning tree of the distances between the variables and
replaces each inner node and its neighbours by a latent tree, learned either by neighbour joining or
by recursive grouping.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from exchangeable.arrays import FloatArray
from exchangeable.families.common import forests

WEAKEST = 1e-4
"""Smaller correlations are replaced by this, so that no distance is infinite."""
SHORT = 0.05
"""A hidden node closer than this to another node is merged into it."""
SLACK = 0.2
"""Recursive grouping treats differences of distances as equal if they vary by less than this."""
Neighbours = dict[int, set[int]]


def distances(weight: float, ones: FloatArray, both: FloatArray) -> FloatArray:
    """Return −log |correlation| of every pair, from the weights of ones and of pairs of ones.

    >>> ones, both = np.array([50.0, 50.0]), np.array([[50.0, 45.0], [45.0, 50.0]])
    >>> np.exp(-distances(100.0, ones, both)).round(3).tolist()
    [[1.0, 0.8], [0.8, 1.0]]
    """
    mean = ones / weight
    deviation = np.sqrt(mean * (1 - mean))
    covariance = both / weight - np.outer(mean, mean)
    correlation = np.abs(covariance) / np.maximum(np.outer(deviation, deviation), 1e-300)
    distance: FloatArray = -np.log(np.clip(correlation, WEAKEST, 1.0))
    np.fill_diagonal(distance, 0.0)
    return distance


@dataclass
class LatentForest:
    """A tree that grows hidden nodes, and the distances between all its nodes.

    Attributes
    ----------
    distance : array of shape (capacity, capacity)
        Distances; zero for nodes that do not exist yet.
    neighbours : dict
        The neighbours of each node.
    n_variables : int
        Number of nodes that are not hidden.
    owned : dict
        For each node that is being joined, the nodes on its side of the tree.
    """

    distance: FloatArray
    neighbours: Neighbours
    n_variables: int
    owned: dict[int, Any] = field(default_factory=dict)

    @classmethod
    def spanning(cls, distance: FloatArray) -> "LatentForest":
        """Return the minimum spanning tree of the variables."""
        n = len(distance)
        parent = forests.best_tree(1.0 + distance.max(initial=0.0) - distance)
        neighbours: Neighbours = {v: set() for v in range(n)}
        for v, p in enumerate(parent.tolist()):
            if p < n:
                neighbours[v].add(p)
                neighbours[p].add(v)
        room = np.zeros((3 * n, 3 * n))
        room[:n, :n] = distance
        return cls(room, neighbours, n)

    @property
    def n_nodes(self) -> int:
        """Number of nodes, hidden ones among them."""
        return len(self.neighbours)

    def remember(self) -> "LatentForest":
        """Return a copy of the forest; distances are shared, since later steps only add to them."""
        kept = {v: set(others) for v, others in self.neighbours.items()}
        return LatentForest(self.distance, kept, self.n_variables)

    def join(self, a: int, b: int) -> None:
        """Add an edge."""
        self.neighbours[a].add(b)
        self.neighbours[b].add(a)

    def cut(self, a: int, b: int) -> None:
        """Remove an edge."""
        self.neighbours[a].discard(b)
        self.neighbours[b].discard(a)

    def branch(self, start: int, without: int) -> list[int]:
        """Return the nodes on the side of `start` of its edge to `without`."""
        nodes, seen = [start], {start, without}
        for v in nodes:
            nodes += [w for w in self.neighbours[v] if w not in seen]
            seen |= self.neighbours[v]
        return nodes

    def hide(self, members: list[int], lengths: FloatArray) -> int:
        """Add a hidden parent of some nodes, with the given distances to them, and return it.

        Its distance to a node behind one member is estimated from the other members, and its
        distance to all other nodes from all members.
        """
        h = self.n_nodes
        if h >= len(self.distance):
            self.distance = np.pad(self.distance, (0, len(self.distance)))
        through = self.distance[members, :h] - lengths[:, None]
        row = through.mean(axis=0)
        for i, member in enumerate(members):
            behind = self.owned[member]
            row[behind] = np.delete(through, i, axis=0)[:, behind].mean(axis=0)
        row = np.maximum(row, 0.0)
        row[members] = lengths
        self.distance[h, :h] = self.distance[:h, h] = row
        self.neighbours[h] = set()
        self.owned[h] = np.concatenate([[h], *(self.owned[member] for member in members)])
        for member in members:
            self.join(h, member)
        return h

    def contract(self, first: int) -> None:
        """Merge hidden nodes numbered from `first` on into neighbours very close to them."""
        for h in range(first, self.n_nodes):
            near = sorted(self.neighbours[h])
            if not near:
                continue
            other = min(near, key=lambda v: (float(self.distance[h, v]), v))
            if self.distance[h, other] < SHORT or len(near) < 3:
                self.absorb(h, other)

    def absorb(self, h: int, other: int) -> None:
        """Remove a hidden node and join its neighbours to one of them."""
        for v in sorted(self.neighbours[h]):
            self.cut(h, v)
            if v != other:
                self.join(v, other)

    def compact(self) -> "LatentForest":
        """Return the forest without isolated hidden nodes."""
        kept = [v for v in self.neighbours if v < self.n_variables or self.neighbours[v]]
        number = {v: i for i, v in enumerate(kept)}
        neighbours = {number[v]: {number[w] for w in self.neighbours[v]} for v in kept}
        return LatentForest(self.distance[np.ix_(kept, kept)], neighbours, self.n_variables)


Joiner = Callable[[LatentForest, list[int]], None]


def neighbour_joining(forest: LatentForest, active: list[int]) -> None:
    """Join nodes by a binary tree, pair by pair, by the rule of Saitou and Nei.

    It joins the pair that is closest relative to its distance from all others, and recovers the
    tree if distances add up along its paths.
    """
    active = list(active)
    while len(active) > 3:
        d = forest.distance[np.ix_(active, active)]
        total, m = d.sum(axis=1), len(active)
        criterion = (m - 2) * d - total[:, None] - total[None, :]
        np.fill_diagonal(criterion, np.inf)
        i, j = sorted(divmod(int(criterion.argmin()), m))
        lean = (total[i] - total[j]) / (2 * (m - 2))
        first = min(max(d[i, j] / 2 + lean, 0.0), d[i, j])
        members = [active[i], active[j]]
        h = forest.hide(members, np.array([first, d[i, j] - first]))
        active = [v for v in active if v not in members] + [h]
    if len(active) == 3:
        forest.hide(active, _star_lengths(forest.distance[np.ix_(active, active)]))
    elif len(active) == 2:
        forest.join(*active)


def _star_lengths(d: FloatArray) -> FloatArray:
    """Return the distances of three nodes from the hidden node between them."""
    total = d.sum(axis=1)
    lengths: FloatArray = np.maximum(total - total.sum() / 4, 0.0)
    return lengths


def recursive_grouping(forest: LatentForest, active: list[int]) -> None:
    """Join groups of siblings (families in the cited paper), from the leaves up.

    Two nodes are siblings if the difference of their distances to a third node hardly depends on
    that node. The parent of a group is one of its members if the others' distances pass through
    it, else a new hidden node.
    """
    active = list(active)
    while len(active) > 2:
        d = forest.distance[np.ix_(active, active)]
        spread, detour = _differences(d)
        remain: list[int] = []
        for siblings in _sibling_groups(spread):
            if len(siblings) == 1:
                remain.append(active[siblings[0]])
            else:
                remain.append(_parent(forest, active, siblings, d, detour))
        active = remain
    if len(active) == 2:
        forest.join(*active)


def _differences(d: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the range of d_ik − d_jk over k, and its largest deviation from d_ij."""
    m = len(d)
    spread, detour = np.zeros((m, m)), np.zeros((m, m))
    for i in range(m):
        phi = d[i][None, :] - d  # phi[j, k] = d_ik − d_jk
        phi[np.arange(m), np.arange(m)] = np.nan
        phi[:, i] = np.nan
        phi[i] = 0.0
        spread[i] = np.nanmax(phi, axis=1) - np.nanmin(phi, axis=1)
        detour[i] = np.nanmax(np.abs(phi - d[i][:, None]), axis=1)
    return spread, detour


def _sibling_groups(spread: FloatArray) -> list[list[int]]:
    """Return groups of nodes that may be siblings; at least one group has two nodes."""
    condensed = squareform(np.maximum(spread, spread.T), checks=False)
    steps = linkage(condensed, method="complete")
    labels = fcluster(steps, max(SLACK, steps[0, 2]), criterion="distance")
    return [np.flatnonzero(labels == label).tolist() for label in np.unique(labels)]


def _parent(
    forest: LatentForest, active: list[int], siblings: list[int], d: FloatArray, detour: FloatArray
) -> int:
    """Join siblings to their parent, which is one of them or a new hidden node, and return it."""
    misses = [max(detour[i, j] for i in siblings if i != j) for j in siblings]
    best = int(np.argmin(misses))
    if misses[best] < SLACK or (len(siblings) == 2 and len(active) == 2):
        parent, children = siblings[best], [i for i in siblings if i != siblings[best]]
        for child in children:
            forest.join(active[child], active[parent])
        everyone = [forest.owned[active[i]] for i in siblings]
        forest.owned[active[parent]] = np.concatenate(everyone)
        return active[parent]
    return forest.hide([active[i] for i in siblings], _sibling_lengths(siblings, d))


def _sibling_lengths(siblings: list[int], d: FloatArray) -> FloatArray:
    """Return the distance of each sibling from the hidden parent, averaged over the others."""
    outside = [k for k in range(len(d)) if k not in set(siblings)]
    lengths = []
    for i in siblings:
        others = [j for j in siblings if j != i]
        estimates = [
            np.mean([(d[i, j] + d[i, k] - d[j, k]) / 2 for k in (outside or others) if k != j])
            for j in others
        ]
        lengths.append(max(float(np.mean(estimates)), 0.0))
    return np.array(lengths)


METHODS: dict[str, Joiner] = {"clnj": neighbour_joining, "clrg": recursive_grouping}


def chow_liu_grouping(
    distance: FloatArray,
    join: Joiner,
    accept: Callable[[LatentForest, LatentForest, list[int]], bool] | None = None,
) -> LatentForest:
    """Return the latent tree that Chow-Liu grouping learns from distances between variables.

    Parameters
    ----------
    distance : array of shape (n, n)
        Information distances.
    join : callable
        Joins some nodes of a forest by a latent tree.
    accept : callable, optional
        Given the forest before and after a step and the nodes concerned, returns whether to keep
        the step; by default all steps are kept.
    """
    forest = LatentForest.spanning(distance)
    inner = [v for v in range(forest.n_variables) if len(forest.neighbours[v]) > 1]
    for v in inner:
        around = sorted(forest.neighbours[v])
        if len(around) < 2:
            continue
        before = forest.remember() if accept is not None else None
        first = forest.n_nodes
        forest.owned = {w: np.array(forest.branch(w, v)) for w in around}
        forest.owned[v] = np.array([v])
        for w in around:
            forest.cut(v, w)
        join(forest, [v, *around])
        forest.contract(first)
        if before is not None and accept is not None and not accept(before, forest, [v, *around]):
            forest.neighbours = before.neighbours
    return forest.compact()
