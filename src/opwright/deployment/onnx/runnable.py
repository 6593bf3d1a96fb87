"""Graph → a torch module that computes the same, and takes the numbers that vary as tensors without dimensions.

Exporters read modules. In a Graph, sizes are expressions of ours, and a node may stand for a Python number, which
promotes and rounds as Python numbers do: in the dtype that the operation computes in, half types in float32.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch._ops import OpOverload
from torch.fx import Node
from torch.utils._pytree import tree_map

from opwright.errors import NoKernel
from opwright.ir.expressions.integer import Greatest, Integer, Quotient, Remainder, Symbol
from opwright.ir.program import size_symbol
from opwright.tracing.graph import Graph
from opwright.tracing.interface.results import Result
from opwright.tracing.scalars.numbers import NUMBER
from opwright.tracing.scalars.reals import Real, RealOperand

aten = torch.ops.aten

# What takes a Python number → the same for a tensor.
_WITH_TENSORS: Mapping[OpOverload, OpOverload] = {
    aten.pow.Tensor_Scalar: aten.pow.Tensor_Tensor,
    aten.pow.Scalar: aten.pow.Tensor_Tensor,
    aten.clamp.default: aten.clamp.Tensor,
    **{
        getattr(packet, name): packet.Tensor
        for packet in (
            *(aten.add, aten.sub, aten.mul, aten.div, aten.remainder, aten.fmod),
            *(aten.eq, aten.ne, aten.lt, aten.le, aten.gt, aten.ge),
        )
        for name in packet.overloads()
        if name == "Scalar"
    },
}
_ON_TENSORS = {
    *_WITH_TENSORS.values(),
    *(aten.where.self, aten.maximum.default, aten.minimum.default, aten.atan2.default, aten.hypot.default),
    *(aten.copysign.Tensor, aten.div.Tensor_mode, aten.floor_divide.default),
}
_TRUE_DIVISIONS = (aten.div.Tensor, aten.div.Scalar)
_ON_REALS: Mapping[str, Any] = {
    "add": operator.add,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "pow": operator.pow,
    "abs": abs,
    "maximum": torch.sym_max,
    "minimum": torch.sym_min,
    "sqrt": torch.sym_sqrt,
}
_HALF = (torch.float16, torch.bfloat16)


class Runnable(nn.Module):
    """A Graph as a module; `forward` takes its inputs in their order, and returns a tuple of its results.

    Args:
        graph: The Graph.
        result: What its reference returns: tensors that it computes, each once.

    Raises:
        NoKernel: In `forward`, if an operation takes a number that varies in a way that is not known here.
    """

    def __init__(self, graph: Graph, result: Result) -> None:
        super().__init__()
        if not result.is_plain:
            raise NoKernel("it returns something else than tensors that it computes, each once")
        self._graph = graph
        self._outputs = graph.outputs

    def forward(self, *given: Tensor) -> tuple[Tensor, ...]:
        """Run the nodes in their order."""
        values: dict[Node, Any] = {}
        sizes: dict[str, Any] = {}
        for each, tensor in zip(self._graph.inputs, given, strict=True):
            values[each.node] = tensor
            sizes |= {str(size_symbol(each.name, place)): size for place, size in enumerate(tensor.shape)}
        for node in self._graph.fx.nodes:
            if node.op == "call_function" and _is_needed(node, self._outputs):
                values[node] = _run(node, values, sizes)
        return tuple(values[node] for node in self._outputs)


def _is_needed(node: Node, outputs: Sequence[Node]) -> bool:
    return bool(node.users) or node in outputs


def _run(node: Node, values: Mapping[Node, Any], sizes: Mapping[str, Any]) -> Any:
    def value_in(argument: Any) -> Any:
        if isinstance(argument, Node):
            return values[argument]
        if isinstance(argument, Integer):
            return _size(argument, sizes)
        if isinstance(argument, Real):
            return _real(argument, sizes)
        return argument

    is_leaf = lambda each: isinstance(each, Node | Integer | Real)  # noqa: E731
    args, kwargs = tree_map(value_in, (list(node.args), dict(node.kwargs)), is_leaf=is_leaf)
    numbers = [source for source in node.all_input_nodes if NUMBER in source.meta]
    if numbers and not all(_is_number(each) for each in (node, *node.all_input_nodes)):
        return _run_on_numbers(node, args, kwargs)
    return _called(node.target, args)(*args, **kwargs)


def _called(target: Any, args: Sequence[Any]) -> Any:
    """The operation, or the function of torch that takes a Python number for a tensor, which exporters understand."""
    if not isinstance(target, OpOverload):
        return target
    if target is aten.empty_permuted.default:  # unknown to ONNX, where memory has one order
        return lambda size, order, **how: aten.empty.memory_format(size, **how)
    if target in (aten.amax.default, aten.amin.default) and len(args) == 1:  # of all dimensions, which ONNX wants named
        return lambda tensor: target(tensor, list(range(tensor.dim()))) if tensor.dim() else tensor.clone()
    takes = target._schema.arguments
    if not any(isinstance(each, int | float) and str(a.type) == "Tensor" for each, a in zip(args, takes, strict=False)):
        return target
    name = target.overloadpacket.__name__
    if not hasattr(torch, name):
        raise NoKernel(f"{target} takes a number for a tensor")
    return getattr(torch, name)


def _run_on_numbers(node: Node, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Run an operation some of whose operands are numbers that vary."""
    result: torch.dtype = node.meta["val"].dtype
    target: Any = node.target
    if target is aten.full.default:
        return aten.expand.default(args[1].to(result), args[0])
    if target in (aten.scalar_tensor.default, aten._to_copy.default):
        return args[0].to(result)
    target = _WITH_TENSORS.get(target, target)
    if target not in _ON_TENSORS:
        raise NoKernel(f"{target} takes a number that varies")
    first = 1 if target is aten.where.self else 0
    dtype = _computes_in(node, first)
    operands = [_converted(each, dtype) if position >= first else each for position, each in enumerate(args)]
    given = {key: _converted(each, dtype) if key in ("min", "max", "alpha") else each for key, each in kwargs.items()}
    if given.pop("alpha", None) is not None:
        raise NoKernel(f"{target} takes a factor")
    computed = target(*operands, **given)
    return computed if computed.dtype is result else computed.to(result)


def _is_number(node: Node) -> bool:
    """Whether it holds a Python number, or a truth value: arithmetic on these is in their own dtypes."""
    value = node.meta["val"]
    return value.dim() == 0 and value.dtype in (torch.float64, torch.int64, torch.bool)


def _computes_in(node: Node, first: int) -> torch.dtype:
    """The dtype of an operation on tensors and numbers, by torch's rules of promotion.

    Asking torch for it would be one more operation of whatever traces this.
    """
    operands = [each for each in (*node.args[first:], *node.kwargs.values()) if each is not None]
    tensors = [each for each in operands if isinstance(each, Node) and NUMBER not in each.meta]
    plain = [1.0 if isinstance(each, Real) else 1 if isinstance(each, Integer) else each for each in operands]
    numbers = [each.meta[NUMBER] if isinstance(each, Node) else each for each in plain if each not in tensors]
    numbers = [each for each in numbers if isinstance(each, int | float)]
    dtypes = {each.meta["val"].dtype for each in tensors}
    if len(dtypes) != 1:
        raise NoKernel("it mixes a number that varies with tensors of several dtypes")
    dtype: torch.dtype = dtypes.pop()
    if not dtype.is_floating_point and (node.target in _TRUE_DIVISIONS or any(isinstance(n, float) for n in numbers)):
        return torch.get_default_dtype()
    if dtype is torch.bool:
        return torch.int64
    return torch.float32 if dtype in _HALF else dtype


def _converted(value: Any, dtype: torch.dtype) -> Any:
    if isinstance(value, Tensor):
        return value if value.dtype is dtype else value.to(dtype)
    if isinstance(value, int | float):
        return torch.full((), value, dtype=dtype)
    return value


def _real(number: RealOperand, sizes: Mapping[str, Any]) -> Any:
    """A real number made from sizes, which may be symbolic ones of torch."""
    if isinstance(number, Integer):
        return _size(number, sizes)
    if not isinstance(number, Real):
        return number
    if number.function not in _ON_REALS:
        raise NoKernel(f"it computes the {number.function} of a number made from sizes")
    return _ON_REALS[number.function](*(_real(operand, sizes) for operand in number.operands))


def _size(expression: Integer, sizes: Mapping[str, Any]) -> Any:
    """An integer expression of sizes, which may be symbolic ones of torch."""
    total: Any = 0
    for monomial, coefficient in expression.terms:
        term: Any = coefficient
        for atom in monomial:
            match atom:
                case Symbol(name):
                    term = term * sizes[name]
                case Quotient(dividend, divisor):
                    term = term * (_size(dividend, sizes) // _size(divisor, sizes))
                case Remainder(dividend, divisor):
                    term = term * (_size(dividend, sizes) % _size(divisor, sizes))
                case Greatest(left, right):
                    term = term * torch.sym_max(_size(left, sizes), _size(right, sizes))
        total = total + term
    return total
