"""References as Programs, and Programs as torch runs them: what the tests of the stages share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from opwright.derivation.joint import Joint, trace_joint
from opwright.ir.meaning.calls import CallMeaning
from opwright.ir.meaning.interpreter import interpret
from opwright.ir.program import Call, Program
from opwright.lowering.lower import lower
from opwright.tracing.interface.specs import TensorSpec
from opwright.tracing.trace import trace

Array = npt.NDArray[Any]


def specs_of(names: Sequence[str], tensors: Sequence[torch.Tensor]) -> list[TensorSpec]:
    """Describe arguments as tracing needs to know them."""
    return [
        TensorSpec(name, tensor.dtype, tuple(tensor.shape), tensor.requires_grad)
        for name, tensor in zip(names, tensors, strict=True)
    ]


def lowered(reference: Callable[..., Any], specs: Sequence[TensorSpec]) -> Program:
    """The Program of a reference before any pass."""
    graph, _ = trace(reference, specs)
    inputs = [(given.name, given.node) for given in graph.inputs]
    outputs = [(f"output_{position}", node) for position, node in enumerate(graph.outputs)]
    return lower(graph, "program", inputs, outputs, graph.guards)


def lowered_joint(reference: Callable[..., Any], specs: Sequence[TensorSpec]) -> tuple[Joint, Program]:
    """The Program (arguments, cotangents) → (outputs, gradients) before any pass."""
    joint = trace_joint(reference, specs)
    inputs = [(given.name, given.node) for given in joint.graph.inputs]
    outputs = [(f"output_{position}", node) for position, node in enumerate(joint.graph.outputs)]
    outputs += [
        (f"grad_{spec.name}", node) for spec, node in zip(specs, joint.gradients, strict=True) if node is not None
    ]
    return joint, lower(joint.graph, "program", inputs, outputs, joint.graph.guards)


def run(program: Program, inputs: Sequence[torch.Tensor], **sizes: int) -> list[torch.Tensor]:
    """Interpret a Program; library operations are torch's."""
    arrays = [tensor.detach().numpy() for tensor in inputs]
    made = interpret(program, arrays, sizes, {_called(s): _torch_meaning(s) for s in program.steps if _is_call(s)})
    return [torch.from_numpy(np.array(array)) for array in made]


def _is_call(step: object) -> bool:
    return isinstance(step, Call)


def _called(call: Any) -> str:
    return f"{call.function}.{call.overload}" if call.overload else str(call.function)


def _torch_meaning(call: Any) -> CallMeaning:
    operation = getattr(getattr(torch.ops.aten, call.function.removeprefix("aten::")), call.overload or "default")
    arguments = operation._schema.arguments

    def meaning(*operands: Any) -> Array | tuple[Array, ...]:
        given = [_to_torch(operand) for operand in operands]
        named = {a.name: given[position] for position, a in enumerate(arguments) if a.kwarg_only}
        returned = operation(*given[: len(given) - len(named)], **named)
        if returned is None:  # of what only raises
            return ()
        return tuple(r.numpy() for r in returned) if isinstance(returned, (tuple, list)) else returned.numpy()

    return meaning


def _to_torch(operand: Any) -> Any:
    match operand:
        case np.ndarray():
            return torch.from_numpy(np.array(operand))
        case str():
            return getattr(torch, operand, operand)  # a dtype, or what an error says
        case list():
            return [_to_torch(item) for item in operand]
        case _:
            return operand
