"""The operators of examples/lltm.py."""

from __future__ import annotations

from pathlib import Path

from opwright import Operator
from opwright.cli.load import load_operators

_FILE = Path(__file__).parents[1] / "examples" / "lltm.py"


def example_operator(name: str) -> Operator:
    """Return an operator of the example by its name."""
    (found,) = load_operators(f"{_FILE}:{name}")
    assert isinstance(found, Operator)
    return found
