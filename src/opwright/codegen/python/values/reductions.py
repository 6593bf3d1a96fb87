"""Reductions as torch operations that keep the reduced dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from opwright.codegen.infix import Spelled, postfix

_METHODS = {"sum": "sum", "product": "prod", "maximum": "amax", "minimum": "amin", "any": "any", "all": "all"}


def spell_reducer(function: str, value: Spelled, dimensions: Sequence[int]) -> Spelled:
    """Reduce a tensor along some of its dimensions, which stay with one element.

    Args:
        function: A row of ir/expressions/reductions.py.
        value: The tensor.
        dimensions: At least one.
    """
    method = _METHODS[function]
    if method == "prod":  # takes one dimension at a time
        for dimension in dimensions:
            value = postfix(f".prod(dim={dimension}, keepdim=True)").fill([value])
        return value
    along = str(dimensions[0]) if len(dimensions) == 1 else f"({', '.join(map(str, dimensions))})"
    return postfix(f".{method}(dim={along}, keepdim=True)").fill([value])
