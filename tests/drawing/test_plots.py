"""Plots as SVG: marks where the points are, colours that follow the page, ids of their own."""

import re
import sys
import xml.etree.ElementTree as ET

import pytest

from opwright.drawing.plots import Bar, Series, bars_svg, lines_svg, roofline_svg
from opwright.errors import DrawingMissing

LINES = [
    Series("eager", 0, ((10, 5.0), (1000, 50.0), (100, 20.0))),
    Series("opwright", 2, ((10, 1.0), (100, 2.0), (1000, 30.0))),
]
BARS = [Bar("eager", (1.0, 0.0, 3.0)), Bar("opwright", (1.0, 0.5, 0.0))]
PARTS = (("arguments", 0), ("results", 1), ("beside", 2))
PLOTS = {
    "lines": lambda name: lines_svg(LINES, name, "elements", "time, µs"),
    "one point": lambda name: lines_svg([Series("eager", 0, ((10, 5.0),))], name, "elements", "time, µs"),
    "bars": lambda name: bars_svg(BARS, PARTS, name, "MB"),
    "nothing saved": lambda name: bars_svg([Bar("eager", (0.0, 0.0, 0.0))], PARTS, name, "bytes"),
    "roofline": lambda name: roofline_svg([Series("forward", 2, ((0.5, 2.0), (20, 30.0)))], 10, 100, name),
}


@pytest.mark.parametrize("kind", PLOTS)
def test_a_plot_can_stand_in_a_page(kind) -> None:
    svg = PLOTS[kind]("plot")
    root = ET.fromstring(svg)
    ids = [node.get("id") for node in root.iter() if node.get("id")]
    assert ids
    assert all(each.startswith("plot-") for each in ids)
    assert {each[1:] for each in re.findall(r'href="(#[^"]+)"', svg)} <= set(ids)
    assert not re.search(r"#0[0-9a-f]{5}\b", svg), "a standing colour is left"
    assert "var(--series-" in svg
    assert "http" not in svg
    assert svg == PLOTS[kind]("plot"), "it is the same each time"


def test_every_point_has_a_mark_from_left_to_right() -> None:
    svg = PLOTS["lines"]("plot")
    lines = re.findall(r'<g id="plot-plot-mark">(.*?)</g>\s*</g>', svg, re.S)
    assert len(lines) == len(LINES)
    for line in lines:
        across = [float(x) for x in re.findall(r'<use [^>]*x="([\d.]+)"', line)]
        assert len(across) == 3
        assert across == sorted(across)


def test_bars_are_as_long_as_what_they_show() -> None:
    bars = re.findall(r'id="plot-plot-mark[^"]*">\s*<path d="([^"]+)"', PLOTS["bars"]("plot"))
    corners = [[float(x) for x in re.findall(r"[ML] ([\d.]+) ", bar)] for bar in bars]
    widths = [max(across) - min(across) for across in corners]
    unit = widths[0]
    assert [round(width / unit, 3) for width in widths] == [1, 1, 0, 0.5, 3, 0]


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(DrawingMissing, match=r"matplotlib.*\nhint: pip install 'opwright\[report\]'"):
        PLOTS["bars"]("plot")
