"""Symbolic floats that are rounded at every step, as Python rounds them.

Sympy uses real arithmetic: it turns `(a + 1.0) - 1.0` into `a`, `0.1 * (a + b)` into a sum of products, `a * -0.0` into
an integer 0. Here every sum and product is wrapped, so that sympy does not simplify across it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch.fx.experimental.sym_node import SymNode
from torch.utils._sympy.functions import Identity

from opwright.errors import NumberNeeded
from opwright.tracing.scalars.numbers import NumberTable
from opwright.tracing.torch_hooks.exchanged import Exchanged

_METHODS = ("add", "sub", "mul")
_PLAIN: dict[str, Callable[[Any, Any], Any]] = {name: getattr(SymNode, name) for name in _METHODS}


@contextmanager
def rounding_each_step(numbers: NumberTable) -> Iterator[None]:
    """On this thread, round arithmetic on numbers and sizes wherever Python does.

    Raises:
        NumberNeeded: From within, if the sign of a zero depends on a number that changes.
    """
    with _exchanged.on_this_thread(numbers):
        yield


def _rounding(name: str) -> Callable[[Any, Any], Any]:
    plain = _PLAIN[name]

    def computed(left: Any, right: Any) -> Any:
        result = plain(left, right)
        numbers = _exchanged.here()
        if numbers is None or result.pytype is not float:
            return result
        for zero, number in ((left, right), (right, left)):
            if zero.expr.is_zero and number.expr.free_symbols and not (name == "sub" and zero is right):
                _settle_sign(name, zero, number, numbers)
        if result.expr.is_number or result.expr.is_Atom or isinstance(result.expr, Identity):
            return result
        return SymNode(Identity(result.expr), result.shape_env, float, result.hint)

    return computed


def _settle_sign(name: str, zero: Any, number: Any, numbers: NumberTable) -> None:
    """Refuse a product with zero, whose sign depends on the number; a sum is the number, unless that is zero too."""
    is_size = numbers.is_size_of(number.expr)
    if is_size and (name != "mul" or math.copysign(1, zero.constant) * number.hint > 0):
        return  # of two positive numbers
    if name == "mul":
        raise numbers.refuse("the function multiplies a number by zero, which keeps its sign", number.expr)
    none = number.wrap_float(0.0) if number.pytype is float else number.wrap_int(0)
    if number.eq(none).guard_bool(__file__, 0):
        refusal = numbers.refuse("the function adds a number to zero", number.expr)
        raise NumberNeeded(refusal.fact, names=refusal.names, only_here=True)


_exchanged: Exchanged[NumberTable] = Exchanged({(SymNode, name): _rounding(name) for name in _METHODS})
