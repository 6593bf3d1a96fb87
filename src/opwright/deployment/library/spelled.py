"""A node of a reference's graph as C++: a call of PyTorch's operation through its dispatcher."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.fx import Node

from opwright.deployment.programs.dtypes import ATEN_DTYPES
from opwright.errors import NoKernel

_FORMATS = {
    torch.contiguous_format: "at::MemoryFormat::Contiguous",
    torch.preserve_format: "at::MemoryFormat::Preserve",
    torch.channels_last: "at::MemoryFormat::ChannelsLast",
    torch.channels_last_3d: "at::MemoryFormat::ChannelsLast3d",
}
_ON_SIZES: Mapping[Any, str] = {
    operator.add: "{} + {}",
    operator.sub: "{} - {}",
    operator.mul: "{} * {}",
    operator.floordiv: "reference::floor_divided({}, {})",
    operator.neg: "-{}",
}
_LISTS = {"int": "ints", "SymInt": "ints", "float": "floats", "bool": "bools", "Tensor": "tensors"}


def spell_dtype(dtype: torch.dtype) -> str:
    """A dtype of ATen."""
    return ATEN_DTYPES[dtype]


def spell_node(node: Node, names: Mapping[Node, str]) -> str | None:
    """The expression of a node; None for one that computes nothing.

    Args:
        node: A call of a function.
        names: The names of the nodes before it.

    Raises:
        NoKernel: If there is no C++ for it.
    """
    target = node.target
    if target is operator.getitem:
        return f"{names[node.args[0]]}.at({node.args[1]})"  # type: ignore[index]
    if target in _ON_SIZES:
        return f"Value(int64_t({_ON_SIZES[target].format(*(_integer(a, names) for a in node.args))}))"
    if target is torch.ops.aten.sym_size.int:
        return f"Value(reference::size_of({names[node.args[0]]}, {node.args[1]}))"  # type: ignore[index]
    if not isinstance(target, torch._ops.OpOverload) or target.namespace != "aten":
        if not node.users:
            return None  # a check of the trace
        raise NoKernel(f"there is no C++ for {target}")
    if target._schema.is_mutable and not node.users and target._schema.name.startswith("aten::_assert"):
        return None
    given = ", ".join(_arguments(node, target, names))
    called = f'reference::call("{target._schema.name}", "{target._schema.overload_name}", {{{given}}})'
    returns = target._schema.returns
    if len(returns) != 1:
        return called
    the = f"reference::the({called})"
    return f"reference::listed({the})" if isinstance(returns[0].type, torch.ListType) else the


def is_several(node: Node) -> bool:
    """Whether a node's value is a list of values, which `getitem` takes apart."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload):
        return False
    returns = target._schema.returns
    return len(returns) != 1 or isinstance(returns[0].type, torch.ListType)


def _integer(value: Any, names: Mapping[Node, str]) -> str:
    return f"{names[value]}.toInt()" if isinstance(value, Node) else f"int64_t({value})"


def _arguments(node: Node, target: torch._ops.OpOverload, names: Mapping[Node, str]) -> list[str]:
    """Those that are given, in the order of the schema, with a mark for each one between that is not."""
    spelled = []
    for position, argument in enumerate(target._schema.arguments):
        if position < len(node.args) and not argument.kwarg_only:
            spelled.append(_value(node.args[position], argument.real_type, names))
        elif argument.name in node.kwargs:
            spelled.append(_value(node.kwargs[argument.name], argument.real_type, names))
        else:
            spelled.append("reference::omitted")
    while spelled and spelled[-1] == "reference::omitted":
        spelled.pop()
    return spelled


def _value(value: Any, kind: Any, names: Mapping[Node, str]) -> str:
    if value is None:
        return "Value()"
    if isinstance(value, Node):
        is_number = not isinstance(value.meta.get("val"), torch.Tensor)
        wraps = is_number and isinstance(kind, torch.TensorType)
        return f"reference::wrapped({names[value]}.toScalar())" if wraps else names[value]
    kind = kind.getElementType() if isinstance(kind, torch.OptionalType) else kind
    if isinstance(value, list | tuple):
        return _list(value, kind.getElementType(), names)
    spell = _SPELLED.get(type(value))
    if spell is None:
        raise NoKernel(f"there is no C++ for the argument {value!r} of an operation")
    if isinstance(kind, torch.TensorType) and type(value) in (bool, int, float):
        return f"reference::wrapped({spell(value)})"
    if isinstance(kind, torch.FloatType) and isinstance(value, int):
        value = float(value)
        spell = _SPELLED[float]
    return f"Value({spell(value)})"


def _list(items: Any, element: Any, names: Mapping[Node, str]) -> str:
    if isinstance(element, torch.OptionalType):
        return f"reference::optional_tensors({{{', '.join(_value(i, element, names) for i in items)}}})"
    kind = _LISTS.get(str(element))
    if kind is None:
        raise NoKernel(f"there is no C++ for lists of {element}")
    if kind in ("floats", "bools"):
        return f"reference::{kind}({{{', '.join(_SPELLED[type(item)](item) for item in items)}}})"
    return f"reference::{kind}({{{', '.join(_value(item, element, names) for item in items)}}})"


def spell_float(value: float) -> str:
    """A double in C++."""
    if math.isnan(value):
        return "std::numeric_limits<double>::quiet_NaN()"
    if math.isinf(value):
        return f"{'-' if value < 0 else ''}std::numeric_limits<double>::infinity()"
    return repr(value)


def _int(value: int) -> str:
    return "std::numeric_limits<int64_t>::min()" if value == -(2**63) else f"int64_t({value})"


_SPELLED: Mapping[type, Callable[[Any], str]] = {
    bool: lambda value: "true" if value else "false",
    int: _int,
    float: spell_float,
    str: lambda value: f"std::string({json.dumps(value)})",
    torch.dtype: lambda value: f"static_cast<int64_t>({ATEN_DTYPES[value]})",
    torch.device: lambda value: f'c10::Device("{value}")',
    torch.layout: lambda value: "static_cast<int64_t>(at::kStrided)",
    torch.memory_format: lambda value: f"static_cast<int64_t>({_FORMATS[value]})",
}
