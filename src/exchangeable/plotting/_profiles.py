"""Profiles of latent classes: how each item is answered in each class."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from exchangeable.classes.profiles import Entry, Profiles
from exchangeable.plotting._axes import check_model, drawn, new_axes, tidy

COLOURS = (
    "#3f55c9", "#d56b2f", "#2f9e6e", "#a23fa8", "#8a6d1f", "#3aa7c4", "#c43a5e", "#5f6b7a",
)  # fmt: skip
MARKERS = "osD^vPX*"
STYLES = ("lines", "bars")


class ProfileDisplay:
    """Profiles of classes as lines or bars, with intervals if they are known.

    Probabilities are drawn unchanged; means of numbers on a scale on which 0 and 1 are the lowest
    and highest class. For columns with more than two levels every level is drawn, for numbers the
    mean.

    Parameters
    ----------
    profiles : Profiles
        What to draw, in the order of its items.
    names : sequence of str, optional
        Names of the classes.

    Attributes
    ----------
    ax_, figure_
        Axes and figure.

    Examples
    --------
    >>> import numpy as np
    >>> from exchangeable import ExchangeableMixture
    >>> from exchangeable.plotting import ProfileDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((300, 5)) < np.where(rng.random((300, 1)) < 0.4, 0.2, 0.8)
    >>> model = ExchangeableMixture(2, blocks="independent", random_state=0).fit(X)
    >>> display = ProfileDisplay.from_estimator(model, names=["often", "seldom"])
    >>> [text.get_text()[:5] for text in display.ax_.get_legend().get_texts()]
    ['often', 'seldo']
    """

    def __init__(self, profiles: Profiles, names: Sequence[str] | None = None) -> None:
        k = profiles.sizes.size
        if names is not None and len(names) != k:
            raise ValueError(f"names has {len(names)} entries for {k} classes; give one for each")
        self.profiles = profiles
        self.names = profiles.names if names is None else list(names)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        items: Sequence[str] | None = None,
        names: Sequence[str] | None = None,
        style: str = "lines",
        ax: Any = None,
    ) -> Self:
        """Draw the profiles of a fitted mixture.

        Parameters
        ----------
        estimator : ExchangeableMixture
            A fitted mixture.
        items : sequence of str, optional
            Columns to draw, in this order; all by default.
        names : sequence of str, optional
            Names of the classes.
        style : {"lines", "bars"}, default="lines"
            The style.
        ax : Axes, optional
            Axes to draw on.
        """
        check_model(estimator)
        return cls(estimator.profiles().ordered(items), names).plot(ax, style=style)

    @classmethod
    def from_errors(
        cls,
        errors: Any,
        *,
        items: Sequence[str] | None = None,
        names: Sequence[str] | None = None,
        style: str = "lines",
        ax: Any = None,
    ) -> Self:
        """Draw profiles with confidence intervals.

        Parameters
        ----------
        errors : StandardErrors
            The result of `exchangeable.classes.standard_errors`.
        items, names, style, ax
            As in `from_estimator`.
        """
        return cls(errors.profiles.ordered(items), names).plot(ax, style=style)

    def plot(self, ax: Any = None, *, style: str = "lines") -> Self:
        """Draw, on given axes or on a new figure."""
        if style not in STYLES:
            raise ValueError(f"style={style!r} is unknown; expected one of {', '.join(STYLES)}")
        shown = [i for i, entry in enumerate(self.profiles.entries) if entry.answer != "SD"]
        entries = [self.profiles.entries[i] for i in shown]
        values, interval = self._scaled(shown)
        width = max(6.4, 1.6 + 0.42 * len(shown))
        ax = new_axes(ax, figsize=(width, 3.9))
        draw = self._lines if style == "lines" else self._bars
        draw(ax, values, interval, entries)
        ax.set_xticks(range(len(entries)), [drawn(_label(e)) for e in entries])
        long = max(len(_label(entry)) for entry in entries) > 4
        if long or len(entries) > 12:
            ax.tick_params(axis="x", labelrotation=45)
            for text in ax.get_xticklabels():
                text.set(ha="right", rotation_mode="anchor")
        all_shares = all(entry.is_share for entry in entries)
        means = "" if all_shares else "\n(means: lowest 0, highest 1)"
        ax.set_ylabel(f"probability{means}")
        ax.set_ylim(-0.02 if style == "lines" else 0.0, 1.02)
        ax.set_xlim(-0.6, len(entries) - 0.4)
        above = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}
        ax.legend(frameon=False, ncols=min(4, len(self.names)), **above)
        ax.grid(axis="y", color="#e6e9f0", lw=0.8)
        ax.set_axisbelow(True)
        tidy(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _scaled(self, shown: list[int]) -> tuple[Any, Any]:
        """Return values and ends of intervals between 0 and 1."""
        values = self.profiles.values[shown].copy()
        interval = None
        if self.profiles.interval is not None:
            interval = self.profiles.interval[:, shown].copy()
        for line, i in enumerate(shown):
            if self.profiles.entries[i].is_share:
                continue
            low, high = np.nanmin(values[line]), np.nanmax(values[line])
            spread = high - low if high > low else 1.0
            values[line] = (values[line] - low) / spread
            if interval is not None:
                interval[:, line] = (interval[:, line] - low) / spread
        return values, interval

    def _legend(self, y: int) -> str:
        return drawn(f"{self.names[y]} ({self.profiles.sizes[y]:.0%})")

    def _lines(self, ax: Any, values: Any, interval: Any, entries: list[Entry]) -> None:
        at = np.arange(len(entries))
        # Levels of one column are only joined to each other; binary items to their neighbours.
        breaks = [
            i
            for i in range(1, len(entries))
            if not (entries[i].kind == entries[i - 1].kind == "binary")
            and entries[i].item != entries[i - 1].item
        ]
        k = values.shape[1]
        for y in range(k):
            shift = 0.0 if interval is None else 0.05 * (y - (k - 1) / 2)
            colour, marker = COLOURS[y % len(COLOURS)], MARKERS[y % len(MARKERS)]
            for n, part in enumerate(np.split(at, breaks)):
                label = self._legend(y) if n == 0 else None
                line = {"color": colour, "marker": marker, "ms": 4.5, "lw": 1.6, "label": label}
                ax.plot(part + shift, values[part, y], **line)
            if interval is not None:
                ends = np.abs(interval[:, :, y] - values[:, y])
                ax.errorbar(at + shift, values[:, y], ends, fmt="none", ecolor=colour, lw=1)

    def _bars(self, ax: Any, values: Any, interval: Any, entries: list[Entry]) -> None:
        at, k = np.arange(len(entries)), values.shape[1]
        width = 0.8 / k
        for y in range(k):
            place = at + width * (y - (k - 1) / 2)
            error = None if interval is None else np.abs(interval[:, :, y] - values[:, y])
            colour = COLOURS[y % len(COLOURS)]
            whiskers = {"ecolor": "#3b4252", "error_kw": {"lw": 0.9}}
            ax.bar(
                place, values[:, y], width * 0.92, yerr=error, color=colour,
                label=self._legend(y), **whiskers,
            )  # fmt: skip


def _label(entry: Entry) -> str:
    """Return the label of an entry: the item, and the answer if there are several."""
    return entry.item if entry.kind == "binary" else f"{entry.item}: {entry.answer}"
