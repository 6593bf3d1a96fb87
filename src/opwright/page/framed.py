"""framed: operator → its page as one HTML element, for a notebook."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from opwright.page.gathering import gather
from opwright.page.rendering import render

if TYPE_CHECKING:
    from opwright.operators.base import BaseOperator


def framed(operator: BaseOperator, **measured: Any) -> str:
    """The page of an operator in a frame, so that its style and the notebook's keep apart.

    Args:
        operator: See `gather`.
        measured: What was measured of it, as JSON: fields of `PageFacts`.

    Raises:
        DrawingMissing: If a library that draws is not installed.
    """
    page = escape(render(gather(operator, **measured).to_json()))
    style = "width: 100%; height: 80vh; border: 0"
    return f'<iframe srcdoc="{page}" title="{escape(operator.name)}" style="{style}"></iframe>'
