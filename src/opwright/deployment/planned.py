"""Operator → what of it goes into a wheel: its schema and the variants that its samples ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from opwright.binding.variant import Plan
from opwright.codegen.cpp_registration import PackagedKernel, PackagedOperator
from opwright.errors import NoKernel, OpwrightError, SamplesMissing, UndeclaredMutation, WheelUnsupported
from opwright.ir.identifiers import identifiers
from opwright.operator import DEFAULT_NAMESPACE, Operator
from opwright.tracing.guarded import guarded
from opwright.tracing.signature import Signature, place_of, read_signature
from opwright.tracing.specs import describe, requiring_gradients
from opwright.tracing.type_questions import asks_for_types

_MOST = 3e38  # what float32 holds; see binding/numbers.py


@dataclass(frozen=True, slots=True)
class PlannedVariant:
    """A plan, and the constants that it was made for, by position."""

    plan: Plan
    constants: Mapping[int, Any]


@dataclass(frozen=True, slots=True)
class PlannedOperator:
    """What of an operator goes into a wheel.

    Attributes:
        name: "namespace::name"; what is in opwright's own namespace moves into that of the package.
        operator: Where it comes from.
        signature: Its parameters.
        outputs: How many tensors it returns.
        variants: One for each kind of sample, with gradients and without.
    """

    name: str
    operator: Operator
    signature: Signature
    outputs: int
    variants: tuple[PlannedVariant, ...]

    @property
    def short_name(self) -> str:
        """What it is called in Python."""
        return self.name.split("::")[1]

    def registered(self) -> PackagedOperator:
        """What of it is registered for programs in C++: kernels without gradients and with constants that C++ has."""
        types = tuple(str(parameter.type) for parameter in self.signature.parameters)
        kernels = [_kernel(variant, types) for variant in self.variants if variant.plan.backward is None]
        known = tuple(kernel for kernel in kernels if kernel is not None)
        return PackagedOperator(self.name, str(self.signature.schema), types, self.outputs, known)


def plan_operator(operator: Operator, package: str, dtypes: Sequence[torch.dtype]) -> PlannedOperator:
    """Derive what the samples of an operator ask for.

    Args:
        operator: What is to be shipped.
        package: The namespace of operators that have none of their own.
        dtypes: What the samples are made in.

    Raises:
        SamplesMissing: If it has none.
        WheelUnsupported: If a wheel cannot hold it.
        OpwrightError: If no kernel can be derived for a sample.
    """
    namespace, short = operator.name.split("::")
    signature = read_signature(operator.reference)
    if signature.schema is None or not signature.is_flat:
        raise _unsupported(operator, "takes or returns a structure that no schema of torch spells")
    if operator.autocast is not None:
        raise _unsupported(operator, "has a policy under autocast, where operators of a wheel run their references")
    variants: dict[Any, PlannedVariant] = {}
    for args in _calls(operator, signature, dtypes):
        for variant in _variants(operator, signature, args):
            variants.setdefault(tuple(source.name for source in variant.plan.sources), variant)
    outputs = {variant.plan.outputs for variant in variants.values()}
    if len(outputs) != 1:
        raise _unsupported(operator, "returns another number of tensors for one sample than for the next")
    name = f"{package if namespace == DEFAULT_NAMESPACE else namespace}::{short}"
    return PlannedOperator(name, operator, signature, outputs.pop(), tuple(variants.values()))


def _calls(operator: Operator, signature: Signature, dtypes: Sequence[torch.dtype]) -> Iterator[tuple[Any, ...]]:
    """The arguments of every sample that is not empty."""
    if operator.samples is None:
        raise SamplesMissing(
            f"{operator.name} has no samples, so nothing is known of what to build",
            place=place_of(operator.reference),
            hint='give the decorator samples=opwright.shapes("B H", "B H"), one shape for each tensor',
        )
    for dtype in dtypes:
        for sample in operator.samples("cpu", dtype):
            args = signature.bind(tuple(sample.args), dict(sample.kwargs))
            if all(argument.numel() for argument in args if isinstance(argument, torch.Tensor)):
                yield args


def _variants(operator: Operator, signature: Signature, args: Sequence[Any]) -> Iterator[PlannedVariant]:
    """Those for a call: without gradients, and with that of every floating tensor."""
    for given, gradients in ((args, False), (requiring_gradients(args), True)):
        try:
            plan, numbers = _plan(operator, signature, given, gradients)
        except UndeclaredMutation:
            raise _unsupported(operator, "changes its arguments, and operators of a wheel change none yet") from None
        if not plan.result.is_plain:
            raise _unsupported(operator, "returns something else than tensors that it computes, each once")
        if plan.outputs == 1 and not plan.result.is_bare:
            raise _unsupported(operator, "returns a tuple of one tensor, which no schema of torch spells")
        constants = {
            position: value
            for position, value in enumerate(args)
            if not isinstance(value, torch.Tensor) and position not in numbers
        }
        yield PlannedVariant(plan, constants)


def _plan(
    operator: Operator, signature: Signature, args: Sequence[Any], gradients: bool
) -> tuple[Plan, tuple[int, ...]]:
    """Derive for a call, with its floats given at run time if that can be; give their positions too."""
    numbers = tuple(p for p, value in enumerate(args) if type(value) is float and abs(value) < _MOST)
    if numbers and not asks_for_types(operator.reference):
        prepared = [
            torch.scalar_tensor(value, dtype=torch.float64) if position in numbers else value
            for position, value in enumerate(args)
        ]
        try:
            return _derived(operator, signature, prepared, gradients, numbers), numbers
        except NoKernel:
            pass  # something wants their values
    return _derived(operator, signature, args, gradients, ()), ()


def _derived(
    operator: Operator, signature: Signature, args: Sequence[Any], gradients: bool, numbers: tuple[int, ...]
) -> Plan:
    from opwright.stages import derive  # imports sympy (0.3 s), which `import opwright` does without

    reference: Callable[..., Any] = signature.positional(operator.reference)
    names = identifiers([parameter.name for parameter in signature.parameters])
    specs = describe(names, args, gradients=gradients, numbers=numbers)
    short = operator.name.split("::")[1]
    return guarded(reference, lambda: derive(reference, specs, short, operator.save)).plan


def _kernel(variant: PlannedVariant, types: Sequence[str]) -> PackagedKernel | None:
    plan = variant.plan
    of_types = all(type(value).__name__ == types[position] for position, value in variant.constants.items())
    if not of_types or plan.needs_whole_memory:
        return None
    return PackagedKernel(
        name=plan.forward.name,
        tensors=plan.tensors,
        numbers=plan.numbers,
        constants=variant.constants,
        bounds=tuple((position, g.sign, g.relation, g.bound) for position, g in plan.number_guards),
        made=plan.outputs + plan.saved.intermediates,
        needs_row_major=plan.needs_row_major,
    )


def _unsupported(operator: Operator, fact: str) -> OpwrightError:
    return WheelUnsupported(f"{operator.name} {fact}, so no wheel can hold it", place=place_of(operator.reference))
