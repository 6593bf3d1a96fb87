"""Library calls in Python: `torch.ops.aten.linalg_inv_ex(x, check_errors=True)`."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence

from opwright.ir.expressions.integer import Integer
from opwright.ir.printer import print_operand
from opwright.ir.program import Call


def spell_call(step: Call, buffer: Callable[[str], str], size: Callable[[Integer], str], device: str) -> str:
    """Write a library call; `buffer`, `size` and `device` say how its operands are written."""
    name = f"{step.function}.{step.overload}" if step.overload else step.function
    positional = len(step.operands) - len(step.keywords)

    def constant(value: float | bool | str, kind: str) -> str:
        return device if kind == "Device" else spell_constant(value, kind)

    given = [print_operand(operand, buffer, size, constant) for operand in step.operands]
    keywords = [
        f"{keyword}={text}" for keyword, text in zip(step.keywords, given[positional:], strict=True) if text != "None"
    ]
    return f"torch.ops.{name.replace('::', '.')}({', '.join([*_positional(step, given[:positional]), *keywords])})"


def _positional(step: Call, given: Sequence[str]) -> list[str]:
    """Operands in order, without Nones at the end."""
    texts = list(given)
    while len(texts) > step.needed and texts[-1] == "None":
        texts.pop()
    return texts


def spell_constant(value: float | int | bool | str | None, kind: str = "") -> str:
    """Write a constant; `kind` tells a dtype from a string."""
    if isinstance(value, str):
        return f"torch.{value}" if kind in ("ScalarType", "Layout") else json.dumps(value)
    if isinstance(value, float):
        return spell_number(value)
    return repr(value)


def spell_number(value: float | int | bool) -> str:
    """Write a number as short as its value allows: a float tensor takes `2` for 2.0."""
    if isinstance(value, bool):
        return str(value)
    if value != value:
        return "torch.nan" if math.copysign(1, value) > 0 else "-torch.nan"
    if value in (float("inf"), float("-inf")):
        return "torch.inf" if value > 0 else "-torch.inf"
    is_negative_zero = value == 0 and str(value).startswith("-")
    return str(int(value)) if value == int(value) and abs(value) < 1e6 and not is_negative_zero else repr(value)
