"""An operator's call → the ONNX function that it calls: standard operations, with its numbers as attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir
import torch
from torch.fx import Node

from opwright.deployment.onnx.attributes import attributes_of
from opwright.deployment.onnx.exporter import to_onnx
from opwright.deployment.onnx.traced import Traced, candidates
from opwright.deployment.programs.exported import OperatorCall
from opwright.errors import DeploymentUnsupported, NoKernel, OpwrightError
from opwright.ir.names.fresh import fresh
from opwright.tracing.interface.signature import place_of


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """What an operator computes for one kind of arguments.

    Attributes:
        graph: Standard operations; its inputs are the tensors among the arguments.
        attributes: The numbers and words that it is called with, as attributes of the node, by parameter.
        needed: The names of those that the graph refers to.
        opsets: The versions of the domains of its operations.
        functions: ONNX functions that its nodes call.
    """

    graph: ir.Graph
    attributes: Mapping[str, ir.Attr]
    needed: tuple[str, ...]
    opsets: Mapping[str, int]
    functions: tuple[ir.Function, ...]


def body_of(call: OperatorCall, opset: int) -> Body:
    """Make the body of the function for a call.

    Args:
        call: The call.
        opset: The version of ONNX's operators that the model has.

    Raises:
        DeploymentUnsupported: If ONNX has no operations for what the operator does.
    """
    refusal: OpwrightError | None = None
    for traced in candidates(call):
        try:
            return _body(call, traced, opset)
        except (NoKernel, DeploymentUnsupported) as error:
            refusal = error
    assert refusal is not None
    raise DeploymentUnsupported(
        f"{call.operator.name}: {refusal.fact}",
        place=refusal.place or place_of(call.operator.reference),
        hint=refusal.hint,
    ) from refusal


def _body(call: OperatorCall, traced: Traced, opset: int) -> Body:
    program = _exported(call, traced)
    model = to_onnx(program, {}, opset)
    graph: ir.Graph = model.graph
    attributes = attributes_of(call)
    needed = _open_numbers(graph, traced, attributes)
    _name_inputs(graph, [traced.names[place] for place in traced.taken if place not in traced.numbers])
    _keep_constants(graph)
    return Body(graph, attributes, needed, dict(graph.opset_imports), tuple(model.functions.values()))


def _exported(call: OperatorCall, traced: Traced) -> Any:
    """The module, exported for the sizes that the program has."""
    given = [torch.as_tensor(call.arguments[place]) for place in traced.taken]
    given = [
        torch.full(
            (), call.arguments[place], dtype=torch.int64 if type(call.arguments[place]) is int else torch.float64
        )
        if place in traced.numbers
        else tensor
        for place, tensor in zip(traced.taken, given, strict=True)
    ]
    shapes = tuple(_dynamic(shape) for shape in _shapes(call, traced))
    try:
        with torch.no_grad():
            program = torch.export.export(traced.module, tuple(given), dynamic_shapes=(shapes,), strict=False)
    except OpwrightError:
        raise
    except Exception as error:
        said = " ".join(str(error).split())[:300]
        raise DeploymentUnsupported(f"torch.export cannot export it: {type(error).__name__}: {said}") from error
    placeholders = [node for node in program.graph.nodes if node.op == "placeholder"][-len(given) :]
    for node, shape in zip(placeholders, shapes, strict=True):
        fixed = [place for place in shape or () if isinstance(node.meta["val"].shape[place], int)]
        if fixed:
            raise DeploymentUnsupported(
                f"it works for one size of dimension {fixed[0]} of an argument, which may change in the model",
                hint="leave that size out of dynamic_shapes=",
            )
    return program


def _shapes(call: OperatorCall, traced: Traced) -> list[Sequence[Any]]:
    """The sizes of the arguments in the program, symbolic where they may change; numbers have none."""
    by_position = call.signature.bind(tuple(call.node.args), dict(call.node.kwargs))
    found: list[Sequence[Any]] = []
    for place in traced.taken:
        given = by_position[place]
        found.append(() if not isinstance(given, Node) else tuple(given.meta["val"].shape))
    return found


def _dynamic(shape: Sequence[Any]) -> dict[int, Any] | None:
    return {place: torch.export.Dim.AUTO for place, size in enumerate(shape) if not isinstance(size, int)} or None


def _open_numbers(graph: ir.Graph, traced: Traced, attributes: Mapping[str, ir.Attr]) -> tuple[str, ...]:
    """Replace the inputs that are numbers by constants that refer to attributes."""
    needed, new = [], []
    for place, value in reversed(list(zip(traced.taken, list(graph.inputs), strict=True))):
        if place not in traced.numbers:
            continue
        graph.inputs.remove(value)
        name = traced.names[place]
        kind = attributes[name].type
        word = {ir.AttributeType.INT: "value_int", ir.AttributeType.FLOAT: "value_float"}.get(kind, "value")
        constant = ir.Node("", "Constant", [], [ir.RefAttr(word, name, kind)])
        new.append(constant)
        if kind == ir.AttributeType.FLOAT:
            new.append(ir.Node("", "Cast", [constant.outputs[0]], [ir.AttrInt64("to", ir.DataType.DOUBLE)]))
        ir.convenience.replace_all_uses_with(value, new[-1].outputs[0], replace_graph_outputs=True)
        new[-1].outputs[0].name = value.name
        needed.append(name)
    for node in reversed(new):
        _put_first(graph, node)
    return tuple(reversed(needed))


def _name_inputs(graph: ir.Graph, names: Sequence[str]) -> None:
    """Call them what the operator's parameters are called."""
    inside = {str(value.name) for node in graph for value in node.outputs}
    for value, name in zip(graph.inputs, names, strict=True):
        value.name = fresh(name, inside)


def _keep_constants(graph: ir.Graph) -> None:
    """A function has no initializers: what it needs are constants."""
    for name, value in list(graph.initializers.items()):
        assert value.const_value is not None
        constant = ir.Node("", "Constant", [], [ir.AttrTensor("value", value.const_value)])
        graph.initializers.pop(name)
        ir.convenience.replace_all_uses_with(value, constant.outputs[0], replace_graph_outputs=True)
        constant.outputs[0].name = name
        _put_first(graph, constant)


def _put_first(graph: ir.Graph, node: ir.Node) -> None:
    first = next(iter(graph), None)
    if first is None:
        graph.append(node)
    else:
        graph.insert_before(first, node)
