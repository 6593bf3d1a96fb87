"""From variants to a tape: the calls of an operator on the hot path, in C++ (`native/tape.cpp`)."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from opwright.binding.environment import PLAIN_TYPES
from opwright.binding.variants.kinds import Key
from opwright.binding.variants.states import State
from opwright.binding.variants.variant import Plan, Variant
from opwright.codegen.cpp.program import NAMESPACE


class Tape:
    """The calls of one operator on the hot path.

    Args:
        native: The extension module.
        by_call: The variants for each way of calling.
        name: The name of the operator and of its nodes.
        arity: How many arguments it takes.
        state: The state in which they were traced.

    Attributes:
        play: `(*tensors) -> results`, or None if it has no kernel for these arguments or a mode is active; None if
            there is no variant that it can run.
    """

    def __init__(
        self, native: Any, by_call: Mapping[Key, Sequence[Variant]], name: str, arity: int, state: State
    ) -> None:
        ways = [
            (mask, variants)
            for (mask, constants), variants in by_call.items()
            if not constants and all(_can_run(variant) for variant in variants)
        ]
        self._variants = [variant for _, variants in ways for variant in variants]
        self._narrowed: dict[tuple[int, ...], Plan] = {}
        numbers = itertools.count()
        routes = [
            (_bits(mask), [_route(native, variant, name, next(numbers), recording=any(mask)) for variant in variants])
            for mask, variants in ways
        ]
        # The module must not own its owner: the garbage collector could not see the cycle.
        self.play: Callable[..., Any] | None = (
            native.tape(routes, arity, PLAIN_TYPES, weakref.ref(self), state.guards, weakref.ref(state))
            if routes
            else None
        )

    def __call__(
        self,
        number: int,
        arguments: Sequence[Any],
        intermediates: Sequence[Any],
        cotangents: Sequence[Any],
        wanted: Sequence[int],
    ) -> Sequence[Any]:
        """Return gradients that can be differentiated again.

        Args:
            number: The number of the variant that made the results.
            arguments: The arguments of the call.
            intermediates: What was saved besides arguments and results.
            cotangents: Gradients of its results.
            wanted: Positions of the arguments whose gradients are asked for.
        """
        variant, key = self._variants[number], (number, *wanted)
        if key not in self._narrowed:
            self._narrowed[key] = replace(variant.plan, gradients=tuple(wanted))
        given = variant.plan.saved.given(intermediates)
        return variant.differentiate(arguments, [*cotangents, *given], self._narrowed[key])


def _can_run(variant: Variant) -> bool:
    return variant.only_tensors and variant.plain and not (variant.is_random or variant.plan.needs_whole_memory)


def _bits(mask: Sequence[bool]) -> int:
    return sum(1 << position for position, requires_gradient in enumerate(mask) if requires_gradient)


def _route(native: Any, variant: Variant, name: str, number: int, *, recording: bool) -> Any:
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
        spared=plan.spared,
        number=number,
    )
