"""Let the library add the bias of a linear layer, where that is all that a kernel would do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from opwright.ir.contents import count_reads, kernels, reads_of
from opwright.ir.expressions.expression import Apply, Expression, Load, Local
from opwright.ir.expressions.integer import symbol
from opwright.ir.names.fresh import fresh
from opwright.ir.program import (
    Buffer,
    Call,
    Kernel,
    Let,
    Operand,
    OptionalOperand,
    Program,
    Step,
    TensorOperand,
    View,
    buffers_of,
    view_axes,
)
from opwright.passes.buffers.return_views import keeps_order, seen_by

_PRODUCT = "aten::mm"


def bias_in_product(program: Program) -> Program:
    """Multiply and add in one library operation, unless the sum was fused with what uses it.

    Before: view t = w[d1, d0];  call p = aten::mm(x, t);  kernel y[i0, i1] = p[i0, i1] + b[i1]
    After:  view t = w[d1, d0];  call y = aten::linear(x, w, b)
    """
    buffers, reads = buffers_of(program), count_reads(program)
    products = {s.targets[0].name: s for s in program.steps if isinstance(s, Call) and s.function == _PRODUCT}
    loaded = {name for kernel in kernels(program) for name in reads_of(kernel)}
    steps: list[Step] = []
    for step in program.steps:
        found = _sum(step, products) if isinstance(step, Kernel) and step.stores[0].buffer not in loaded else None
        if found is None or reads[found[0].source] != 1 or not keeps_order(found[0], buffers[found[0].source].shape):
            steps.append(step)
            continue
        view, bias = found
        product = products[view.source]
        steps.remove(product)  # the bias may be computed after it
        is_product = view.indices == tuple(map(symbol, view_axes(2)))
        made = replace(product, targets=(view.target,)) if is_product else product
        steps += [*_with_bias(made, bias, program, buffers), *([] if is_product else [view])]
    return replace(program, steps=tuple(steps))


def _sum(kernel: Kernel, products: Mapping[str, Call]) -> tuple[View, str] | None:
    """What a kernel adds: a view of a product that its target is in, and a buffer with an element for each column."""
    lets = {let.name: let.value for let in kernel.lets if isinstance(let, Let)}
    match kernel.stores, _value(kernel.stores[0].value, lets):
        case (store,), Apply("add", (left, right), _) if len(lets) == len(kernel.lets) and store.reduction is None:
            product, bias = _value(left, lets), _value(right, lets)
        case _:
            return None
    if not (isinstance(product, Load) and isinstance(bias, Load) and product.buffer in products):
        return None
    view = seen_by(kernel, product)
    column = product.indices[1]
    return (view, bias.buffer) if view is not None and bias.indices == (column,) else None


def _value(value: Expression, lets: Mapping[str, Expression]) -> Expression:
    while isinstance(value, Local) and value.name in lets:
        value = lets[value.name]
    return value


def _with_bias(product: Call, bias: str, program: Program, buffers: dict[str, Buffer]) -> list[Step]:
    """The library operation, which takes the right factor transposed."""
    left, right = product.operands
    assert isinstance(right, TensorOperand)
    rows, columns = map(symbol, view_axes(2))
    for step in program.steps:
        if isinstance(step, View) and step.target.name == right.buffer and step.indices == (columns, rows):
            return [_linear(product, left, step.source, bias)]
    source = buffers[right.buffer]
    target = Buffer(fresh(f"{right.buffer}_transposed", buffers), source.dtype, source.shape[::-1])
    buffers[target.name] = target
    return [View(target, right.buffer, (columns, rows)), _linear(product, left, target.name, bias)]


def _linear(product: Call, left: Operand, weight: str, bias: str) -> Call:
    return replace(
        product,
        function="aten::linear",
        operands=(left, TensorOperand(weight), OptionalOperand(TensorOperand(bias))),
    )
