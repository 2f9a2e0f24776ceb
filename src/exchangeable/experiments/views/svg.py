"""Line charts as SVG text, so that pages need no other files."""

from html import escape

import numpy as np

from exchangeable.experiments.views.parts import ChartView

WIDTH, HEIGHT = 600, 300
LEFT, RIGHT, TOP, BOTTOM = 58, 160, 30, 44
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#7f6000", "#56b4e9")
DASHES = ("", "6 3", "2 3", "8 3 2 3", "1 2", "4 2")


class _Axis:
    """Maps values to positions between two edges, on a linear or logarithmic scale."""

    def __init__(self, values: list[float], log: bool, start: float, stop: float) -> None:
        self.log, self.start, self.stop = log, start, stop
        low, high = min(values), max(values)
        if log:
            self.ticks = [10.0**e for e in range(*_decades(low, high))]
            low, high = min(low, self.ticks[0]), max(high, self.ticks[-1])
        else:
            pad = (high - low or 1.0) * 0.05
            low, high = low - pad, high + pad
            self.ticks = _round_ticks(low, high)
        self.low, self.high = self._scaled(low), self._scaled(high)

    def _scaled(self, value: float) -> float:
        return float(np.log10(value)) if self.log else value

    def __call__(self, value: float) -> float:
        share = (self._scaled(value) - self.low) / (self.high - self.low or 1.0)
        return self.start + share * (self.stop - self.start)


def _decades(low: float, high: float) -> tuple[int, int]:
    return int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1


def _round_ticks(low: float, high: float) -> list[float]:
    """Return about five round numbers between two others.

    >>> [round(tick, 1) for tick in _round_ticks(0.42, 1.03)]
    [0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    """
    raw = (high - low) / 5
    unit = 10.0 ** np.floor(np.log10(raw))
    step = unit * next(m for m in (1, 2, 5, 10) if m * unit >= raw * 0.8)
    first = np.ceil(low / step) * step
    return [float(value) for value in np.arange(first, high, step)]


def line_chart(chart: ChartView) -> str:
    """Return a chart as an SVG element with lines, marks, axes and a legend."""
    points = [point for line in chart.lines.values() for point in line]
    x = _Axis([p[0] for p in points], chart.log_x, LEFT, WIDTH - RIGHT)
    y = _Axis([p[1] for p in points], chart.log_y, HEIGHT - BOTTOM, TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" font-family="sans-serif" font-size="11" role="img">',
        f"<title>{escape(chart.title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(LEFT, 16, chart.title, "start", bold=True),
        *_axes(chart, x, y),
    ]
    shown = [(name, line) for name, line in chart.lines.items() if line]
    for number, (name, line) in enumerate(shown):
        parts += _line(number, name, line, x, y)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _axes(chart: ChartView, x: _Axis, y: _Axis) -> list[str]:
    parts = []
    for tick in x.ticks:
        across = x(tick)
        parts.append(_stroke(across, TOP, across, HEIGHT - BOTTOM))
        parts.append(_text(across, HEIGHT - BOTTOM + 14, f"{tick:,.10g}", "middle"))
    for tick in y.ticks:
        down = y(tick)
        parts.append(_stroke(LEFT, down, WIDTH - RIGHT, down))
        parts.append(_text(LEFT - 5, down + 4, f"{tick:.4g}", "end"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, chart.x_label, "middle"))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(
        f'<text x="14" y="{middle:.1f}" text-anchor="middle" '
        f'transform="rotate(-90 14 {middle:.1f})">{escape(chart.y_label)}</text>'
    )
    return parts


def _line(number: int, name: str, line: list[tuple[float, float]], x: _Axis, y: _Axis) -> list[str]:
    colour, dash = COLOURS[number % len(COLOURS)], DASHES[number % len(DASHES)]
    points = [(x(a), y(b)) for a, b in line]
    path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
    marks = [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.5" fill="{colour}"/>' for a, b in points]
    row, legend = TOP + 12 + 16 * number, WIDTH - RIGHT + 12
    return [
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8" '
        f'stroke-dasharray="{dash}"/>',
        *marks,
        f'<line x1="{legend}" y1="{row - 4}" x2="{legend + 22}" y2="{row - 4}" stroke="{colour}" '
        f'stroke-width="1.8" stroke-dasharray="{dash}"/>',
        _text(legend + 27, row, name, "start"),
    ]


def _stroke(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#dddddd"/>'


def _text(x: float, y: float, text: str, anchor: str, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{weight}>{escape(text)}</text>'
