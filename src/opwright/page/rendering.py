"""render: facts → one HTML file, which loads nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from opwright.drawing.graph import MOST_BOXES, Box, Diagram, graph_svg
from opwright.page.figures import memory_plots, roofline_plot, speed_plots
from opwright.page.tables import audit_families, headlines, verdict_rows
from opwright.report.figures import in_units, median_and_spread, ratio, unsteady

_TEMPLATE = "page.html.jinja"


def render(facts: Mapping[str, Any]) -> str:
    """Make the page of an operator.

    Args:
        facts: The JSON of `PageFacts`.

    Returns:
        A whole HTML document, in UTF-8 when it is written.

    Raises:
        DrawingMissing: If a library that draws is not installed.
    """
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"bytes": in_units, "timing": median_and_spread, "ratio": ratio, "unsteady": unsteady}
    template = environment.from_string(_read(_TEMPLATE))
    return template.render(
        facts=facts,
        style=_read("style.css") + _code_style(),
        code=_code,
        graph=_graph,
        headlines=headlines(facts),
        speed=speed_plots(facts),
        memory=memory_plots(facts),
        roofline=roofline_plot(facts),
        verdict=verdict_rows(facts["verdict"]) if facts["verdict"] else None,
        audit=audit_families(facts["audit"]) if facts["audit"] else None,
    )


def _graph(diagram: Mapping[str, Any], title: str) -> tuple[str, int]:
    """The SVG of a diagram and its width in pixels; no SVG if it is too large to be read."""
    boxes: Sequence[Mapping[str, Any]] = diagram["boxes"]
    if len(boxes) > MOST_BOXES:
        return "", 0
    made = tuple(Box(box["key"], tuple(box["lines"]), box["kind"], box["tip"]) for box in boxes)
    return graph_svg(Diagram(made, tuple((start, end) for start, end in diagram["arrows"])), title)


def _code(text: str, language: str) -> str:
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name

    return str(highlight(text.strip("\n"), get_lexer_by_name(language), HtmlFormatter(cssclass="code")))


@cache
def _code_style() -> str:
    """The colours of code, by day and by night."""
    from pygments.formatters import HtmlFormatter

    light = HtmlFormatter(style="xcode").get_style_defs(".code")
    dark = HtmlFormatter(style="github-dark").get_style_defs(".code")
    return f"\n{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n.code {{ background: none }}\n"


@cache
def _read(name: str) -> str:
    return (files("opwright.page") / "template" / name).read_text(encoding="utf-8")
