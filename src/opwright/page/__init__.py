"""The page of an operator: all that is known of it, as facts, and the facts as one HTML file."""

from opwright.page.facts import PageFacts
from opwright.page.gathering import gather
from opwright.page.measured import measure_more
from opwright.page.rendering import render

__all__ = ["PageFacts", "gather", "measure_more", "render"]
