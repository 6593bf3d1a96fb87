"""Functions of floats among torch's symbolic numbers, of which sympy knows that they are real, and nothing else.

Torch has functions of its own for most of them. Of these sympy does not know so much: torch takes `cos(n) > cos(n)` to
be true. And its remainders are those of integers: `n % 1` is 0, and `n % 3` at most 2.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import sympy


class Opaque(sympy.Function):  # type: ignore[misc]
    """A function that is computed of numbers, as torch asks for the value of a call, and left alone otherwise.

    Attributes:
        compute: Computes it.
    """

    is_real = True
    compute: ClassVar[Callable[..., float]]

    @classmethod
    def eval(cls, *operands: sympy.Expr) -> sympy.Expr | None:
        """Compute it of numbers."""
        if not all(operand.is_Number for operand in operands):
            return None
        try:
            return sympy.Float(cls.compute(*map(float, operands)))
        except (ArithmeticError, ValueError):
            return None


def _opaque(name: str, compute: Callable[..., float], any_value: str) -> type[Opaque]:
    """A function; torch takes any value to be possible, as of another function, whose name it knows."""
    namespace: dict[str, Any] = {"compute": staticmethod(compute), "_torch_handler_name": any_value}
    return type(name, (Opaque,), namespace)


FloatMod = _opaque("FloatMod", operator.mod, any_value="pow")
OF_MATH: Mapping[str, type[Opaque]] = {
    name: _opaque(f"Float{name.capitalize()}", getattr(math, name), any_value="tan")
    for name in ("cos", "exp", "log", "log2", "sin", "sqrt", "tan", "tanh")
}
