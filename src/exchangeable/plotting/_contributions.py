"""Which variables speak for a class in one example, as numbers that add up exactly."""

from typing import Any, Self

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families.blocks.model import BlockModel
from exchangeable.families.urns.model import UrnModel
from exchangeable.plotting._axes import (
    MODEL,
    OTHER,
    check_model,
    names_of,
    new_axes,
    number_of,
    tidy,
    title_of,
)


class ContributionsDisplay:
    """The log-odds of two classes in one example, as a sum over the variables that are on.

    In a block with n ones the score is a look-up, table[n]. It is the look-up of the empty block
    plus n equal shares of the rest, (table[n] − table[0]) / n, one for each variable that is on;
    with weighted urns each has its own log-weight besides. So the log-odds are exactly

        prior + what an empty row says + Σ over the variables that are on,

    and with every variable a block of its own these are the log-odds of naive Bayes.

    Parameters
    ----------
    names : list of str
        Names of the variables.
    variables : ndarray
        The variables that are on.
    shares : ndarray
        What each adds to the log-odds.
    prior, empty : float
        The other two terms.
    titles : tuple of str
        The class that is spoken for, and the one against.

    Attributes
    ----------
    log_odds : float
        The sum of all.
    ax_, figure_
        What was drawn on.

    Examples
    --------
    >>> import numpy as np
    >>> from exchangeable import ExchangeableClassifier
    >>> from exchangeable.plotting import ContributionsDisplay
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, size=300)
    >>> X = rng.random((300, 8)) < np.where(y[:, None] == np.arange(8) % 2, 0.7, 0.2)
    >>> model = ExchangeableClassifier().fit(X, y)
    >>> display = ContributionsDisplay.from_estimator(model, X[0], target=1, against=0)
    >>> joint = model.predict_joint_log_proba(X[:1])[0]
    >>> bool(np.isclose(display.log_odds, joint[1] - joint[0], rtol=1e-12))
    True
    """

    def __init__(
        self,
        names: list[str],
        variables: IntArray,
        shares: FloatArray,
        prior: float,
        empty: float,
        titles: tuple[str, str],
    ) -> None:
        self.names, self.variables, self.shares = names, variables, shares
        self.prior, self.empty, self.titles = prior, empty, titles
        self.log_odds = float(prior + empty + shares.sum())

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        x: Any,
        *,
        target: Any = None,
        against: Any = None,
        names: Any = None,
        top: int = 15,
        ax: Any = None,
    ) -> Self:
        """Draw what speaks for a class in one row.

        Parameters
        ----------
        estimator : ExchangeableClassifier or ExchangeableMixture
            A fitted model of blocks or urns.
        x : array-like of shape (n_features,), or one row of a sparse matrix or frame
            The example, without holes.
        target : label, optional
            The class that is spoken for; the most probable by default.
        against : label, optional
            The class it is compared with; the most probable other one by default.
        names : sequence of str, optional
            Names of the variables, where the model was fitted without.
        top : int, default=15
            How many variables to draw; the rest is one bar.
        ax : Axes, optional
            Where to draw.
        """
        check_model(estimator)
        inner = estimator._fitted()
        if not isinstance(inner, BlockModel | UrnModel):
            raise ValueError(
                "contributions are for blocks and urns: the pairs of trees are shared; fit with "
                "dependence='independent'"
            )
        if inner.n_classes < 2:
            raise ValueError("contributions compare two classes or components; there is one")
        row = np.asarray(x).reshape(1, -1) if np.ndim(x) == 1 else x
        observed = estimator._observed(row)
        if observed.n_rows != 1 or observed.holes is not None:
            raise ValueError("contributions are for a single row without holes")
        joint = inner.score(observed)[0] + estimator._log_prior
        y = int(joint.argmax()) if target is None else number_of(estimator, target)
        others = np.where(np.arange(joint.size) == y, -np.inf, joint)
        z = int(others.argmax()) if against is None else number_of(estimator, against)
        if y == z:
            raise ValueError(f"target and against are both {target!r}; expected two classes")
        on = np.flatnonzero(observed.symbols()[0] == 1)
        found, other = _shares(inner, y, on), _shares(inner, z, on)
        prior = float(estimator._log_prior[y] - estimator._log_prior[z])
        titles = (title_of(estimator, y), title_of(estimator, z))
        shares = found[1] - other[1]
        if not np.isfinite([prior, found[0] - other[0], *shares]).all():
            raise ValueError("one of the classes excludes this row; contributions need alpha > 0")
        shown = cls(names_of(estimator, names), on, shares, prior, found[0] - other[0], titles)
        return shown.plot(ax, top=top)

    def plot(self, ax: Any = None, *, top: int = 15) -> Self:
        """Draw, on given axes or on a new figure.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw.
        top : int, default=15
            How many variables to draw.
        """
        order = np.argsort(-np.abs(self.shares), kind="stable")
        bars = [("prior", self.prior), ("nothing on", self.empty)]
        bars += [(self.names[self.variables[i]], float(self.shares[i])) for i in order[:top]]
        if order.size > top:
            rest = float(self.shares[order[top:]].sum())
            bars.append((f"{order.size - top} other variables", rest))
        bars.append(("log-odds", self.log_odds))
        ax = new_axes(ax, figsize=(6.4, 1.2 + 0.26 * len(bars)))
        values = np.array([value for _, value in bars])
        at = np.arange(len(bars))[::-1]
        ax.barh(at, values, color=[MODEL if value > 0 else OTHER for value in values], height=0.7)
        ax.set_yticks(at, [_shortened(name) for name, _ in bars])
        ax.get_yticklabels()[-1].set_fontweight("bold")
        ax.axvline(0, color="black", lw=0.8)
        ax.set(xlabel=f"speaks for {self.titles[1]}  ←  log-odds  →  for {self.titles[0]}")
        tidy(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _shortened(name: str) -> str:
    """Return a name that is not read as a formula, and not too long."""
    text = name if len(name) <= 40 else name[:39] + "…"
    return text.replace("$", r"\$")


def _shares(inner: BlockModel | UrnModel, y: int, on: IntArray) -> tuple[float, FloatArray]:
    """Return what an empty row scores in a class, and what each variable that is on adds."""
    partition = inner.partitions[y]
    if isinstance(inner, BlockModel):
        table, slope = inner.made_tables.of_class(y), np.zeros(on.size)
    else:
        slope = inner.log_weights[on, y]
        table = np.empty(partition.table_size)
        for b, (_, values) in enumerate(inner._urns(y)):
            table[partition.starts[b] : partition.starts[b] + values.size] = values
    blocks = partition.labels[on]
    counts = np.bincount(blocks, minlength=partition.n_blocks)
    first = table[partition.starts]
    rest = (table[partition.starts + counts] - first) / np.maximum(counts, 1)
    return float(first.sum()), slope + rest[blocks]
