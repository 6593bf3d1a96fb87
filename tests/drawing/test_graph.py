"""Graphs as SVG: nothing overlaps, and arrows go from box to box, downwards."""

import re
import sys
from itertools import combinations

import pytest

from opwright.drawing.graph import Box, Diagram, graph_svg
from opwright.errors import DrawingMissing

_RECT = re.compile(r'<rect x="([-\d.]+)" y="([-\d.]+)" width="([-\d.]+)" height="([-\d.]+)"')
_PATH = re.compile(r'class="edge" d="M([-\d.]+),([-\d.]+) .* ([-\d.]+),([-\d.]+)"')


def diamond(levels: int, wide: int) -> Diagram:
    """Layers of boxes of many widths; each reads all of the layer above and the input at the top."""
    boxes, arrows = [Box("input", ("x",), "input", "<an input>")], []
    above = ["input"]
    for level in range(levels):
        layer = [f"{level} {number}" for number in range(wide)]
        boxes += [Box(key, ("n" * (3 + 7 * number), "second"), "kernel") for number, key in enumerate(layer)]
        arrows += [(start, key) for start in dict.fromkeys([*above, "input"]) for key in layer]
        above = layer
    return Diagram(tuple(boxes), tuple(arrows))


@pytest.mark.parametrize("diagram", [diamond(1, 1), diamond(3, 4), diamond(5, 2)])
def test_boxes_are_apart_and_inside(diagram: Diagram) -> None:
    svg, width = graph_svg(diagram, "a <graph>")
    rects = [tuple(map(float, found)) for found in _RECT.findall(svg)]
    left, top, across, down = map(float, re.search(r'viewBox="([^"]+)"', svg)[1].split())
    assert len(rects) == len(diagram.boxes)
    assert width == across
    for (x0, y0, w0, h0), (x1, y1, w1, h1) in combinations(rects, 2):
        assert x0 + w0 < x1 or x1 + w1 < x0 or y0 + h0 < y1 or y1 + h1 < y0
    for x, y, w, h in rects:
        assert left <= x <= x + w <= left + across
        assert top <= y <= y + h <= top + down
    assert "<graph>" not in svg
    assert "<an input>" not in svg


def test_arrows_go_down_from_box_to_box() -> None:
    diagram = diamond(3, 2)
    arrows = [tuple(map(float, found)) for found in _PATH.findall(graph_svg(diagram, "")[0])]
    assert len(arrows) == len(diagram.arrows)
    assert all(y0 < y1 for _, y0, _, y1 in arrows)


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "igraph", None)
    with pytest.raises(DrawingMissing, match=r"igraph.*\nhint: pip install 'opwright\[report\]'"):
        graph_svg(diamond(1, 1), "")
