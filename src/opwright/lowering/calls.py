"""Library calls: a torch operation with all operands of its schema, in order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Node

from opwright.errors import NoKernel
from opwright.ir.expressions.integer import Integer, integer
from opwright.ir.program import (
    Buffer,
    Call,
    ConstantOperand,
    ListOperand,
    Operand,
    OptionalOperand,
    SizeOperand,
    TensorOperand,
)

_KINDS_BY_NAME = {torch.dtype: "ScalarType", torch.layout: "Layout", torch.memory_format: "MemoryFormat"}


def named_arguments(func: OpOverload, node: Node) -> dict[str, Any]:
    """The arguments a node gives, by the names of the schema; those left to defaults are absent."""
    names = [argument.name for argument in func._schema.arguments]
    return dict(zip(names, node.args, strict=False)) | dict(node.kwargs)


def call_of(
    func: OpOverload,
    given: Mapping[str, Any],
    buffers: Mapping[Node, Buffer],
    targets: tuple[Buffer, ...],
    *,
    may_raise: bool = False,
) -> Call:
    """A call of an operation, from what is given by the names of its schema; defaults are filled in.

    Raises:
        NoKernel: If an operand cannot be passed through torch's stable C interface.
    """
    arguments = func._schema.arguments
    operands = tuple(
        _operand(func, str(argument.type), given.get(argument.name, argument.default_value), buffers)
        for argument in arguments
    )
    keywords = tuple(argument.name for argument in arguments if argument.kwarg_only)
    needed = sum(not (argument.has_default_value() or argument.kwarg_only) for argument in arguments)
    return Call(targets, func._schema.name, func._schema.overload_name, operands, may_raise, keywords, needed)


def _operand(func: OpOverload, kind: str, value: Any, buffers: Mapping[Node, Buffer]) -> Operand:
    if kind.startswith("Optional["):
        inner = kind.removeprefix("Optional[").removesuffix("]")
        return OptionalOperand(None if value is None else _operand(func, inner, value, buffers))
    if isinstance(value, Node | Buffer):
        return TensorOperand((buffers[value] if isinstance(value, Node) else value).name)
    if isinstance(value, (list, tuple)):
        inner = kind.removeprefix("List[").removesuffix("]")
        return ListOperand(tuple(_operand(func, inner, member, buffers) for member in value))
    if isinstance(value, Integer) and kind in ("int", "SymInt"):
        return SizeOperand(value)
    if isinstance(value, bool) and kind == "bool":
        return ConstantOperand(value, "bool")
    if isinstance(value, int) and kind in ("int", "SymInt"):
        return SizeOperand(integer(value))
    if isinstance(value, (int, float)) and kind == "float":
        return ConstantOperand(float(value), "float")
    if isinstance(value, str) and kind == "str":
        return ConstantOperand(value, "str")
    if isinstance(value, torch.device) and value.type == "cpu":
        return ConstantOperand("cpu", "Device")
    if isinstance(value, torch.layout) and value is not torch.strided:
        fact = f"{func.name()} makes a tensor that is {str(value).removeprefix('torch.')}, which kernels do not take"
        raise NoKernel(
            fact, hint="keep it outside of the operator; gradients are dense without sparse= and sparse_grad="
        )
    if (named := _KINDS_BY_NAME.get(type(value))) is not None:
        return ConstantOperand(str(value).removeprefix("torch."), named)
    raise NoKernel(
        f"{func.name()} takes a {kind}, which torch's stable C interface does not pass",
        hint="keep this operation outside of the operator",
    )
