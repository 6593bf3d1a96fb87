"""Real numbers made from sizes, such as the `1 / n` of a mean: between torch's symbolic floats and a Program.

real = Real(function, operands)     function: a row of ir/expressions/functions.py;  operand: Real | Integer | float
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from opwright.errors import NoKernel
from opwright.ir.expressions.integer import Integer
from opwright.tracing.hints import AS_ARGUMENT


@dataclass(frozen=True, slots=True)
class Real:
    """A function of sizes, computed in float64 when the sizes are known."""

    function: str
    operands: tuple[RealOperand, ...]


RealOperand = Real | Integer | float

# What sympy and torch call them → the function of a kernel.
_FUNCTIONS = {
    "Add": "add",
    "Mul": "multiply",
    "Pow": "pow",
    "FloatPow": "pow",
    "PowByNatural": "pow",
    "FloatTrueDiv": "divide",
    "IntTrueDiv": "divide",
    "Max": "maximum",
    "Min": "minimum",
    "Abs": "abs",
    **{f"OpaqueUnaryFn_{name}": name for name in ("sqrt", "exp", "log", "log2", "sin", "cos", "tanh", "floor", "ceil")},
}


def translate_real(expression: Any, integer: Callable[[Any], Integer]) -> RealOperand:
    """A sympy expression as a real number of sizes.

    Args:
        expression: What torch computed.
        integer: Translates the parts that are integers.

    Raises:
        NoKernel: If it uses a function that kernels do not know.
    """
    if expression.is_number:
        value = float(expression.expand(identity=True))  # torch wraps factors in Identity, also around a number
        return value if math.isfinite(value) else float(str(expression))
    name = type(expression).__name__
    if name == "ToFloat":
        return integer(expression.args[0])
    if name == "Identity":
        return translate_real(expression.args[0], integer)
    if expression.is_integer and name not in _FUNCTIONS:
        return integer(expression)
    if name not in _FUNCTIONS:
        raise NoKernel(f"the function computes with {expression}, a number made from sizes", hint=AS_ARGUMENT)
    operands = [translate_real(argument, integer) for argument in expression.args]
    result = operands[0]
    if len(operands) == 1:
        return Real(_FUNCTIONS[name], (result,))
    for operand in operands[1:]:
        result = Real(_FUNCTIONS[name], (result, operand))
    return result
