"""From variants to tapes: the calls of an operator on the hot path, in C++ (`native/tape.h`, `native/entry.h`)."""

from __future__ import annotations

import inspect
import itertools
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils._pytree import TreeSpec

from opwright.binding.autograd.after_changes import differentiated
from opwright.binding.environment import PLAIN_TYPES, is_transformed
from opwright.binding.structures import spec_of
from opwright.binding.variants.kinds import Key, constant_key
from opwright.binding.variants.known_passes import KnownPass, KnownPasses
from opwright.binding.variants.states import State
from opwright.binding.variants.variant import Plan, Variant
from opwright.codegen.cpp.program import NAMESPACE
from opwright.tracing.interface.results import Constant, Given, Made, Member
from opwright.tracing.interface.signature import Parameter, Signature
from opwright.tracing.scalars.guards import NumberGuard

LEFT = object()  # what C++ returns where the function itself, or the module's own forward, serves a call
_MOST_ARGUMENTS = 256
_EXACT_IN_A_FLOAT = 2**53
_BITS = 63


@dataclass(frozen=True, slots=True)
class Varying:
    """The floats, or the ints, of one argument, which kernels are given at run time.

    Attributes:
        position: Of the argument.
        type: `float` or `int`.
        apart: Values that kernels are written for.
    """

    position: int
    type: type
    apart: tuple[float, ...]


class Tape:
    """The calls of one operator of flat arguments.

    Args:
        native: The extension module.
        by_call: The variants for each way of calling.
        name: The name of the operator and of its nodes.
        arity: How many arguments it takes.
        state: The state in which they were traced.
        varying: Which numbers kernels are given at run time.
        passes: Knows the backward passes that Python has run.

    Attributes:
        native, state: The same.
        variants: Those that it runs.
        runs: The tape in C++; None if there is no variant that it can run.
    """

    def __init__(
        self,
        native: Any,
        by_call: Mapping[Key, Sequence[Variant]],
        name: str,
        arity: int,
        state: State,
        varying: Sequence[Varying] = (),
        *,
        passes: KnownPasses,
    ) -> None:
        self.native, self.state, self._passes = native, state, passes
        self.variants: list[Variant] = []
        self.runs: Any = None
        self._narrowed: dict[tuple[Any, ...], Plan] = {}
        self._varying = [(each.position, each.type is float, each.apart) for each in varying]
        self._results: list[tuple[Any, Any]] = []
        ways: dict[Any, tuple[Any, ...]] = {}
        numbers = itertools.count()
        for (mask, _), variants in by_call.items() if arity <= _MOST_ARGUMENTS else ():
            results = [_result(variant) for variant in variants if _can_run(variant)]
            if len(results) < len(variants):  # Python asks the others in between
                continue
            self._results += results
            self.variants += variants
            for variant, result in zip(variants, results, strict=True):
                *_, routes = ways.setdefault(_way_key(variant), (*_way(variant), {}))
                known = [each.facts() for each in passes.of(variant)]
                route = _route(native, variant, result, name, next(numbers), known, recording=any(mask))
                routes.setdefault(_required(mask), []).append(route)
        if ways:
            # The module must not own its owner: the garbage collector could not see the cycle. So this holds all of it.
            self.runs = native.Tape(
                ways=[(*facts, list(routes.items())) for *facts, routes in ways.values()],
                varying=self._varying,
                arity=arity,
                plain_types=PLAIN_TYPES,
                owner=weakref.ref(self),
                guards=state.guards,
                state=weakref.ref(state),
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
            arguments: The arguments of the call; None in place of constants.
            intermediates: What was saved besides arguments and results.
            cotangents: Gradients of its results that can have one; None for those that were not used.
            wanted: Positions of the arguments whose gradients are asked for.

        Returns:
            One for each of `wanted`; None where no gradient flows from the results that were used.
        """
        variant = self.variants[number]
        used = tuple([p for p, given in zip(variant.plan.tangents, cotangents, strict=True) if given is not None])
        key = number, used, *wanted
        if key not in self._narrowed:
            plan = variant.plan.of_outputs(used)
            self._narrowed[key] = replace(plan, gradients=tuple([p for p in wanted if p in plan.gradients]))
        plan = self._narrowed[key]
        if not plan.gradients:
            return [None] * len(wanted)
        every = _with_constants(variant, arguments)
        flowing = [cotangent for cotangent in cotangents if cotangent is not None]
        found = differentiated(variant, every, flowing, intermediates, plan)
        if not (torch.is_grad_enabled() or is_transformed() or plan.numbers or plan.needs_row_major):
            self._know(variant, plan, tuple(wanted), [*every, *flowing, *plan.saved.given(intermediates)])
        gradients = dict(zip(plan.gradients, found, strict=True))
        return [gradients.get(position) for position in wanted]

    def cut(
        self,
        number: int,
        arguments: Sequence[Any],
        cotangents: Sequence[Any],
        at: Sequence[int],
        wanted: Sequence[int],
    ) -> Sequence[Any]:
        """The gradients of the wanted arguments, or if none are wanted, of outputs where the flow from others is cut.

        Args:
            number: The number of the variant that made the results.
            arguments: The arguments of the call; None in place of constants.
            cotangents: Gradients of its results that can have one; None for those that flow nowhere.
            at: Positions of these outputs.
            wanted: Positions of the arguments.
        """
        variant = self.variants[number]
        pairs = zip(variant.plan.tangents, cotangents, strict=True)
        flowing = {position: cotangent for position, cotangent in pairs if cotangent is not None}
        return variant.differentiate.cut(
            _with_constants(variant, arguments), flowing, variant.plan, at, wanted, self.native.Cut
        )

    def _know(self, variant: Variant, plan: Plan, wanted: tuple[int, ...], given: Sequence[Any]) -> None:
        """Have C++ run the next pass like this one, if it can."""
        runs = None if variant.is_random else variant.differentiate.runs_of(plan)
        if runs is not None and (way := runs.way_of(given)) >= 0:
            taken = tuple(plan.saved.given(range(plan.saved.intermediates)))
            self._passes.add(variant, KnownPass(plan.tangents, wanted, runs, way, taken, plan.gradients))


@dataclass(frozen=True, slots=True)
class Flat:
    """The calls of one operator of flat arguments, in one state.

    Attributes:
        native: The extension module.
        tape: What runs them; None if nothing does.
        left: Those that are left to the function: LeftCalls of the extension module.
        state: What the function reads outside.
    """

    native: Any
    tape: Tape | None
    left: Any
    state: State


class Entry:
    """The calls of one operator as they come, with keywords, defaults and structures.

    Args:
        signature: Its parameters.
        flats: Those of flat arguments behind it, each with the layout of the arguments; None where they are flat.
        changed: Positions of the arguments that the operator changes; it has one tape then, which gives what it returns
            and their new values.
        is_pinned: Whether no calls are left to the function.

    Attributes:
        flats: The same.
        play: `(*args, **kwargs) -> results`; LEFT for a call that is left to the function; NotImplemented if it has no
            kernel for these arguments or a mode is active; None is a result.

    Raises:
        NotTold: If C++ cannot take the arguments apart.
    """

    def __init__(
        self,
        signature: Signature,
        flats: Sequence[tuple[TreeSpec | None, Flat]],
        changed: Sequence[int] = (),
        *,
        is_pinned: bool = False,
    ) -> None:
        self.flats = tuple(flats)
        self._parameters = tuple(map(_parameter, signature.parameters))
        self._structures = [layout and spec_of(layout) for layout, _ in flats]
        given = [
            (structure, flat.tape and flat.tape.runs, None if is_pinned or changed else flat.left, flat.state.guards)
            for structure, (_, flat) in zip(self._structures, self.flats, strict=True)
        ]
        self.play: Callable[..., Any] = flats[0][1].native.entry(
            self._parameters, inspect.Parameter.empty, given, changed, LEFT, weakref.ref(self)
        )


def _parameter(parameter: Parameter) -> tuple[str, Any, bool, bool]:
    return parameter.name, parameter.default, parameter.keyword_only, parameter.variadic


def _can_run(variant: Variant) -> bool:
    return all(_can_compare(guard, position in variant.plan.integers) for position, guard in variant.plan.number_guards)


def _can_compare(guard: NumberGuard, is_integer: bool) -> bool:
    """Whether C++ compares a number with the bound exactly: it has them in one type."""
    if is_integer:
        return float(guard.bound).is_integer() and abs(guard.bound) < 2**_BITS
    return isinstance(guard.bound, float) or abs(guard.bound) <= _EXACT_IN_A_FLOAT


def _required(mask: Sequence[bool]) -> tuple[int, ...]:
    """Positions of the arguments that require gradients."""
    return tuple([position for position, requires_gradient in enumerate(mask) if requires_gradient])


def _way_key(variant: Variant) -> Key:
    plan = variant.plan
    return plan.tensors, plan.numbers, plan.integers, tuple(map(constant_key, variant.constants.values()))


def _way(variant: Variant) -> tuple[Any, ...]:
    """What tells the calls that a variant is for from others: tensors, floats and ints given, constants."""
    plan = variant.plan
    tensors = [position for position in plan.tensors if position not in plan.numbers]
    floats = [position for position in plan.numbers if position not in plan.integers]
    return tensors, floats, plan.integers, list(variant.constants.items())


def _result(variant: Variant) -> tuple[Any, Any]:
    result = variant.plan.result
    return spec_of(result.layout, is_result=True), tuple(map(_member, result.members))


def _member(member: Member) -> tuple[int, Any]:
    match member:
        case Made(position):
            return 0, position
        case Given(position):
            return 1, position
        case Constant(value):
            return 2, value


def _route(
    native: Any,
    variant: Variant,
    result: tuple[Any, Any],
    name: str,
    number: int,
    passes: Sequence[tuple[Any, ...]],
    *,
    recording: bool,
) -> Any:
    plan = variant.plan
    kept = len(plan.saved.contributing) + len(variant.kept_results)
    structure, members = result
    return native.Route(
        node_name=f"{name.title().replace('_', '')}Backward",
        forward=f"{NAMESPACE}::{plan.forward.name}",
        backward=f"{NAMESPACE}::{plan.backward.name}" if plan.backward and recording else "",
        tensors=plan.tensors,
        number_guards=[_number_guard(plan, position, guard) for position, guard in plan.number_guards],
        has_numbers=bool(plan.numbers),
        is_random=variant.is_random,
        outputs=plan.outputs,
        result=structure,
        members=members,
        orders=plan.orders,
        row_major=variant.needs_row_major,
        whole_memory=plan.needs_whole_memory,
        no_tensor_twice=plan.asks_for_identity,
        no_gradients=plan.records_unasked,
        kept_arguments=plan.saved.contributing,
        checked=plan.saved.checked,
        kept_results=variant.kept_results,
        reads=range(kept) if variant.backward_reads is None else variant.backward_reads,
        sizes=plan.saved.sizes,
        tangents=plan.tangents,
        freed=plan.freed if len(plan.freed) <= _BITS else (),
        feeding=_feeding(plan),
        gradients=plan.gradients,
        spared=plan.spared,
        number=number,
        passes=passes,
    )


def _with_constants(variant: Variant, arguments: Sequence[Any]) -> list[Any]:
    """The arguments of a call, with the constants of a variant where there is None."""
    return [variant.constants.get(position, argument) for position, argument in enumerate(arguments)]


def _feeding(plan: Plan) -> list[tuple[int, list[int]]]:
    """Outputs that are computed from others, with these; those that others are computed from come first."""
    found = [
        (output, [plan.tangents[place] for place in places])
        for output, places in zip(plan.tangents, plan.feeding, strict=False)
        if places
    ]
    return sorted(found, key=lambda each: len(each[1]))


def _number_guard(plan: Plan, position: int, guard: NumberGuard) -> tuple[int, int, str, float]:
    bound = int(guard.bound) if position in plan.integers else float(guard.bound)
    return position, guard.sign, guard.relation, bound
