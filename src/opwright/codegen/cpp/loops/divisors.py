"""Quotients of a whole row by one number: the reciprocal is computed once, and each quotient found by products."""

from __future__ import annotations

from dataclasses import replace
from math import frexp, isfinite

from opwright.codegen.cpp.expression import CPP_TYPES
from opwright.codegen.cpp.loops.prepared import Preparing
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Apply, Expression, Literal, Local, rewrite_children
from opwright.ir.names.fresh import fresh
from opwright.ir.program import Kernel, Let

DIVISOR = "divisor_of"


def with_divisors(kernel: Kernel) -> Kernel:
    """Prepare the numbers in float32 that elements of a row are divided by; without rows, constants alone.

    Before: x / total                                    `total` is the same for the row
    After:  x / total_divisor                            total_divisor = divisor_of(total)
    """
    return _Divisors(kernel).applied(kernel)


def is_divisor(value: Expression) -> bool:
    """Whether a value is what `x / total` needs of `total`, no number."""
    return isinstance(value, Apply) and value.function == DIVISOR


def local_type(value: Expression) -> str:
    """The type of a local variable with a value, in C++."""
    return "Divisor" if is_divisor(value) else CPP_TYPES[value.dtype]


class _Divisors(Preparing):
    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self._names = {let.name for let in kernel.lets}
        self._known: dict[Expression, Local] = {}

    def rewritten(self, value: Expression) -> Expression:
        """A value whose elements are divided by prepared numbers."""
        value = rewrite_children(value, self.rewritten)
        match value:
            case Apply("divide", (_, Literal(number)), DType.FLOAT32):
                return value if _is_power_of_two(number.real) else self._divided(value, inline=True)
            case Apply("divide", (x, by), DType.FLOAT32) if self.varies(x) and not self.varies(by):
                return self._divided(value, inline=False)
            case _:
                return value

    def _divided(self, quotient: Apply, *, inline: bool) -> Apply:
        x, by = quotient.operands
        prepared: Expression = Apply(DIVISOR, (by,), DType.FLOAT32)
        if not inline:
            if by not in self._known:
                name = fresh(f"{by.name}_divisor" if isinstance(by, Local) else "divisor", self._names)
                self._names.add(name)
                self._known[by] = Local(name, DType.FLOAT32)
                self.prepare(Let(name, prepared))
            prepared = self._known[by]
        return replace(quotient, operands=(x, prepared))


def _is_power_of_two(number: float) -> bool:
    """Whether compilers multiply by the reciprocal anyway; so it is with numbers that have none."""
    return not isfinite(number) or abs(frexp(number)[0]) in (0, 0.5)
