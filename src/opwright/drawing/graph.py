"""A graph as SVG: boxes from top to bottom in layers, laid out by igraph, with curved arrows."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

from opwright.errors import DrawingMissing

Kind = Literal["input", "output", "kernel", "library", "view", "number"]

Point = tuple[float, float]

MOST_BOXES = 160
DRAWING_HINT = "pip install 'opwright[report]'"
_LETTER, _LINE, _PADDING = 7.3, 17, 9  # pixels, of 12-pixel monospace letters with some room
_BETWEEN, _BELOW, _MARGIN = 22, 40, 6
_SMALLEST = 0.72  # of its size: below, letters cannot be read, and the page scrolls the graph instead


@dataclass(frozen=True, slots=True)
class Box:
    """A node.

    Attributes:
        key: What arrows call it.
        lines: What is written in it.
        kind: What it is, which gives it its colour.
        tip: What is shown when the mouse rests on it.
    """

    key: str
    lines: tuple[str, ...]
    kind: Kind
    tip: str = ""

    @property
    def width(self) -> float:
        """In pixels."""
        return max(map(len, self.lines)) * _LETTER + 2 * _PADDING

    @property
    def height(self) -> float:
        """In pixels."""
        return len(self.lines) * _LINE + 2 * _PADDING - 4


@dataclass(frozen=True, slots=True)
class Diagram:
    """A directed graph without cycles; each arrow is a pair of keys."""

    boxes: tuple[Box, ...]
    arrows: tuple[tuple[str, str], ...]


def graph_svg(diagram: Diagram, title: str) -> tuple[str, int]:
    """Draw a graph; return the SVG and its width in pixels.

    Args:
        diagram: At most `MOST_BOXES` boxes.
        title: What a screen reader says.

    Raises:
        DrawingMissing: If igraph is not installed.
    """
    centres, bends = _layout(diagram)
    ends = [end for bend in bends for end in bend]
    widths = [*(box.width for box in diagram.boxes), *(0.0 for _ in ends)]
    heights = [*(box.height for box in diagram.boxes), *(0.0 for _ in ends)]
    placed = iter(_apart(widths, heights, [*centres, *ends]))
    where = {box.key: (box, next(placed)) for box in diagram.boxes}
    routes = [[next(placed) for _ in bend] for bend in bends]
    arrows = [_arrow(*where[a], *where[b], route) for (a, b), route in zip(diagram.arrows, routes, strict=True)]
    points = [point for route in routes for point in route]
    left = min([x - box.width / 2 for box, (x, _) in where.values()] + [x for x, _ in points]) - _MARGIN
    right = max([x + box.width / 2 for box, (x, _) in where.values()] + [x for x, _ in points]) + _MARGIN
    top = min(y - box.height / 2 for box, (_, y) in where.values()) - _MARGIN
    bottom = max(y + box.height / 2 for box, (_, y) in where.values()) + _MARGIN
    boxes = [_box(box, place) for box, place in where.values()]
    width = round(right - left)
    size = f'viewBox="{left:.0f} {top:.0f} {width} {bottom - top:.0f}"'
    style = f"width:{width}px;min-width:{_SMALLEST * width:.0f}px"
    head = f'<svg class="graph" role="img" aria-label="{escape(title)}" {size} style="{style}">'
    return "\n".join([head, *arrows, *boxes, "</svg>"]), width


def _layout(diagram: Diagram) -> tuple[list[Point], list[list[Point]]]:
    """The centre of each box, and the points through which each arrow passes layers, by Sugiyama's method."""
    try:
        import igraph
    except ImportError as error:
        raise DrawingMissing("graphs are drawn with igraph, which is not installed", hint=DRAWING_HINT) from error
    keys = {box.key: number for number, box in enumerate(diagram.boxes)}
    depth = _layers(diagram)
    layers = [depth[box.key] for box in diagram.boxes]
    edges: list[tuple[int, int]] = []
    routes: list[range] = []  # of each arrow, its points in the layers between, which stand among the boxes
    for start, end in diagram.arrows:
        between = range(depth[start] + 1, depth[end])
        routes.append(range(len(layers), len(layers) + len(between)))
        layers += between
        stops = [keys[start], *routes[-1], keys[end]]
        edges += itertools.pairwise(stops)
    graph: Any = igraph.Graph(len(layers), edges, directed=True)
    found: list[Point] = [(x, y) for x, y in graph.layout_sugiyama(layers=layers, hgap=1, vgap=1).coords]
    return found[: len(keys)], [[found[index] for index in route] for route in routes]


def _layers(diagram: Diagram) -> dict[str, int]:
    """Each box below all that it reads; an input stands just above the first box that reads it."""
    above: dict[str, list[str]] = {box.key: [] for box in diagram.boxes}
    below: dict[str, list[str]] = {box.key: [] for box in diagram.boxes}
    for start, end in diagram.arrows:
        above[end].append(start)
        below[start].append(end)
    layer: dict[str, int] = {}
    for box in diagram.boxes:  # in order: what a box reads stands before it
        layer[box.key] = max((layer[key] + 1 for key in above[box.key]), default=0)
    for box in diagram.boxes:
        if not above[box.key] and below[box.key]:
            layer[box.key] = max(0, min(layer[key] for key in below[box.key]) - 1)
    return layer


def _apart(widths: Sequence[float], heights: Sequence[float], centres: Sequence[Point]) -> list[Point]:
    """Scale the layout to pixels, and push what stands in one layer apart where it would overlap."""
    boxes = [width for width in widths if width]
    unit = 0.55 * (sum(boxes) / len(boxes) + _BETWEEN)  # less than a box: many neighbours are arrows
    layers: dict[float, list[int]] = {}
    for index in sorted(range(len(centres)), key=lambda index: centres[index]):
        layers.setdefault(centres[index][1], []).append(index)
    xs, ys, reached = [x * unit for x, _ in centres], [0.0] * len(centres), 0.0
    for layer in sorted(layers):
        members = layers[layer]
        tallest = max(heights[index] for index in members)
        wanted = sum(xs[index] for index in members)
        for before, after in itertools.pairwise(members):
            xs[after] = max(xs[after], xs[before] + (widths[before] + widths[after]) / 2 + _BETWEEN)
        shift = (wanted - sum(xs[index] for index in members)) / len(members)
        for index in members:
            xs[index], ys[index] = xs[index] + shift, reached + tallest / 2
        reached += tallest + _BELOW
    return list(zip(xs, ys, strict=True))


def _arrow(start: Box, there: Point, end: Box, here: Point, route: Sequence[Point]) -> str:
    x, y = here[0], here[1] - end.height / 2 - 5
    points = [(there[0], there[1] + start.height / 2), *route, (x, y)]
    path = f"M{points[0][0]:.1f},{points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        middle = (y0 + y1) / 2
        path += f" C{x0:.1f},{middle:.1f} {x1:.1f},{middle:.1f} {x1:.1f},{y1:.1f}"
    head = f"M{x - 4:.1f},{y - 2:.1f} L{x:.1f},{y + 5:.1f} L{x + 4:.1f},{y - 2:.1f} Z"
    return f'<path class="edge" d="{path}"/><path class="head" d="{head}"/>'


def _box(box: Box, place: tuple[float, float]) -> str:
    x, y = place
    corner = box.height / 2 if box.kind in ("input", "output") else 5
    first = y - (len(box.lines) - 1) * _LINE / 2
    lines = "".join(
        f'<text x="{x:.1f}" y="{first + number * _LINE:.1f}"{" class=second" if number else ""}>{escape(line)}</text>'
        for number, line in enumerate(box.lines)
    ).replace("class=second", 'class="second"')
    tip = f"<title>{escape(box.tip)}</title>" if box.tip else ""
    return (
        f'<g class="box {box.kind}">{tip}<rect x="{x - box.width / 2:.1f}" y="{y - box.height / 2:.1f}" '
        f'width="{box.width:.1f}" height="{box.height:.1f}" rx="{corner:.1f}"/>{lines}</g>'
    )
