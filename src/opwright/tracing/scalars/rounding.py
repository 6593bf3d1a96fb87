"""Symbolic floats that are rounded at every step, as Python rounds them.

Sympy uses real arithmetic: it turns `(a + 1.0) - 1.0` into `a`, `0.1 * (a + b)` into a sum of products, `a * -0.0`
into an integer 0. Here every sum and product is wrapped, so that sympy does not simplify across it. Remainders
are our own (`opaque.py`).

What raises for some numbers, as a division by zero does, is demanded, whether or not anything uses it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import sympy
from torch.fx.experimental.sym_node import SymNode
from torch.utils._sympy.functions import Identity

from opwright.errors import NumberNeeded
from opwright.tracing.scalars.numbers import NumberTable
from opwright.tracing.scalars.opaque import FloatMod
from opwright.tracing.torch_hooks.exchanged import Exchanged

_WRAPPED = ("add", "sub", "mul")
_PYTHON: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "float_truediv": operator.truediv,
    "int_truediv": operator.truediv,
    "neg": operator.neg,
}
_RAISING = (
    "float_truediv", "int_truediv", "mod", "floordiv", "int_floordiv", "pow", "float_pow", "pow_by_natural", "floor",
    "ceil", "trunc", "round", "lshift", "rshift", "bitwise_lshift", "bitwise_rshift",
)  # fmt: skip
_DIVIDING = ("float_truediv", "int_truediv", "mod", "floordiv", "int_floordiv")
_PLAIN: dict[str, Callable[..., Any]] = {
    name: getattr(SymNode, name) for name in {*_PYTHON, *_RAISING} if hasattr(SymNode, name)
}


@contextmanager
def rounding_each_step(numbers: NumberTable) -> Iterator[None]:
    """On this thread, round arithmetic on numbers and sizes wherever Python does.

    Raises:
        NumberNeeded: From within, if the sign of a zero depends on a number that changes.
    """
    with _exchanged.on_this_thread(numbers):
        yield


def _demanding(name: str) -> Callable[..., Any]:
    computed = _rounding(name) if name in _PYTHON else _remainder() if name == "mod" else _PLAIN[name]
    if name not in _RAISING:
        return computed

    def demanded(*operands: Any) -> Any:
        result = computed(*operands)
        if (numbers := _exchanged.here()) is not None:
            numbers.demand(result.expr)
            if name in _DIVIDING and not operands[1].expr.free_symbols <= result.expr.free_symbols:
                numbers.demand(FloatMod(sympy.Integer(1), operands[1].expr))  # `n % n` is no 0 where n is
        return result

    return demanded


def _rounding(name: str) -> Callable[..., Any]:
    plain = _PLAIN[name]

    def computed(*operands: Any) -> Any:
        result = plain(*operands)
        numbers = _exchanged.here()
        if numbers is None or result.pytype is not float:
            return result
        for place, (zero, number) in enumerate(zip(operands, reversed(operands), strict=True)):
            if zero.expr.is_zero and number.expr.free_symbols and not (place and name.endswith("truediv")):
                _settle_sign(name, zero, number, numbers, subtracted=place == 1 and name == "sub")
        if result.expr.is_number:  # zeros of sympy have no sign
            return result.wrap_float(float(_PYTHON[name](*(operand.hint for operand in operands))))
        if name not in _WRAPPED or result.expr.is_Atom or isinstance(result.expr, Identity):
            return result
        return SymNode(Identity(result.expr), result.shape_env, float, result.hint)

    return computed


def _settle_sign(name: str, zero: Any, number: Any, numbers: NumberTable, *, subtracted: bool) -> None:
    """Refuse what sympy, whose zero has no sign, would give another sign, or the sign that it has for these sizes only.

    A sum with -0.0 is the number itself, and so is what remains if 0.0 is subtracted; another sum is, unless the number
    is zero too. 0.0 is divided as it stands. A product with zero is zero.
    """
    is_sum, sign = name in ("add", "sub"), math.copysign(1, zero.hint)
    if sign == (-1 if is_sum and not subtracted else 1) and name != "mul":
        return
    if numbers.is_size_of(number.expr) and (is_sum or (name == "mul" and sign * number.hint > 0)):
        return  # of two positive numbers
    if not is_sum:
        raise numbers.refuse("the function multiplies or divides zero, which keeps its sign", number.expr)
    none = number.wrap_float(0.0) if number.pytype is float else number.wrap_int(0)
    if number.eq(none).guard_bool(__file__, 0):
        refusal = numbers.refuse("the function adds a number to zero", number.expr)
        raise NumberNeeded(refusal.fact, names=refusal.names, only_here=True)


def _remainder() -> Callable[..., Any]:
    plain = _PLAIN["mod"]

    def computed(left: Any, right: Any) -> Any:
        if _exchanged.here() is None or float not in (left.pytype, right.pytype):
            return plain(left, right)
        value = left.hint % right.hint
        if left.expr.is_number and right.expr.is_number:
            return left.wrap_float(value)
        return SymNode(FloatMod(left.expr, right.expr), left.shape_env, float, value)

    return computed


_exchanged: Exchanged[NumberTable] = Exchanged({(SymNode, name): _demanding(name) for name in _PLAIN})
