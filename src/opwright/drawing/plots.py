"""Plots as SVG, by matplotlib: lines over sizes, stacked bars, a roofline.

Text stays text, and colours are CSS variables: `--ink`, `--dim`, `--grid`, and `--series-0` and on for what is
compared. So a plot follows the page's light and dark.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from opwright.drawing.graph import DRAWING_HINT
from opwright.errors import DrawingMissing

# Colours that stand for variables until the SVG is written; matplotlib takes no variables.
_STANDING = {
    "#010203": "var(--ink)", "#020304": "var(--dim)", "#030405": "var(--grid)",
    **{f"#0a0b{number:02x}": f"var(--series-{number})" for number in range(7)},
}  # fmt: skip
_INK, _DIM, _GRID, *_SERIES = _STANDING
_STYLE: Any = {
    "lines.linewidth": 1.6,
    "svg.fonttype": "none", "font.size": 10.0, "font.family": "sans-serif", "axes.titlesize": 11.0,
    "text.color": _INK, "axes.labelcolor": _DIM, "axes.edgecolor": _GRID, "xtick.color": _DIM, "ytick.color": _DIM,
    "xtick.labelcolor": _DIM, "ytick.labelcolor": _DIM, "axes.spines.top": False, "axes.spines.right": False,
    "grid.color": _GRID, "grid.linewidth": 0.8, "axes.grid": True, "axes.axisbelow": True, "figure.facecolor": "none",
    "axes.facecolor": "none", "savefig.facecolor": "none", "xtick.major.size": 0, "ytick.major.size": 0,
    "xtick.minor.size": 0, "ytick.minor.size": 0,
}  # fmt: skip
_MARKS = (7.5, 6, 4.5, 4.5, 5, 5, 5)  # smaller and smaller, so that equal points can all be seen
_WIDTH, _HEIGHT = 4.6, 3.3  # inches of 72 points


@dataclass(frozen=True, slots=True)
class Series:
    """What one contender has: its colour, and points, each an x and a y."""

    name: str
    colour: int
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of stacked parts, in order."""

    name: str
    parts: tuple[float, ...]


def lines_svg(series: Sequence[Series], name: str, across: str, up: str) -> str:
    """Draw lines with a mark at each point, both axes logarithmic.

    Args:
        series: Each with positive numbers; not all empty.
        name: Of the plot, without spaces: its elements are called after it.
        across: What x is.
        up: What y is, with its unit.

    Raises:
        DrawingMissing: If matplotlib is not installed.
    """

    def draw(axes: Any) -> None:
        for each in series:
            xs, ys = zip(*sorted(each.points), strict=True) if each.points else ((), ())
            axes.plot(
                xs,
                ys,
                color=_SERIES[each.colour],
                marker="o",
                markersize=_MARKS[each.colour],
                linewidth=1.6,
                gid=f"{name}-mark",
            )
        axes.set(xscale="log", yscale="log", xlabel=across, ylabel=up)
        _room(axes, [point for each in series for point in each.points])

    return _drawn(name, draw)


def bars_svg(bars: Sequence[Bar], parts: Sequence[tuple[str, int]], name: str, across: str) -> str:
    """Draw horizontal bars of stacked parts.

    Args:
        bars: From top to bottom.
        parts: For each part its name and its colour.
        name: Of the plot, without spaces.
        across: What the length is, with its unit.

    Raises:
        DrawingMissing: If matplotlib is not installed.
    """

    def draw(axes: Any) -> None:
        names = [bar.name for bar in bars]
        before = [0.0] * len(bars)
        for number, (_, colour) in enumerate(parts):
            lengths = [bar.parts[number] for bar in bars]
            axes.barh(names, lengths, 0.55, before, color=_SERIES[colour], gid=f"{name}-mark")
            before = [start + length for start, length in zip(before, lengths, strict=True)]
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.set(xlabel=across, xlim=(0, max(*before, 1e-9) * 1.04))
        axes.locator_params(axis="x", nbins=5)

    return _drawn(name, draw, height=0.75 + 0.42 * len(bars))


def roofline_svg(series: Sequence[Series], bandwidth: float, peak: float, name: str) -> str:
    """Draw what is attained below what the machine allows.

    Args:
        series: Points of operations for each byte, and thousand million operations in a second.
        bandwidth: Thousand million bytes in a second.
        peak: Thousand million operations in a second.
        name: Of the plot, without spaces.

    Raises:
        DrawingMissing: If matplotlib is not installed.
    """
    points = [point for each in series for point in each.points]
    ridge = peak / bandwidth
    left, right = min([x for x, _ in points] + [ridge]) / 3, max([x for x, _ in points] + [ridge]) * 3
    low = min([y for _, y in points] + [bandwidth * left])

    def draw(axes: Any) -> None:
        roof = [(left, left * bandwidth), (ridge, peak), (right, peak)]
        axes.plot(*zip(*roof, strict=True), color=_DIM, linewidth=1.6, gid=f"{name}-mark")
        for each in series:
            xs, ys = zip(*each.points, strict=True) if each.points else ((), ())
            axes.plot(xs, ys, "o", color=_SERIES[each.colour], markersize=6, gid=f"{name}-mark")
        axes.set(xscale="log", yscale="log", xlabel="operations for each byte", ylabel="10⁹ operations / s")
        _room(axes, [*points, (left, low), (right, peak)])

    return _drawn(name, draw)


def _room(axes: Any, points: Sequence[tuple[float, float]]) -> None:
    """Leave room around the points, and let each axis have whole powers of ten, at least one."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for axis, limit, values in (
        (axes.xaxis, axes.set_xlim, [x for x, _ in points]),
        (axes.yaxis, axes.set_ylim, [y for _, y in points]),
    ):
        low, high = min(values), max(values)
        if high / low < 12:
            low, high = low / 3, high * 3
        limit(low / 1.5, high * 1.5)
        axis.set_major_locator(LogLocator(10, numticks=6))
        axis.set_major_formatter(FuncFormatter(lambda value, _: _spelled(value)))
        axis.set_minor_formatter(NullFormatter())


def _spelled(value: float) -> str:
    """A power of ten in few letters: 0.01, 10, 1k, 100M."""
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:g}{letter}"
    return f"{value:g}"


def _drawn(name: str, draw: Callable[[Any], None], height: float = _HEIGHT) -> str:
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        fact = "plots are drawn with matplotlib, which is not installed"
        raise DrawingMissing(fact, hint=DRAWING_HINT) from error
    file = io.StringIO()
    with rc_context(_STYLE | {"svg.hashsalt": name}):
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        draw(figure.subplots())
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return _of_the_page(file.getvalue(), name)


def _of_the_page(svg: str, name: str) -> str:
    """Without a head and metadata, with variables for colours, and with ids that no other plot has."""
    text = svg[svg.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    for standing, variable in _STANDING.items():
        text = text.replace(standing, variable)
    text = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', text)
    text = re.sub(r'xlink:href="#([^"]+)"', rf'href="#{name}-\1"', text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", text)
    text = re.sub(r' xmlns(:xlink)?="[^"]+"', "", text)
    return re.sub(r'<svg [^>]*?viewBox="([^"]+)"[^>]*>', r'<svg viewBox="\1" role="img">', text, count=1)
