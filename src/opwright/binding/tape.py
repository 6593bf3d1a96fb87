"""From variants to a tape: the calls of an operator on the hot path, in C++ (`native/tape.cpp`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from opwright.binding.environment import PLAIN_TYPES
from opwright.binding.kinds import Key
from opwright.binding.variant import Plan, Variant
from opwright.codegen.cpp_program import NAMESPACE

Tape = Callable[..., Any]


def make_tape(native: Any, by_call: Mapping[Key, Sequence[Variant]], name: str, arity: int) -> Tape | None:
    """Return what runs a call whose arguments are all tensors, or says None if it has no kernel for them.

    Args:
        native: The extension module.
        by_call: The variants for each way of calling.
        name: What the operator is called; its nodes are called after it.
        arity: How many arguments it takes.

    Returns:
        `(*tensors) -> results`; None if there is no variant that it can run.
    """
    routes = [
        (_bits(mask), [_route(native, variant, name, recording=any(mask)) for variant in variants])
        for (mask, constants), variants in by_call.items()
        if not constants and all(_can_run(variant) for variant in variants)
    ]
    return native.tape(routes, arity, PLAIN_TYPES) if routes else None


def _can_run(variant: Variant) -> bool:
    return variant.only_tensors and variant.plain and not variant.is_random


def _bits(mask: Sequence[bool]) -> int:
    return sum(1 << position for position, requires_gradient in enumerate(mask) if requires_gradient)


def _route(native: Any, variant: Variant, name: str, *, recording: bool) -> Any:
    plan = variant.plan
    kept = len(plan.saved.contributing) + len(variant.kept_results)
    return native.Route(
        node_name=f"{name.title().replace('_', '')}Backward",
        forward=f"{NAMESPACE}::{plan.forward.name}",
        backward=f"{NAMESPACE}::{plan.backward.name}" if plan.backward and recording else "",
        outputs=plan.outputs,
        bare=variant.bare,
        row_major=variant.needs_row_major,
        kept_arguments=plan.saved.contributing,
        kept_results=variant.kept_results,
        reads=range(kept) if variant.backward_reads is None else variant.backward_reads,
        sizes=plan.saved.sizes,
        tangents=plan.tangents,
        gradients=plan.gradients,
        differentiate=_Differentiable(variant),
    )


class _Differentiable:
    """The backward pass of a variant as an operator of its own.

    Args:
        variant: The variant.
    """

    def __init__(self, variant: Variant) -> None:
        self._differentiate = variant.differentiate
        self._plan = variant.plan
        self._narrowed: dict[tuple[int, ...], Plan] = {}

    def __call__(self, arguments: Sequence[Any], incoming: Sequence[Any], wanted: Sequence[int]) -> Sequence[Any]:
        """Return the gradients of the wanted arguments."""
        key = tuple(wanted)
        if key not in self._narrowed:
            self._narrowed[key] = replace(self._plan, gradients=key)
        return self._differentiate(arguments, incoming, self._narrowed[key])
