"""The differentiable backward: the gradients as a function of inputs and cotangents, ready to be derived again.

It runs under `create_graph=True`. It is a function of inputs alone, not of saved intermediates, so its own derivative
is right by construction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from types import MappingProxyType
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from opwright.derivation.pull_back import pull_back
from opwright.derivation.tangents import tangent_names
from opwright.ir.names.fresh import fresh_stem
from opwright.tracing.decompositions.composed import Composed
from opwright.tracing.interface.aliases import MAY_COPY
from opwright.tracing.interface.signature import Kind, Parameter, Signature
from opwright.tracing.trace_functions import none_of_them

_GIVEN = "opwright_given"
_STATIC = "opwright_static"
_LIKE_EAGER = "opwright_like_eager"


def backward_reference(
    reference: Callable[..., Any],
    arity: int,
    wanted: Sequence[int],
    places: Sequence[int],
    digests: Mapping[str, str] = MappingProxyType({}),
) -> Callable[..., tuple[torch.Tensor, ...]]:
    """Make the function (arguments…, cotangents…, values…) → gradients.

    The values are saved intermediates of the forward pass. This function is right without them and does not read them;
    kernels derived from it read them instead of computing the same again.

    Args:
        reference: The function as written.
        arity: How many arguments it takes.
        wanted: Positions of the arguments whose gradients are asked for.
        places: Positions, in what the reference returns, of the outputs that have a cotangent.
        digests: The digests of the values, by parameter.
    """

    def outputs_of(arguments: Sequence[Any]) -> Sequence[torch.Tensor]:
        with Composed():
            returned = reference(*arguments)
        with none_of_them():  # a container may have functions of its own that take it apart
            return tree_leaves(returned)

    def backward(*given: Any) -> tuple[torch.Tensor, ...]:
        return pull_back(outputs_of, given[:arity], places, given[arity : arity + len(places)], wanted)

    setattr(backward, MAY_COPY, True)
    setattr(backward, _GIVEN, dict(digests))  # not those of the reference: calls keep them only where they are read
    make_static(backward, static_in(reference))
    backward.__name__ = f"{reference.__name__}_backward"
    return backward


def given_to(function: Callable[..., Any]) -> Mapping[str, str]:
    """The digests of the given values that a function could compute itself, by parameter."""
    return getattr(function, _GIVEN, {})


def is_backward(function: Callable[..., Any]) -> bool:
    """Whether it is such a function."""
    return hasattr(function, _GIVEN)


def make_static(function: Callable[..., Any], names: Iterable[str]) -> None:
    """Let the sizes of some parameters be constants in what is derived from a function, such as those of weights."""
    setattr(function, _STATIC, frozenset(names))


def static_in(function: Callable[..., Any]) -> Set[str]:
    """The parameters whose sizes are constants."""
    return getattr(function, _STATIC, frozenset())


def imitate_eager(function: Callable[..., Any]) -> None:
    """Let code around a function that does not know of kernels see no difference to eager.

    What is derived serves only contiguous arguments, because it gives contiguous results. And it saves arguments and
    results for the backward pass only where eager does, because that code may change all others in place.
    """
    setattr(function, _LIKE_EAGER, True)


def imitates_eager(function: Callable[..., Any]) -> bool:
    """Whether `imitate_eager` was called for a function."""
    return getattr(function, _LIKE_EAGER, False)


def value_names(signature: Signature, count: int) -> tuple[str, ...]:
    """The names of given values: `known`, with one more `known_` at each further order."""
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
