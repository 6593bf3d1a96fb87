"""The rung "function": an `autograd.Function` in torch operations, as the text of a Python module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from opwright.codegen.header import source_command
from opwright.codegen.python.function import emit_function
from opwright.codegen.python.layout import ConstantParameter, FunctionLayout, TensorParameter
from opwright.derivation.joint import trace_joint
from opwright.errors import NoKernel
from opwright.ir.expressions.integer import Condition
from opwright.lowering.lower import lower
from opwright.operators.names import named_inputs, named_outputs
from opwright.passes.order import optimize
from opwright.tracing.interface.place import function_behind
from opwright.tracing.interface.results import Result
from opwright.tracing.interface.specs import ArgumentSpec, TensorSpec
from opwright.version import VERSION


@dataclass(frozen=True, slots=True)
class FunctionModule:
    """The rung "function" for one kind of arguments: a Python module.

    Attributes:
        text: The module.
        guards: For which sizes it is valid.
        result: The structure of what the reference returns; the module gives the tensors that are computed.
    """

    text: str
    guards: tuple[Condition, ...]
    result: Result


def derive_function(
    reference: Callable[..., Any], specs: Sequence[ArgumentSpec], name: str, place: str
) -> FunctionModule:
    """Derive the rung "function": an `autograd.Function` in torch operations that starts from the inputs alone.

    Args:
        reference: The function as written.
        specs: One for each parameter; a floating tensor requires a gradient.
        name: The name of the emitted function.
        place: Where the reference is defined, for the header.

    Raises:
        UntraceableReference, NoKernel: As `derive`; also if the reference hides operations from autograd, because the
            emitted backward would then be differentiated differently.
    """
    joint = trace_joint(reference, specs)
    graph = joint.graph
    if graph.is_random:
        raise NoKernel("it draws random numbers, which an emitted autograd.Function would draw again")
    if graph.needs_row_major:
        raise NoKernel("what it does depends on how its arguments lie in memory")
    if graph.asks_for_identity:
        raise NoKernel("it asks which tensors are the same one, which an emitted autograd.Function does not")
    if graph.records_unasked:
        raise NoKernel("it switches gradients on for what it returns, which an emitted autograd.Function does not")
    if graph.hides_from_autograd:
        raise NoKernel("it uses detach or no_grad, which an emitted autograd.Function cannot pass on to higher orders")
    tangents = [node for node in joint.tangents if node is not None]
    arguments = [(given, node) for given, node in named_inputs(graph) if node not in tangents]
    forward = optimize(lower(graph, name, arguments, named_outputs(graph), graph.guards))
    gradients = {position: node for position, node in enumerate(joint.gradients) if node is not None}
    wanted = [(f"grad_{specs[position].name}", node) for position, node in gradients.items()]
    backward = (
        optimize(lower(graph, f"{name}_backward", named_inputs(graph), wanted, effects=False)) if wanted else None
    )
    parameters: list[TensorParameter | ConstantParameter] = []
    results = dict(zip(gradients, backward.outputs if backward else (), strict=True))
    for position, spec in enumerate(specs):
        if isinstance(spec, TensorSpec):
            parameters.append(TensorParameter(spec.name, results.get(position)))
        else:
            parameters.append(ConstantParameter(spec.name, spec.value))
    names = {node: given for given, node in named_inputs(graph)}
    cotangents = tuple(None if node is None else names[node] for node in joint.tangents)
    function = function_behind(reference)
    command = function and source_command(place.rpartition(":")[0], function.__qualname__, "function")
    layout = FunctionLayout(tuple(parameters), joint.result.is_bare, name, place, VERSION, cotangents, command)
    return FunctionModule(emit_function(name, forward, backward, layout), forward.guards, joint.result)
