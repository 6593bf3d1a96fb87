"""References as emitted modules: trace, lower, optimise, emit, run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch

from opwright.codegen.python.function import emit_function
from opwright.codegen.python.layout import FunctionLayout, TensorParameter
from opwright.derivation.joint import trace_joint
from opwright.ir.program import Program
from opwright.lowering.lower import lower
from opwright.passes.order import optimize
from opwright.tracing.interface.specs import TensorSpec

Shapes = Sequence[tuple[int, ...]]


def emit(reference: Callable[..., Any], shapes: Shapes, dtype: torch.dtype) -> str:
    """The module for a reference, traced at some shapes."""
    forward, backward, layout = programs_of(reference, shapes, dtype)
    return emit_function(reference.__name__, forward, backward, layout)


def programs_of(
    reference: Callable[..., Any], shapes: Shapes, dtype: torch.dtype
) -> tuple[Program, Program, FunctionLayout]:
    names = [*inspect.signature(reference).parameters]
    specs = [TensorSpec(name, dtype, shape, True) for name, shape in zip(names, shapes, strict=True)]
    joint = trace_joint(reference, specs)
    graph = joint.graph
    inputs = [(given.name, given.node) for given in graph.inputs]
    outputs = [(f"output_{position}", node) for position, node in enumerate(graph.outputs)]
    wanted = [(f"grad_{name}", node) for name, node in zip(names, joint.gradients, strict=True) if node is not None]
    forward = optimize(lower(graph, "forward", inputs[: len(names)], outputs, graph.guards))
    backward = optimize(lower(graph, "backward", inputs, wanted, graph.guards))
    gradient_of = dict(zip([wish.removeprefix("grad_") for wish, _ in wanted], backward.outputs, strict=True))
    parameters = tuple(TensorParameter(name, gradient_of.get(name)) for name in names)
    given = {node: name for name, node in inputs}
    cotangents = tuple(None if node is None else given[node] for node in joint.tangents)
    layout = FunctionLayout(parameters, joint.result.is_bare, reference.__name__, "cases.py:1", "0.1.0", cotangents)
    return forward, backward, layout


def load(text: str, name: str) -> Callable[..., Any]:
    """Run a module's text and take a function from it."""
    namespace: dict[str, Any] = {}
    exec(compile(text, f"<{name}>", "exec"), namespace)
    return namespace[name]
