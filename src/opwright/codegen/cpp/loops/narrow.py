"""Functions of which a kernel needs less than the whole, as functions of their own.

The distribution function of the normal distribution, in gelu and its gradient: erf(x/√2) + 1 needs the absolute
accuracy of the sum. It is e^(-x²/2) times a polynomial, and the gradient of gelu has that exponential anyway, which
needs less than other exponentials. Exponentials that are at most 1, as in a softmax, and log1p of these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import sqrt

from opwright.ir.contents import needed
from opwright.ir.expressions.conversion import convert_number
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Apply, Expression, Literal, Local, rewrite_children
from opwright.ir.program import Kernel, Let, Reduce

_ROOT, _ROOT_OF_HALF = (convert_number(value, DType.FLOAT32).real for value in (sqrt(2), sqrt(0.5)))


def with_narrow_functions(kernel: Kernel) -> Kernel:
    """Write functions in float32 of which less is needed as functions of their own."""
    return _with_exponentials_to_one(_with_normal(kernel))


def _with_exponentials_to_one(kernel: Kernel) -> Kernel:
    """Write exponentials that are at most 1, and `log1p` of them, as functions for these alone.

    Before: log1p(exp(-abs(x)));  exp(x - largest)
    After:  log1p_to_one(exp_to_one(-abs(x)));  exp_to_one(x - largest)           largest = max(x) over the row
    """
    lets = {let.name: let.value for let in kernel.lets if isinstance(let, Let)}
    maxima = {let.name: let.value for let in kernel.lets if isinstance(let, Reduce) and let.function == "maximum"}

    def rewritten(value: Expression) -> Expression:
        match value:
            case Apply("exp" | "log1p" as function, (operand,), DType.FLOAT32) if is_narrow(function, operand):
                return Apply(f"{function}_to_one", (rewritten(operand),), DType.FLOAT32)
            case _:
                return rewrite_children(value, rewritten)

    def is_narrow(function: str, operand: Expression) -> bool:
        if function == "exp":
            return _is_to_zero(operand, lets, maxima)
        match _resolved(operand, lets):
            case Apply("exp", (exponent,)):
                return _is_to_zero(exponent, lets, maxima)
            case _:
                return False

    return _rewritten(kernel, rewritten)


def _is_to_zero(value: Expression, lets: Mapping[str, Expression], maxima: Mapping[str, Expression]) -> bool:
    """Whether a value is at most 0, or NaN: -|x|, -x², or a number of a row without the largest of them."""
    match _resolved(value, lets):
        case Apply("negate", (size,)):
            match _resolved(size, lets):
                case Apply("abs"):
                    return True
                case Apply("multiply", (x, y)):
                    return x == y
                case _:
                    return False
        case Apply("subtract", (x, Local(name))):
            return maxima.get(name) == x
        case _:
            return False


def _with_normal(kernel: Kernel) -> Kernel:
    """Write sums of one and an error function of x/√2 in float32 as `twice_normal_cdf(x)`.

    Also where the error function has a name, so that all kernels compute it alike: a gradient looks for the maximum
    that another kernel found.

    Before: inner = erf(x * 0.70710677);  y = x * 0.5 * (inner + 1) + exp(x * x * -0.5)
    After:  y = x * 0.5 * twice_normal_cdf(x) + normal_bell(x)
    """
    lets = {let.name: let.value for let in kernel.lets if isinstance(let, Let)}
    found: set[Expression] = set()

    def with_cdf(value: Expression) -> Expression:
        if (x := _argument(value, lets)) is None:
            return rewrite_children(value, with_cdf)
        found.add(x)
        return Apply("twice_normal_cdf", (with_cdf(x),), DType.FLOAT32)

    def with_bell(value: Expression) -> Expression:
        x = _of_bell(value, lets)
        return Apply("normal_bell", (x,), DType.FLOAT32) if x in found else rewrite_children(value, with_bell)

    changed = _rewritten(kernel, with_cdf)
    if not found:
        return kernel
    changed = _rewritten(changed, with_bell)
    return replace(changed, lets=tuple(needed(changed.lets, [store.value for store in changed.stores])))


def _rewritten(kernel: Kernel, rewrite: Callable[[Expression], Expression]) -> Kernel:
    lets = (replace(let, value=rewrite(let.value)) if isinstance(let, Let | Reduce) else let for let in kernel.lets)
    return replace(
        kernel, lets=tuple(lets), stores=tuple(replace(store, value=rewrite(store.value)) for store in kernel.stores)
    )


def _of_bell(value: Expression, lets: Mapping[str, Expression]) -> Expression | None:
    """The `x` of `exp(x * x * -0.5)`; None for other expressions."""
    match value:
        case Apply("exp", (halved,), DType.FLOAT32):
            pass
        case _:
            return None
    match _resolved(halved, lets):
        case Apply("multiply", (square, Literal(factor))) | Apply("multiply", (Literal(factor), square)):
            pass
        case _:
            return None
    match _resolved(square, lets):
        case Apply("multiply", (x, y)) if factor == -0.5 and x == y:
            return x
        case _:
            return None


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
