"""Replace division by a value that is uniform over a row with multiplication, bit for bit."""

from __future__ import annotations

from dataclasses import replace

from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Apply, Cast, Expression, Literal, Local, apply, cast, rewrite_children
from opwright.ir.names.fresh import fresh
from opwright.ir.program import Binding, Kernel, Let, Program
from opwright.ir.rows import row_axes, varies, varying_locals
from opwright.passes.scalars.rewrite import map_kernels, rewrite_let


def reciprocals(program: Program) -> Program:
    """Compute a reciprocal in double precision once per row, and multiply at each point instead of dividing.

    Before: reduce total = sum of x;  y[i0, i1] = x / total
    After:  reduce total = sum of x;  let total_reciprocal = 1 / float64(total);  y[i0, i1] = float32(float64(x) * …)

    A quotient of two float32 numbers is never closer than 2^-49 of itself to where rounding to float32 turns over (but
    for subnormal ones), and the product is within 2^-52 of it: both round to the same number.
    """
    return map_kernels(program, lambda kernel: _with_reciprocals(kernel) if kernel.row_axes else kernel)


def _with_reciprocals(kernel: Kernel) -> Kernel:
    axes, varying = {axis.name for axis in row_axes(kernel)}, varying_locals(kernel)
    names = {let.name for let in kernel.lets}
    divisors: dict[str, Local] = {}

    def rewrite(expression: Expression) -> Expression:
        expression = rewrite_children(expression, rewrite)
        match expression:
            case Apply("divide", (x, Local(name, DType.FLOAT32))) if name not in varying and varies(x, axes, varying):
                if name not in divisors:
                    divisors[name] = Local(fresh(f"{name}_reciprocal", names), DType.FLOAT64)
                    names.add(divisors[name].name)
                return Cast(apply("multiply", cast(x, DType.FLOAT64), divisors[name]), DType.FLOAT32)
            case _:
                return expression

    lets = [rewrite_let(let, rewrite) for let in kernel.lets]
    stores = tuple(replace(store, value=rewrite(store.value)) for store in kernel.stores)
    placed: list[Binding] = []
    for let in lets:
        placed.append(let)
        if let.name in divisors:
            divisor = cast(Local(let.name, DType.FLOAT32), DType.FLOAT64)
            placed.append(Let(divisors[let.name].name, apply("divide", Literal(1.0, DType.FLOAT64), divisor)))
    return replace(kernel, lets=tuple(placed), stores=stores)
