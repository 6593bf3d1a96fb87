"""A program as the text of a TorchScript method."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Node

from opwright.deployment.programs.calls import place_of_node
from opwright.errors import DeploymentUnsupported

_INFIX: Mapping[Any, str] = {
    operator.add: "+", operator.sub: "-", operator.mul: "*", operator.floordiv: "//", operator.mod: "%",
}  # fmt: skip


def script_module(program: ExportedProgram) -> Any:
    """Write a program as a `torch.jit.ScriptModule` of its flat inputs, with its weights as attributes.

    Raises:
        DeploymentUnsupported: If TorchScript has no word for something in it.
    """
    holder = type("Model", (torch.nn.Module,), {})()  # a class of its own: TorchScript would share its methods
    names: dict[Node, str] = {}
    parameters: list[str] = []
    nodes = [node for node in program.graph.nodes if node.op == "placeholder"]
    for index, (node, spec) in enumerate(zip(nodes, program.graph_signature.input_specs, strict=True)):
        if spec.kind is InputKind.USER_INPUT:
            names[node] = f"input_{len(parameters)}"
            parameters.append(f"{names[node]}: Tensor")
            continue
        held = program.state_dict.get(spec.target or "", program.constants.get(spec.target or ""))
        _hold(holder, f"weight_{index}", held, is_parameter=spec.kind is InputKind.PARAMETER)
        names[node] = f"self.weight_{index}"
    lines = [f"def forward(self, {', '.join(parameters)}):", *_body(program, names)]
    module: Any = torch.jit.script(holder)
    try:
        module.define("\n".join([*lines, ""]))
    except RuntimeError as error:
        said = next((line for line in str(error).splitlines() if line.strip()), "")
        raise DeploymentUnsupported(f"TorchScript refuses the model: {said}", hint=_INSTEAD) from error
    return module


_INSTEAD = 'deploy it to "aoti"'


def _hold(module: Any, name: str, held: Any, *, is_parameter: bool) -> None:
    if is_parameter:
        module.register_parameter(name, torch.nn.Parameter(held.detach().clone(), requires_grad=held.requires_grad))
    else:
        module.register_buffer(name, held.detach().clone())


def _body(program: ExportedProgram, names: dict[Node, str]) -> list[str]:
    lines = []
    for node in program.graph.nodes:
        if node.op == "placeholder":
            continue
        if node.op == "output":
            results = [_spelled(result, names, node) for result in node.args[0]]
            lines.append(f"    return {', '.join(results)}")
        elif (expression := _expression(node, names)) is not None:
            names[node] = f"v{len(lines)}"
            lines.append(f"    {names[node]} = {expression}")
    return lines


def _expression(node: Node, names: Mapping[Node, str]) -> str | None:
    target = node.target
    given = [_spelled(argument, names, node) for argument in node.args]
    if target is operator.getitem:
        return f"{given[0]}[{given[1]}]"
    if target in _INFIX:
        return f"{given[0]} {_INFIX[target]} {given[1]}"
    if target is torch.ops.aten.sym_size.int:
        return f"{given[0]}.size({given[1]})"
    if not isinstance(target, torch._ops.OpOverload) or str(target).startswith("aten._assert"):
        if not node.users:
            return None  # a check of the trace
        raise _unspoken(node, str(target))
    given += [f"{name}={_spelled(value, names, node)}" for name, value in node.kwargs.items()]
    return f"torch.ops.{target.namespace}.{target._schema.name.split('::')[1]}({', '.join(given)})"


def _spelled(value: Any, names: Mapping[Node, str], node: Node) -> str:
    if isinstance(value, Node):
        return names[value]
    if isinstance(value, list | tuple):
        return f"[{', '.join(_spelled(item, names, node) for item in value)}]"
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    if isinstance(value, torch.device):
        return f'torch.device("{value}")'
    if isinstance(value, torch.dtype | torch.memory_format | torch.layout):
        return str(value)
    raise _unspoken(node, repr(value))


def _unspoken(node: Node, what: str) -> DeploymentUnsupported:
    return DeploymentUnsupported(f"TorchScript has no word for {what}", place=place_of_node(node), hint=_INSTEAD)
