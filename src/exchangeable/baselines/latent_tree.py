"""Latent tree models: structure by Chow-Liu grouping, parameters by EM."""

from typing import Any, Self

import numpy as np

from exchangeable.arrays import FloatArray, check_count, check_number, check_sample_weight
from exchangeable.baselines.base import TreeEstimator
from exchangeable.baselines.chow_liu import fit_seen
from exchangeable.baselines.grouping import (
    METHODS,
    LatentForest,
    chow_liu_grouping,
    distances,
)
from exchangeable.baselines.tree import BinaryTree, Table, parents_of
from exchangeable.runtime.attempts import all_or_nothing

ALL_METHODS = ("clrg", "clnj", "regclrg", "regclnj")
LOCAL_ITERATIONS = 20
FAR_FROM_CERTAIN = 0.01


class LatentTree(TreeEstimator):
    """Density estimator: a tree over the variables and additional hidden binary nodes.

    The structure is found from information distances by Chow-Liu grouping (Choi, Tan, Anandkumar
    and Willsky 2011), the parameters by EM.

    Parameters
    ----------
    method : {"best", "clrg", "clnj", "regclrg", "regclnj"}, default="best"
        What replaces an inner node of the Chow-Liu tree and its neighbours: a latent tree learned
        by recursive grouping ("clrg") or by neighbour joining ("clnj"), and with "reg" only if that
        improves the Bayesian information criterion of those variables. ``"best"`` fits all four and
        keeps the one under which ``X_valid`` is most probable or, without such rows, the one with
        the best criterion on the training rows.
    alpha : float, default=0.1
        Laplace smoothing: added to the number of rows with each state of a node, given each state
        of its parent.
    tol : float, default=1e-4
        EM stops when the average log-likelihood gains less than this.
    max_iter : int, default=200
        Largest number of iterations.
    binarize : float or None, default=0.0
        Entries greater than this are on. With None all entries must be 0 or 1.
    n_jobs : int, optional
        Number of threads; all cores by default. It never changes the result.

    Attributes
    ----------
    edges_ : ndarray of shape (n_edges, 2)
        One row (node, parent) per edge; hidden nodes are numbered after the variables.
    n_hidden_ : int
        Number of hidden nodes.
    method_ : str
        The method that was kept.
    scores_ : dict
        The score by which methods are compared: average log-likelihood of the validation rows, or
        −1/2 times the criterion per training row.
    history_ : list of float
        Average log-likelihood of the training rows before every step of EM.
    log_likelihood_ : float
        The last value of `history_`.
    n_parameters_ : int
        Number of free parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from exchangeable.baselines import LatentTree
    >>> rng = np.random.default_rng(0)
    >>> cause = rng.integers(0, 2, size=(2000, 1))
    >>> X = cause ^ (rng.random((2000, 5)) < 0.2)
    >>> tree = LatentTree().fit(X)
    >>> tree.n_hidden_, len(tree.edges_)
    (1, 5)
    """

    def __init__(
        self,
        method: str = "best",
        *,
        alpha: float = 0.1,
        tol: float = 1e-4,
        max_iter: int = 200,
        binarize: float | None = 0.0,
        n_jobs: int | None = None,
    ) -> None:
        self.method = method
        self.alpha = alpha
        self.tol = tol
        self.max_iter = max_iter
        self.binarize = binarize
        self.n_jobs = n_jobs

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, X_valid: Any = None) -> Self:
        """Find the tree and its parameters.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Examples; an entry greater than `binarize` is on.
        y : ignored
            Present for scikit-learn's sake.
        sample_weight : array-like of shape (n_samples,), optional
            How much each row counts, 1 by default.
        X_valid : array-like of shape (n_valid, n_features), optional
            Rows by whose likelihood ``method="best"`` chooses.
        """
        alpha, max_iter = self._check_alpha(), check_count(self.max_iter, "max_iter")
        tol = check_number(self.tol, "tol")
        if self.method not in (*ALL_METHODS, "best"):
            raise ValueError(
                f"method must be 'best' or one of {', '.join(ALL_METHODS)}, got {self.method!r}"
            )
        if X_valid is not None and self.method != "best":
            raise ValueError(
                f"X_valid is used to choose a method, but method={self.method!r} is already "
                "chosen; leave X_valid out or set method='best'"
            )
        rows = self._binary(X, reset=True)
        table = Table.of(rows, check_sample_weight(sample_weight, len(rows)))
        valid = None if X_valid is None else Table.of(self._binary(X_valid))
        self.scores_: dict[str, float] = {}
        for method in ALL_METHODS if self.method == "best" else (self.method,):
            start = first_tree(table, method, alpha, self.n_jobs)
            tree, history = start.em(table, alpha, tol, max_iter, self.n_jobs)
            self.scores_[method] = self._worth(tree, table, valid, history[-1])
            if max(self.scores_, key=self.scores_.__getitem__) == method:
                self._tree, self.history_, self.method_ = tree, history, method
        self.log_likelihood_ = self.history_[-1]
        self.n_hidden_ = int(self._tree.node.size - rows.shape[1])
        return self

    def _worth(self, tree: BinaryTree, table: Table, valid: Table | None, average: float) -> float:
        if valid is None:
            return average - tree.n_parameters * float(np.log(table.total)) / (2 * table.total)
        scores = tree.log_probabilities(valid.columns, self.n_jobs)
        return float(scores @ valid.weight / valid.total)


def first_tree(table: Table, method: str, alpha: float, n_jobs: int | None = None) -> BinaryTree:
    """Return a method's tree, with parameters derived from the distances."""
    weight, ones, both = table.pair_counts(alpha)
    distance = distances(weight, ones, both)

    def raises(before: LatentForest, after: LatentForest, nodes: list[int]) -> bool:
        if after.n_nodes == before.n_nodes or all(
            not after.neighbours[h] for h in range(before.n_nodes, after.n_nodes)
        ):
            return True
        return _raises_criterion(before, after, nodes, table, alpha, n_jobs)

    regular = method.startswith("reg")
    join = METHODS[method.removeprefix("reg")]
    forest = chow_liu_grouping(distance, join, raises if regular else None)
    return with_distances(forest, weight, ones, both)


def with_distances(
    forest: LatentForest, weight: float, ones: FloatArray, both: FloatArray
) -> BinaryTree:
    """Return the tree of a forest, with parameters to start EM from.

    A hidden node begins as a noisy copy of the variable closest to it: it has the frequency of that
    variable, and its correlations have the signs of that variable's and the strength that follows
    from the distances.
    """
    n = forest.n_variables
    twin = np.arange(forest.n_nodes)
    if forest.n_nodes > n:
        twin[n:] = forest.distance[n:, :n].argmin(axis=1)
    mean = ones / weight
    covariance = both / weight - np.outer(mean, mean)
    hidden_first = int(twin.size - 1)
    tree = BinaryTree.of_parents(parents_of(forest.neighbours, hidden_first), n)
    p_on = np.empty((twin.size, 2))
    for v, p in enumerate(tree.parent):
        own = twin[tree.node[v]]
        if p < 0:
            p_on[v] = mean[own]
            continue
        above = twin[tree.node[p]]
        sign = 1.0 if own == above or covariance[own, above] >= 0 else -1.0
        strength = sign * np.exp(-forest.distance[tree.node[v], tree.node[p]])
        spread = np.sqrt(mean[own] * (1 - mean[own]) / (mean[above] * (1 - mean[above])))
        slope = strength * spread
        p_on[v] = mean[own] - slope * mean[above], mean[own] + slope * (1 - mean[above])
    low = np.minimum(FAR_FROM_CERTAIN, mean[twin[tree.node]] / 2)[:, None]
    return tree.with_parameters(np.clip(p_on, low, 1 - FAR_FROM_CERTAIN))


def _raises_criterion(
    before: LatentForest,
    after: LatentForest,
    nodes: list[int],
    table: Table,
    alpha: float,
    n_jobs: int | None,
) -> bool:
    """Return whether hidden nodes improve the criterion of the nodes they were added for.

    Hidden nodes of earlier steps are represented by the variables closest to them.
    """
    variables: list[int] = []
    for node in nodes:
        ranked = np.argsort(after.distance[node, : after.n_variables], kind="stable").tolist()
        own = node if node < after.n_variables else next(v for v in ranked if v not in variables)
        variables.append(own)
    if len(set(variables)) < len(nodes):
        return True
    local = table.only(np.array(variables))
    penalty = np.log(local.total) / 2
    scores = []
    for forest, first in ((before, before.n_nodes), (after, before.n_nodes)):
        tree = _local_tree(forest, nodes, first, local, alpha)
        if tree.node.size == len(nodes):
            total = float(tree.log_probabilities(local.columns, n_jobs) @ local.weight)
        else:
            _, history = tree.em(local, alpha, 1e-4, LOCAL_ITERATIONS, n_jobs)
            total = history[-1] * local.total
        scores.append(total - penalty * tree.n_parameters)
    return bool(scores[1] > scores[0])


def _local_tree(
    forest: LatentForest, nodes: list[int], first: int, local: Table, alpha: float
) -> BinaryTree:
    """Return the part of a forest that joins some nodes and the hidden ones from `first` on."""
    new = [h for h in range(first, forest.n_nodes) if forest.neighbours[h]]
    kept = [*nodes, *new]
    number = {v: i for i, v in enumerate(kept)}
    neighbours = {number[v]: {number[w] for w in forest.neighbours[v] if w in number} for v in kept}
    part = LatentForest(forest.distance[np.ix_(kept, kept)], neighbours, len(nodes))
    if not new:
        tree = BinaryTree.of_parents(parents_of(neighbours), len(nodes))
        return fit_seen(tree, local, alpha)
    return with_distances(part, *local.pair_counts(alpha))
