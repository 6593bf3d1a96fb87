"""The transforms of `torch.func` that are given arguments at once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_map_only, tree_unflatten

from opwright.binding.environment import is_quiet
from opwright.binding.returned import Returned
from opwright.derivation.forward import is_differentiable
from opwright.func.derived import ITSELF, Transform, is_seen_through, served
from opwright.func.recorded import by_a_level, recorded
from opwright.func.unchanged import refusing_changes
from opwright.tracing.outside.hazards import OutsideUnknown

Function = Callable[..., Any]


def jvp(func: Function, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """The results of `func` and their tangents, as `torch.func.jvp` has it, by one operator."""
    if is_seen_through():
        return torch.func.jvp(func, primals, tangents, strict=strict, has_aux=has_aux)
    options = bool(strict), bool(has_aux)
    operator, before = served(func, Transform("jvp", options, functools.partial(_jvp, *options)))
    return operator(*before, primals, tangents)


def vjp(func: Function, *primals: Any, has_aux: bool = False) -> Any:
    """The results of `func` and a function from cotangents to gradients, as `torch.func.vjp` has it.

    The results are those of an operator, and the gradients those of its backward pass, which keeps what it needs.
    """
    if is_seen_through():
        return torch.func.vjp(func, *primals, has_aux=has_aux)
    operator, before = served(func, ITSELF)
    call = (operator, before, primals, has_aux)
    return recorded(*call) or by_a_level(*call)


def linearize(func: Function, *primals: Any) -> tuple[Any, Function]:
    """The results of `func` and a function from tangents to tangents, as `torch.func.linearize` has it.

    The tangents are those of one operator of the primals, of which it takes a copy, and the tangents. It computes from
    the primals again, so it refuses to do so once anything else that `func` reads has changed.
    """
    flat, layout = tree_flatten(primals)
    if not is_quiet() or not all(map(is_differentiable, flat)):
        return torch.func.linearize(func, *primals)
    (operator, before), (pushed, _) = served(func, ITSELF), served(func, _PUSHED)
    try:
        state = operator._outside.now()
    except OutsideUnknown:
        return torch.func.linearize(func, *primals)
    seeds = torch.get_rng_state()
    output = operator(*before, *primals)
    is_random = not torch.equal(seeds, torch.get_rng_state())
    if is_random or operator.last_rung == "composed":  # it may draw otherwise, or read what cannot be compared
        torch.set_rng_state(seeds)
        return torch.func.linearize(func, *primals)
    kept = tree_unflatten([primal.detach().clone() for primal in flat], layout)
    closed = tree_map_only(torch.Tensor, torch.Tensor.detach, before)
    refuse = refusing_changes("linearize", before)

    def push(*tangents: Any) -> Any:
        given, given_layout = tree_flatten(tangents)
        if given_layout != layout:
            raise RuntimeError(f"Expected the tangents {given_layout} to have the same argspec as the primals {layout}")
        _refuse_other_kinds(given, flat)
        refuse()
        if not state.holds():
            state.ensure_same()
        return pushed(*closed, kept, tangents)

    return output, push


def _refuse_other_kinds(tangents: Sequence[Any], primals: Sequence[torch.Tensor]) -> None:
    """Refuse what `torch.func.linearize` refuses, in its words.

    Raises:
        RuntimeError: If a tangent has another shape, device or dtype than its primal.
    """
    for place, (tangent, primal) in enumerate(zip(tangents, primals, strict=True)):
        for what in ("shape", "device", "dtype"):
            if getattr(tangent, what) != getattr(primal, what):
                raise RuntimeError(
                    f"tangent:{place} with {what} {getattr(tangent, what)} in flattened pytree doesn't match the "
                    f"{what} {getattr(primal, what)} of the corresponding primal."
                )


def _jvp(strict: bool, has_aux: bool, func: Function) -> Function:
    def pushed(primals: Any, tangents: Any) -> Any:
        return torch.func.jvp(func, primals, tangents, strict=strict, has_aux=has_aux)

    return pushed


def _pushed(func: Function) -> Function:
    """(primals, tangents) → tangents of the tensors in what `func` returns."""

    def pushed(primals: Any, tangents: Any) -> Any:
        returned: list[Returned] = []

        def tensors_of(*primals: Any) -> tuple[torch.Tensor, ...]:
            returned.append(Returned(func(*primals)))
            return tuple(returned[-1].tensors)

        _, moved, *_ = torch.func.jvp(tensors_of, primals, tangents)
        return returned[-1].rebuilt(moved)

    return pushed


_PUSHED = Transform("linearize", (), _pushed)
