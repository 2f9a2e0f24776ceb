"""The contribution of each variable to a class in one example, as an exact sum."""

from typing import Any, Self

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families.contract import Model
from exchangeable.plotting._axes import (
    MODEL,
    OTHER,
    check_model,
    drawn,
    names_of,
    new_axes,
    number_of,
    tidy,
    title_of,
)


class ContributionsDisplay:
    """The log-odds of two classes in one example, as a sum over the variables that are on.

    In a block with n ones the score is a look-up, table[n]. It is the look-up of the empty block
    plus n equal shares of the rest, (table[n] − table[0]) / n, one for each variable that is on; if
    variables have weights, each also adds its own log-weight. So the log-odds are exactly

        prior + contribution of an empty row + Σ over the variables that are on,

    and if every variable is a block of its own, these are the log-odds of naive Bayes.

    Parameters
    ----------
    names : list of str
        Names of the variables.
    variables : ndarray
        The variables that are on.
    shares : ndarray
        The contribution of each to the log-odds.
    prior, empty : float
        The other two terms.
    titles : tuple of str
        The class whose log-odds are shown, and the class it is compared with.

    Attributes
    ----------
    log_odds : float
        The sum of all terms.
    ax_, figure_
        Axes and figure.

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
        """Draw the contribution of each variable of one row to the log-odds of two classes.

        Parameters
        ----------
        estimator : ExchangeableClassifier or ExchangeableMixture
            A fitted model whose family scores rows by a sum over the variables that are on.
        x : array-like of shape (n_features,), or one row of a sparse matrix or frame
            The example, without missing values.
        target : label, optional
            The class whose log-odds are shown; the most probable by default.
        against : label, optional
            The class it is compared with; the most probable other one by default.
        names : sequence of str, optional
            Names of the variables, if the model was fitted without names.
        top : int, default=15
            Number of variables to draw; all others share one bar.
        ax : Axes, optional
            Axes to draw on.
        """
        check_model(estimator)
        inner = estimator._fitted()
        if inner.n_classes < 2:
            raise ValueError(
                "contributions compare two classes or components, but the model has only one"
            )
        row = np.asarray(x).reshape(1, -1) if np.ndim(x) == 1 else x
        observed = estimator._observed(row)
        if observed.n_rows != 1 or observed.holes is not None:
            raise ValueError(
                "contributions are for a single row without holes; fill holes with impute first"
            )
        joint = inner.score(observed)[0] + estimator._log_prior
        y = int(joint.argmax()) if target is None else number_of(estimator, target)
        others = [c for c in np.argsort(-joint, kind="stable").tolist() if c != y]
        z = others[0] if against is None else number_of(estimator, against)
        if y == z:
            raise ValueError(
                f"target and against are both {title_of(estimator, y)}; expected two classes"
            )
        on = np.flatnonzero(observed.symbols()[0] == 1)
        empty, shares = _differences(inner, y, z, on)
        prior = float(estimator._log_prior[y] - estimator._log_prior[z])
        titles = (title_of(estimator, y), title_of(estimator, z))
        if not np.isfinite([prior, empty, *shares]).all():
            raise ValueError(
                "one of the two classes gives this row probability 0; fit with alpha > 0"
            )
        return cls(names_of(estimator, names), on, shares, prior, empty, titles).plot(ax, top=top)

    def plot(self, ax: Any = None, *, top: int = 15) -> Self:
        """Draw, on given axes or on a new figure.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on.
        top : int, default=15
            Number of variables to draw.
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
        heights = np.arange(len(bars))[::-1]
        colours = [MODEL if value > 0 else OTHER for value in values]
        ax.barh(heights, values, color=colours, height=0.7)
        ax.set_yticks(heights, [_shortened(name) for name, _ in bars])
        ax.get_yticklabels()[-1].set_fontweight("bold")
        ax.axvline(0, color="black", lw=0.8)
        against, target = drawn(self.titles[1]), drawn(self.titles[0])
        ax.set(xlabel=f"favours {against}  ←  log-odds  →  favours {target}")
        tidy(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _shortened(name: str) -> str:
    """Return a name that is not read as a formula, and not too long."""
    text = name if len(name) <= 40 else name[:39] + "…"
    return drawn(text)


def _differences(inner: Model, y: int, z: int, on: IntArray) -> tuple[float, FloatArray]:
    """Return by how much class y exceeds class z for an empty row and for each variable on."""
    with np.errstate(invalid="ignore"):  # impossible rows have −inf here, which is refused later
        first, second = inner.contributions(on, y), inner.contributions(on, z)
        if first is None or second is None:
            raise ValueError(
                "contributions need a score that is a sum over the variables that are on, which "
                "this model's family does not have; fit with the default family"
            )
        return first[0] - second[0], first[1] - second[1]
