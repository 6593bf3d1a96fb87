"""The operators of the examples."""

from __future__ import annotations

from pathlib import Path

from opwright import Operator
from opwright.cli.load import load_operators

_EXAMPLES = Path(__file__).parents[1] / "examples"


def example_operator(name: str, example: str = "lltm") -> Operator:
    """Return an operator of an example by its name."""
    (found,) = load_operators(f"{_EXAMPLES / example}.py:{name}")
    assert isinstance(found, Operator)
    return found
