"""The differentiable backward: the gradients as a function of inputs and incoming gradients, ready to be derived again.

It is what runs under `create_graph=True`. Being a function of inputs alone, and not of saved intermediates, it has the
right second derivative by construction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from opwright.derivation.composed import Composed
from opwright.derivation.tangents import tangent_names
from opwright.ir.names.fresh import fresh_stem
from opwright.tracing.interface.aliases import MAY_COPY
from opwright.tracing.interface.signature import Kind, Parameter, Signature
from opwright.tracing.torch_hooks import functorch

_GIVEN = "opwright_given"


def backward_reference(
    reference: Callable[..., Any],
    arity: int,
    wanted: Sequence[int],
    places: Sequence[int],
    digests: Mapping[str, str] = MappingProxyType({}),
) -> Callable[..., tuple[torch.Tensor, ...]]:
    """Make the function (arguments…, incoming gradients…, values…) → gradients.

    The values are what the forward pass has computed and kept. This function does not read them, and is right without;
    what is derived from it reads them where it would compute the same.

    Args:
        reference: The function as written.
        arity: How many arguments it takes.
        wanted: Positions of the arguments whose gradients are asked for.
        places: Where the outputs that have an incoming gradient stand in what the reference returns.
        digests: What the values are of, by parameter.
    """

    def pulled_back(arguments: list[Any], incoming: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """Where `requires_grad_` is refused, inside of a transform, or `detach` drops tangents, in forward mode."""

        def of_sources(*sources: torch.Tensor) -> list[torch.Tensor]:
            for position, source in zip(wanted, sources, strict=True):
                arguments[position] = source
            with Composed():
                outputs = tree_leaves(reference(*arguments))
            return [outputs[place] for place in places]

        _, pull, *_ = torch.func.vjp(of_sources, *[arguments[position] for position in wanted])
        gradients: tuple[torch.Tensor, ...] = pull(list(incoming))
        return gradients

    def backward(*given: Any) -> tuple[torch.Tensor, ...]:
        arguments, incoming = list(given[:arity]), given[arity : arity + len(places)]
        if functorch.are_active() or functorch.is_forward_mode():
            return pulled_back(arguments, incoming)
        create_graph = torch.is_grad_enabled()
        with torch.enable_grad():
            for position in wanted:
                # An alias: what an argument does through another one, or given twice, is the caller's to add up.
                alias = torch.ops.aten.alias(arguments[position])
                arguments[position] = alias if alias.requires_grad else alias.detach().requires_grad_()
            with Composed():
                outputs = tree_leaves(reference(*arguments))
            sources = [arguments[position] for position in wanted]
            flowing = [
                (outputs[p], given) for p, given in zip(places, incoming, strict=True) if outputs[p].requires_grad
            ]
            if not flowing:
                return tuple(torch.zeros_like(source) for source in sources)
            return torch.autograd.grad(
                [output for output, _ in flowing],
                sources,
                [given for _, given in flowing],
                create_graph=create_graph,
                materialize_grads=True,
            )

    setattr(backward, MAY_COPY, True)
    setattr(backward, _GIVEN, {**given_to(reference), **digests})
    backward.__name__ = f"{reference.__name__}_backward"
    return backward


def given_to(function: Callable[..., Any]) -> Mapping[str, str]:
    """The digests of the values that a function is given and computes itself, by parameter."""
    return getattr(function, _GIVEN, {})


def value_names(signature: Signature, count: int) -> tuple[str, ...]:
    """What given values are called: `known`, with more `known_` at each further order."""
    stem = fresh_stem("known", [parameter.name for parameter in signature.parameters], "known_")
    return tuple(f"{stem}_{position}" for position in range(count))


def backward_signature(
    signature: Signature, tangents: Sequence[int], outputs: int, wanted: int, values: Sequence[str] = ()
) -> Signature:
    """The parameters of `backward_reference`."""
    names = tangent_names([parameter.name for parameter in signature.parameters], outputs)
    parameters = tuple(Parameter(p.name, p.kind, p.optional, type=p.type) for p in signature.parameters)
    more = [*(names[position] for position in tangents), *values]
    return Signature((*parameters, *(Parameter(name, Kind.TENSOR, False) for name in more)), wanted)
