"""Programs as text: compact and deterministic, for `explain()` and for goldens.

    program scale(x: float32[x_size_0]) sizes () -> (y)
      guard x_size_0 >= 2
      view v: float32[x_size_0 - 1] = x[d0 + 1]
      kernel y over i0 < x_size_0 - 1
        new y: float32[x_size_0 - 1]
        let half = v[i0] * 0.5
        y[i0] = tanh(half)

The steps of a case stand below a line such as `case x_size_1 = 3`. A `new` line is a buffer that the kernel declares.
The `spoken` flag of a name is not printed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import indent
from typing import assert_never

from opwright.ir import program as ir
from opwright.ir.expressions.conversion import Scalar, shortest
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Apply, Cast, Expression, Literal, Load, Local
from opwright.ir.expressions.functions import FUNCTIONS
from opwright.ir.expressions.integer import Integer
from opwright.ir.rows import row_axes

_SUM, _PRODUCT, _PREFIX, _TIGHTEST = 2, 3, 4, 5
_TRUTH = ("logical_and", "logical_or", "logical_xor")
_COMPARISONS = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")

# How tightly each template binds. Truth and comparison share a level, since Python and C++ order them differently.
BINDING: dict[str, int] = {
    "where": 0,
    **dict.fromkeys((*_TRUTH, *_COMPARISONS), 1),
    **dict.fromkeys(("add", "subtract"), _SUM),
    **dict.fromkeys(("multiply", "divide", "reciprocal"), _PRODUCT),
    **dict.fromkeys(("negate", "logical_not"), _PREFIX),
}


def print_program(program: ir.Program) -> str:
    """Write a Program, one line for each guard, step, let and store."""
    inputs = ", ".join(print_buffer(b) + _order(program.input_orders, p) for p, b in enumerate(program.inputs))
    outputs = ", ".join(name + _order(program.output_orders, p) for p, name in enumerate(program.outputs))
    header = f"program {program.name}({inputs}) sizes ({', '.join(program.sizes)}) -> ({outputs})"
    body = [*(f"guard {guard}" for guard in program.guards), *map(print_step, program.steps)]
    for case in program.cases:
        sizes = ", ".join(f"{name} = {size}" for name, size in case.sizes)
        body += [f"case {sizes}", *(indent(print_step(step), "  ") for step in case.steps)]
    return "\n".join([header, *(indent(part, "  ") for part in body)])


def _order(orders: Sequence[tuple[int, ...]], position: int) -> str:
    return f" of dimensions {[*orders[position]]}" if orders and orders[position] else ""


def print_buffer(buffer: ir.Buffer) -> str:
    """Write a declaration, e.g. `gates: float32[gates_size_0, 4]`."""
    return f"{buffer.name}: {buffer.dtype.value}{_bracket(buffer.shape)}"


def print_step(step: ir.Step) -> str:
    """Write a step; a kernel takes several lines."""
    match step:
        case ir.Kernel():
            return _kernel(step)
        case ir.View(target, source, indices):
            return f"view {print_buffer(target)} = {source}{_bracket(indices)}"
        case ir.Number(target, value):
            return f"number {print_buffer(target)} = {value}"
        case ir.Iota(target):
            return f"range {print_buffer(target)}"
        case ir.Call(targets, function, overload, operands):
            called = f"{function}.{overload}" if overload else function
            results, given = ", ".join(map(print_buffer, targets)), ", ".join(map(print_operand, operands))
            return f"call {results} = {called}({given})"
        case ir.Check(buffer, shape, indices, low, high):
            return f"check {low} <= {buffer}{_bracket(indices)} < {high} over {_bracket(shape)}"
        case _:
            assert_never(step)


def print_statement(statement: ir.Binding | ir.Store) -> str:
    """Write one line of a kernel."""
    match statement:
        case ir.Let(name, value):
            return f"let {name} = {print_expression(value)}"
        case ir.Reduce(name, function, value):
            return f"reduce {name} = {function} of {print_expression(value)}"
        case ir.Gather(name, value, extent, from_end):
            return f"index {name} < {extent} = {print_expression(value)}{' from either end' if from_end else ''}"
        case ir.Store(buffer, indices, value, None):
            return f"{buffer}{_bracket(indices)} = {print_expression(value)}"
        case ir.Store(buffer, indices, value, reduction):
            return f"{buffer}{_bracket(indices)} = {reduction} of {print_expression(value)}"
        case _:
            assert_never(statement)


def print_expression(expression: Expression) -> str:
    """Write a scalar expression, with no more parentheses than a reader needs."""
    match expression:
        case Literal(value, dtype):
            return _literal(value, dtype)
        case Load(buffer, indices):
            return f"{buffer}{_bracket(indices)}"
        case Local(name):
            return name
        case Apply():
            return _apply(expression)
        case Cast(operand, dtype):
            return f"{dtype.value}({print_expression(operand)})"
        case _:
            assert_never(expression)


def _kernel(kernel: ir.Kernel) -> str:
    axes = ", ".join(f"{axis.name} < {axis.extent}" for axis in kernel.axes)
    header = f"kernel {kernel.name} over {axes}" if axes else f"kernel {kernel.name}"
    if kernel.row_axes:
        kind = "short rows" if kernel.short_rows else "rows"
        header += f", {kind} of {', '.join(axis.name for axis in row_axes(kernel))}"
    declarations = [f"new {print_buffer(target)}" for target in kernel.targets]
    lets, stores = map(print_statement, kernel.lets), map(print_statement, kernel.stores)
    return "\n  ".join([header, *declarations, *lets, *stores])


def print_operand(
    operand: ir.Operand,
    buffer: Callable[[str], str] = str,
    size: Callable[[Integer], str] = str,
    constant: Callable[[float | bool | str, str], str] = lambda value, kind: str(value),
) -> str:
    """Write an operand of a call; the other arguments say how what is in it is written."""
    match operand:
        case ir.TensorOperand(name):
            return buffer(name)
        case ir.SizeOperand(value):
            return size(value)
        case ir.ListOperand(items):
            return f"[{', '.join(print_operand(item, buffer, size, constant) for item in items)}]"
        case ir.OptionalOperand(item):
            return "None" if item is None else print_operand(item, buffer, size, constant)
        case ir.ConstantOperand(value, kind):
            return constant(value, kind)
        case _:
            assert_never(operand)


def _literal(value: Scalar, dtype: DType) -> str:
    if dtype is DType.BOOL:
        return str(bool(value))
    if dtype.is_complex:
        return f"complex({_literal(value.real, dtype.real)}, {_literal(value.imag, dtype.real)})"
    return shortest(value.real, dtype) if dtype.is_floating else str(int(value.real))


def _apply(expression: Apply) -> str:
    row = FUNCTIONS.get(expression.function)
    template = row.template if row and row.arity == len(expression.operands) else None
    if template is None:
        return f"{expression.function}({', '.join(map(print_expression, expression.operands))})"
    leads = template.startswith("{}")
    parts = []
    for position, operand in enumerate(expression.operands):
        text = print_expression(operand)
        bare = _binds_tighter(operand, expression) or (position == 0 and leads and _continues(operand, expression))
        parts.append(text if bare else f"({text})")
    return template.format(*parts)


def _binds_tighter(operand: Expression, around: Apply) -> bool:
    return _binding(operand) > BINDING[around.function]


def _continues(operand: Expression, around: Apply) -> bool:
    """Whether `operand` is the beginning of a chain such as a + b - c, read from the left."""
    if not isinstance(operand, Apply) or _binding(operand) != BINDING[around.function]:
        return False
    if around.function in _TRUTH:
        return operand.function == around.function
    return BINDING[around.function] in (_SUM, _PRODUCT)


def _binding(expression: Expression) -> int:
    match expression:
        case Apply(function):
            return BINDING.get(function, _TIGHTEST)
        case Literal(value, dtype) if _literal(value, dtype).startswith("-"):
            return _PREFIX
        case _:
            return _TIGHTEST


def _bracket(members: tuple[Integer, ...]) -> str:
    return f"[{', '.join(map(str, members))}]"
