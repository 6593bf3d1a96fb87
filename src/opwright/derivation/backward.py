"""The differentiable backward: the gradients as a function of inputs and incoming gradients, ready to be derived again.

It is what runs under `create_graph=True`. Being a function of inputs alone, and not of saved intermediates, it has the
right second derivative by construction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from opwright.derivation.tangents import tangent_names
from opwright.tracing.signature import Kind, Parameter, Signature


def backward_reference(
    reference: Callable[..., Any], arity: int, wanted: Sequence[int], tangents: Sequence[int]
) -> Callable[..., tuple[torch.Tensor, ...]]:
    """Make the function (arguments…, incoming gradients…) → gradients.

    Args:
        reference: The function as written.
        arity: How many arguments it takes.
        wanted: Positions of the arguments whose gradients are asked for.
        tangents: Positions of the outputs that have an incoming gradient.
    """

    def backward(*given: Any) -> tuple[torch.Tensor, ...]:
        arguments, incoming = list(given[:arity]), given[arity:]
        create_graph = torch.is_grad_enabled()
        with torch.enable_grad():
            for position in wanted:
                # An alias: what an argument does through another one, or given twice, is the caller's to add up.
                alias = torch.ops.aten.alias(arguments[position])
                arguments[position] = alias if alias.requires_grad else alias.detach().requires_grad_()
            returned = reference(*arguments)
            outputs = (returned,) if isinstance(returned, torch.Tensor) else returned
            sources = [arguments[position] for position in wanted]
            return torch.autograd.grad(
                [outputs[position] for position in tangents],
                sources,
                incoming,
                create_graph=create_graph,
                materialize_grads=True,
            )

    backward.__name__ = f"{reference.__name__}_backward"
    return backward


def backward_signature(signature: Signature, tangents: Sequence[int], outputs: int, wanted: int) -> Signature:
    """The parameters of `backward_reference`."""
    names = tangent_names([parameter.name for parameter in signature.parameters], outputs)
    parameters = tuple(Parameter(p.name, p.kind, p.optional) for p in signature.parameters)
    return Signature((*parameters, *(Parameter(names[position], Kind.TENSOR, False) for position in tangents)), wanted)
