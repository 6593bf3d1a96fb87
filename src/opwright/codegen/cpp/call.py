"""A call of a library operation of torch, through its dispatcher."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import assert_never

from opwright.codegen.cpp.expression import TORCH_TYPES
from opwright.codegen.cpp.size import spell_size
from opwright.ir import program as ir
from opwright.ir.call_traits import TAKES_ANY_STRIDES
from opwright.ir.expressions.dtype import DType


def emit_call(call: ir.Call) -> Iterable[str]:
    """The lines that call it and take its results; the launcher falls through if it raises."""
    if call.function == "aten::reshape":
        yield from _reshape(call)
        return
    slots = max(len(call.operands), len(call.targets))
    tensor = "pass" if call.function in TAKES_ANY_STRIDES else "pass_row_major"
    operands = ", ".join(_operand(operand, tensor) for operand in call.operands)
    if not call.targets:
        yield f"StableIValue checked[{slots}] = {{{operands}}};"
        yield f'if (!call("{call.function}", "{call.overload}", checked)) return false;'
        return
    stack = f"{call.targets[0].name}_stack"
    yield f"StableIValue {stack}[{slots}] = {{{operands}}};"
    yield f'if (!call("{call.function}", "{call.overload}", {stack})) return false;'
    for position, target in enumerate(call.targets):
        yield f"Tensor {target.name} = take_result({stack}[{position}]);"


def _reshape(call: ir.Call) -> Iterable[str]:
    """A view, as most are, needs no dispatcher."""
    (target,) = call.targets
    source, sizes = call.operands
    assert isinstance(source, ir.TensorOperand)
    assert isinstance(sizes, ir.ListOperand)
    wanted = [spell_size(size.value) for size in sizes.items if isinstance(size, ir.SizeOperand)]
    given = f"{{{', '.join(wanted)}}}" if wanted else "nullptr, 0"
    yield f"Tensor {target.name} = reshaped({source.buffer}, {given});"
    yield f"if (!{target.name}) return false;"


def _operand(operand: ir.Operand, tensor: str) -> str:
    match operand:
        case ir.TensorOperand(buffer):
            return f"{tensor}({buffer})"
        case ir.SizeOperand(value):
            return f"pass(Size({spell_size(value)}))"
        case ir.ListOperand(()):
            return "pass_empty_list()"
        case ir.ListOperand(items):
            return f"pass_list({{{', '.join(_operand(item, tensor) for item in items)}}})"
        case ir.OptionalOperand(None):
            return "pass_nothing()"
        case ir.OptionalOperand(item):
            assert item is not None
            return f"pass_optional({_operand(item, tensor)})"
        case ir.ConstantOperand(value, "ScalarType"):
            return f"pass_dtype({TORCH_TYPES[DType(value)]})"
        case ir.ConstantOperand(value, "bool"):
            return f"pass({'true' if value else 'false'})"
        case ir.ConstantOperand(value, "str"):
            return f"pass_string({json.dumps(value)})"
        case ir.ConstantOperand(value, "Device"):
            return f"pass_device({value})"
        case ir.ConstantOperand(value, "Layout" | "MemoryFormat"):
            return f"pass_choice({value})"
        case ir.ConstantOperand(value, _):
            return f"pass({float(value)!r})"
        case _:
            assert_never(operand)
