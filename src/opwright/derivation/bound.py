"""A reference with some of its arguments bound to values: a function of the others, none of which may be None."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from opwright.tracing.interface.signature import Parameter, Signature


def bound_reference(reference: Callable[..., Any], arity: int, values: Mapping[int, Any]) -> Callable[..., Any]:
    """Make the function of the arguments without those that are bound, in order.

    Args:
        reference: The function as written, taking every argument by position.
        arity: How many arguments it takes.
        values: By position.
    """

    def bound(*given: Any) -> Any:
        rest = iter(given)
        return reference(*[values[position] if position in values else next(rest) for position in range(arity)])

    bound.__name__ = reference.__name__
    return bound


def bound_signature(signature: Signature, values: Mapping[int, Any], outputs: int) -> Signature:
    """The parameters of `bound_reference`, for a reference that returns so many tensors."""
    left = [parameter for position, parameter in enumerate(signature.parameters) if position not in values]
    given = (Parameter(p.name, p.kind, False, type=p.type and p.type.removesuffix("?")) for p in left)
    return Signature(tuple(given), outputs)
