"""The distribution function of the normal distribution, which gelu and its gradient have, as one function.

erf(x/√2) + 1 needs less than an error function: its absolute accuracy is that of the sum. It is e^(-x²/2) times a
polynomial, and the gradient of gelu computes that exponential anyway: the two of them take 0.66 of the time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import sqrt

from opwright.ir.contents import needed
from opwright.ir.expressions.conversion import convert_number
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Apply, Expression, Literal, Local, rewrite_children
from opwright.ir.program import Kernel, Let, Reduce

_ROOT, _ROOT_OF_HALF = (convert_number(value, DType.FLOAT32).real for value in (sqrt(2), sqrt(0.5)))


def with_normal(kernel: Kernel) -> Kernel:
    """Write sums of one and an error function of x/√2 in float32 as `twice_normal_cdf(x)`.

    Also where the error function has a name, so that all kernels compute it alike: a gradient looks for the maximum
    that another kernel found.

    Before: inner = erf(x * 0.70710677);  y = x * 0.5 * (inner + 1)
    After:  y = x * 0.5 * twice_normal_cdf(x)
    """
    lets = {let.name: let.value for let in kernel.lets if isinstance(let, Let)}
    found = False

    def rewritten(value: Expression) -> Expression:
        nonlocal found
        if (x := _argument(value, lets)) is None:
            return rewrite_children(value, rewritten)
        found = True
        return Apply("twice_normal_cdf", (rewritten(x),), DType.FLOAT32)

    made = [replace(let, value=rewritten(let.value)) if isinstance(let, Let | Reduce) else let for let in kernel.lets]
    stores = tuple(replace(store, value=rewritten(store.value)) for store in kernel.stores)
    if not found:
        return kernel
    return replace(kernel, lets=tuple(needed(made, [store.value for store in stores])), stores=stores)


def _argument(value: Expression, lets: Mapping[str, Expression]) -> Expression | None:
    """The `x` of `erf(x/√2) + 1`; None for other expressions."""
    match value:
        case Apply("add", (first, second), DType.FLOAT32):
            one, function = (first, second) if isinstance(first, Literal) else (second, first)
            is_one = isinstance(one, Literal) and one.value == 1
        case _:
            return None
    match _resolved(function, lets):
        case Apply("erf", (scaled,)) if is_one:
            return _without_root(_resolved(scaled, lets))
        case _:
            return None


def _without_root(value: Expression) -> Expression | None:
    match value:
        case Apply("multiply", (x, Literal(factor))) | Apply("multiply", (Literal(factor), x)):
            return x if convert_number(factor.real, DType.FLOAT32).real == _ROOT_OF_HALF else None
        case Apply("divide", (x, Literal(divisor))):
            return x if convert_number(divisor.real, DType.FLOAT32).real == _ROOT else None
        case _:
            return None


def _resolved(value: Expression, lets: Mapping[str, Expression]) -> Expression:
    return lets.get(value.name, value) if isinstance(value, Local) else value
