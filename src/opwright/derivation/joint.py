"""The joint graph: a reference and its vector-Jacobian product in one trace.

The mathematics is PyTorch's own: autograd runs on fake tensors while the recorder traces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node

from opwright.derivation.shared_history import Feeding, Freed, feeding, freed_by, nodes_behind
from opwright.derivation.tangents import tangent_names
from opwright.errors import NoKernel
from opwright.tracing.decompositions.second_derivatives import add_second_derivatives
from opwright.tracing.effects.watch import unchanged_outside
from opwright.tracing.graph import Graph
from opwright.tracing.hints import CHECKPOINT_AROUND, DRAW_OUTSIDE
from opwright.tracing.interface.results import Result
from opwright.tracing.interface.specs import ArgumentSpec
from opwright.tracing.torch_hooks.fake_mode import with_more_formulas_if_needed
from opwright.tracing.torch_hooks.isolation import in_fresh_thread
from opwright.tracing.trace import Session, requires_grad, requires_of_its_own


@dataclass(frozen=True, slots=True)
class Joint:
    """A reference with its derivative.

    Attributes:
        graph: Takes the tensor arguments, then one cotangent per differentiable output; returns the outputs.
        tangents: The cotangents; None for an output that has no derivative.
        gradients: One per argument of the reference; None where no gradient flows.
        reach: For each cotangent, the positions of the arguments to which a gradient flows from it.
        freed: For each cotangent, the others whose backward pass frees what its own needs; () if each frees everything.
        feeding: For each cotangent, those of the outputs that its own is computed from; () if none is from another.
        result: The structure of what the reference returns.
    """

    graph: Graph
    tangents: tuple[Node | None, ...]
    gradients: tuple[Node | None, ...]
    reach: tuple[tuple[int, ...], ...]
    freed: Freed
    feeding: Feeding
    result: Result


def trace_joint(reference: Callable[..., Any], specs: Sequence[ArgumentSpec]) -> Joint:
    """Trace a reference and the gradients of all arguments whose spec requires one, with gradients recorded.

    Raises:
        UntraceableReference: If its control flow or a shape depends on data.
        NoKernel: If it, or its derivative, does something that no kernel can do.
    """
    add_second_derivatives()
    return in_fresh_thread(lambda: with_more_formulas_if_needed(lambda: _trace_joint(reference, specs)))


def _trace_joint(reference: Callable[..., Any], specs: Sequence[ArgumentSpec]) -> Joint:
    session = Session()
    arguments = [session.argument(spec) for spec in specs]
    result, outputs = session.call(reference, arguments)
    wanted = [argument for argument, spec in zip(arguments, specs, strict=True) if requires_grad(spec)]
    flowing = [output for output in outputs if output.requires_grad]
    behind = [_leaves_behind(output) for output in flowing]
    if any(leaves.isdisjoint(map(id, wanted)) for leaves in behind):
        raise requires_of_its_own()
    freed, fed_by = freed_by(flowing), feeding(flowing)
    names = tangent_names([spec.name for spec in specs], len(outputs))
    cotangents = {
        id(output): session.tangent(name, output)
        for name, output in zip(names, outputs, strict=True)
        if output.requires_grad
    }
    drawn, made = session.draws, [session.node(output) for output in outputs]
    watching = unchanged_outside(reference.__name__, reference)
    with session.naming_cotangents(), session.recording(), watching as watch:
        given = [cotangents[id(output)] for output in flowing]
        found = torch.autograd.grad(flowing, wanted, given, allow_unused=True) if wanted else ()
    session.asks_for_identity |= watch.asks_for_identity
    if session.draws > drawn:  # kernels would draw some in the forward pass, or again for a second derivative
        raise NoKernel("its backward pass draws random numbers", hint=DRAW_OUTSIDE)
    if [session.node(output) for output in outputs] != made:  # kernels would change it in the forward pass already
        raise NoKernel("a checkpoint changes an argument or a buffer again", hint=CHECKPOINT_AROUND)
    gradients = {id(argument): gradient for argument, gradient in zip(wanted, found, strict=True)}
    return Joint(
        graph=session.graph(outputs),
        tangents=tuple(session.node(cotangents[id(o)]) if id(o) in cotangents else None for o in outputs),
        gradients=tuple(None if g is None else session.node(g) for g in map(gradients.get, map(id, arguments))),
        reach=tuple(tuple(p for p, a in enumerate(arguments) if id(a) in leaves) for leaves in behind),
        freed=freed,
        feeding=fed_by,
        result=result,
    )


def _leaves_behind(output: torch.Tensor) -> set[int]:
    """The identities of the leaves that autograd's graph leads to from an output."""
    if output.grad_fn is None:
        return {id(output)}
    return {id(node.variable) for node in nodes_behind(output) if hasattr(node, "variable")}
