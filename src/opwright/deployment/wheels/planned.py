"""BaseOperator → its part of a wheel: the schema, and the variants of its samples."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch

from opwright.binding.serving.numbers import can_be_given, given_at_run_time, needed_in, numbers_in
from opwright.binding.variants.backends import Backend
from opwright.binding.variants.variant import Plan
from opwright.codegen.cpp.program import MOST_ARGUMENTS
from opwright.codegen.cpp.registration import PackagedKernel, PackagedOperator
from opwright.errors import (
    NoKernel,
    OpwrightError,
    UndeclaredMutation,
    UntraceableReference,
    WheelUnsupported,
)
from opwright.ir.names.identifiers import identifiers
from opwright.operators.base import DEFAULT_NAMESPACE, BaseOperator
from opwright.samples import required
from opwright.settings import Settings
from opwright.tracing.guarded import guarded
from opwright.tracing.interface.annotations import read_annotations
from opwright.tracing.interface.signature import Kind, Parameter, Signature, place_of, read_signature
from opwright.tracing.interface.specs import TensorSpec, describe, requiring_gradients
from opwright.tracing.scalars.type_questions import asks_for_types


@dataclass(frozen=True, slots=True)
class Serving:
    """Kernels of one kind: their backend, and the device that they serve."""

    backend: Backend
    device: Literal["cpu", "cuda"]


def servings(*, cuda: bool, settings: Settings) -> tuple[Serving, ...]:
    """Name the kinds of kernels that a wheel has, with CUDA or without.

    Where the settings have CUDA run on the processor, to check it, there are no others for the processor.
    """
    if cuda and settings.cuda_on_host:
        return (Serving("cuda", "cpu"),)
    return (Serving("cpp", "cpu"), *([Serving("cuda", "cuda")] if cuda else []))


@dataclass(frozen=True, slots=True)
class PlannedVariant:
    """A plan, the constants that it was made for, by position, and what its kernels serve."""

    plan: Plan
    constants: Mapping[int, Any]
    serving: Serving


@dataclass(frozen=True, slots=True)
class PlannedOperator:
    """An operator's part of a wheel.

    Attributes:
        name: "namespace::name"; what is in opwright's own namespace moves into that of the package.
        operator: Where it comes from.
        signature: Its parameters.
        outputs: How many tensors it returns.
        variants: One for each kind of sample, with gradients and without.
        left_to_reference: Why a kind of sample has no kernels for CUDA, one sentence for each reason.
    """

    name: str
    operator: BaseOperator
    signature: Signature
    outputs: int
    variants: tuple[PlannedVariant, ...]
    left_to_reference: tuple[str, ...] = ()

    @property
    def short_name(self) -> str:
        """What it is called in Python."""
        return self.name.split("::")[1]

    def registered(self) -> PackagedOperator:
        """What of it is registered for programs in C++: kernels without gradients and with constants that C++ has."""
        types = tuple(str(parameter.type) for parameter in self.signature.parameters)
        kernels = [packaged_kernel(variant, types) for variant in self.variants if variant.plan.backward is None]
        known = tuple(kernel for kernel in kernels if kernel is not None)
        return PackagedOperator(self.name, str(self.signature.schema), types, self.outputs, known)


def plan_operator(
    operator: BaseOperator, package: str, dtypes: Sequence[torch.dtype], kinds: Sequence[Serving]
) -> PlannedOperator:
    """Derive what the samples of an operator ask for.

    Args:
        operator: The operator to ship.
        package: The namespace of operators that have none of their own.
        dtypes: What the samples are made in.
        kinds: The kinds of kernels to derive.

    Raises:
        SamplesMissing: If it has none.
        WheelUnsupported: If a wheel cannot hold it.
        OpwrightError: If no kernel for the processor can be derived for a sample.
    """
    namespace, short = operator.name.split("::")
    signature = read_signature(operator.reference)
    if len(signature.parameters) > MOST_ARGUMENTS:
        raise _too_many(operator, len(signature.parameters))
    said = read_annotations(operator.reference)
    unsaid = [each for each in signature.parameters if each.kind is Kind.STRUCTURE and each.name not in said]
    if unsaid:
        names = " and ".join(each.name for each in unsaid)
        hint = f"annotate each: {', '.join(map(_annotated, unsaid))}"
        raise _unsupported(operator, f"does not say what {names} may be, which a schema must", hint)
    if signature.schema is None or not signature.is_flat:
        raise _unsupported(
            operator,
            "takes or returns a structure that no schema of torch spells",
            "take and return tensors, and say so: x: torch.Tensor",
        )
    if operator.autocast is not None:
        fact = "has an autocast policy, but operators of a wheel run their references under autocast"
        raise _unsupported(operator, fact, "leave autocast= out")
    variants: dict[Any, PlannedVariant] = {}
    left: dict[str, None] = {}
    for args in _calls(operator, signature, dtypes):
        for serving in kinds:
            try:
                for variant in _variants(operator, signature, args, serving):
                    variants.setdefault(tuple(source.name for source in variant.plan.sources), variant)
            except (NoKernel, UntraceableReference) as refusal:
                if serving.backend == "cpp":
                    raise
                left[refusal.fact] = None
    outputs = {variant.plan.outputs for variant in variants.values()}
    if len(outputs) != 1:
        fact = "returns another number of tensors for one sample than for the next"
        raise _unsupported(operator, fact, "make an operator for each number of results")
    name = f"{package if namespace == DEFAULT_NAMESPACE else namespace}::{short}"
    return PlannedOperator(name, operator, signature, outputs.pop(), tuple(variants.values()), tuple(left))


def _calls(operator: BaseOperator, signature: Signature, dtypes: Sequence[torch.dtype]) -> Iterator[tuple[Any, ...]]:
    """The arguments of every sample that is not empty."""
    otherwise = "nothing is known of what to build"
    samples = required(operator.samples, operator.name, otherwise, place_of(operator.reference))
    for dtype in dtypes:
        for sample in samples("cpu", dtype):
            args = signature.bind(tuple(sample.args), dict(sample.kwargs))
            if all(argument.numel() for argument in args if isinstance(argument, torch.Tensor)):
                yield args


def _variants(
    operator: BaseOperator, signature: Signature, args: Sequence[Any], serving: Serving
) -> Iterator[PlannedVariant]:
    """Those for a call: without gradients, and with that of every floating tensor."""
    for given, gradients in ((args, False), (requiring_gradients(args), True)):
        try:
            plan, numbers = plan_call(operator, signature, given, gradients, serving)
        except UndeclaredMutation:
            fact = "changes its arguments, and operators of a wheel change none yet"
            raise _unsupported(operator, fact, "return new tensors") from None
        if (count := _most_given(plan)) > MOST_ARGUMENTS:
            raise _too_many(operator, count)
        if plan.asks_for_identity:
            fact = "asks which of its tensors are the same one, which kernels cannot tell"
            raise _unsupported(operator, fact, "decide that outside of the operator")
        if plan.records_unasked:
            fact = "switches gradients on for what it returns, which kernels cannot do"
            raise _unsupported(operator, fact, "switch them on around its calls")
        if not plan.result.is_plain:
            fact = "returns something else than tensors that it computes, each once"
            raise _unsupported(operator, fact, "return new tensors, each once")
        if plan.outputs == 1 and not plan.result.is_bare:
            fact = "returns a tuple of one tensor, which no schema of torch spells"
            raise _unsupported(operator, fact, "return the tensor itself")
        constants = {
            position: value
            for position, value in enumerate(args)
            if not isinstance(value, torch.Tensor) and position not in numbers
        }
        yield PlannedVariant(plan, constants, serving)


def _most_given(plan: Plan) -> int:
    """How many tensors and sizes a kernel takes."""
    saved = plan.saved
    read = len(saved.arguments) + len(saved.outputs) + saved.intermediates + len(plan.tangents) + len(saved.sizes)
    return max(len(plan.tensors), read if plan.backward else 0)


def plan_call(
    operator: BaseOperator, signature: Signature, args: Sequence[Any], gradients: bool, serving: Serving
) -> tuple[Plan, tuple[int, ...]]:
    """Derive for a call, with run-time numbers if possible; return their positions too.

    For CUDA they are constants: a kernel would wait for a number that comes to the GPU as a tensor.
    """
    numbers = {p for p, value in enumerate(args) if can_be_given(value)} if serving.backend == "cpp" else set()
    while numbers and not asks_for_types(operator.reference):
        prepared = given_at_run_time(args, sorted(numbers))
        try:
            return _derived(operator, signature, prepared, gradients, serving), prepared.numbers
        except NoKernel as refusal:
            numbers -= needed_in(prepared, refusal, _names(signature)).keys()
    return _derived(operator, signature, args, gradients, serving), ()


def _names(signature: Signature) -> Sequence[str]:
    return identifiers([parameter.name for parameter in signature.parameters])


def _derived(
    operator: BaseOperator, signature: Signature, args: Sequence[Any], gradients: bool, serving: Serving
) -> Plan:
    from opwright.operators.stages import derive  # imports sympy (0.3 s), which `import opwright` does without

    reference: Callable[..., Any] = signature.positional(operator.reference)
    specs = [
        replace(spec, device=serving.device) if isinstance(spec, TensorSpec) else spec
        for spec in describe(_names(signature), args, gradients=gradients, numbers=numbers_in(args))
    ]
    short = operator.name.split("::")[1]
    return guarded(reference, lambda: derive(reference, specs, short, operator.save, serving.backend)).plan


def packaged_kernel(variant: PlannedVariant, types: Sequence[str]) -> PackagedKernel | None:
    """A kernel without gradients as programs in C++ call it; None if C++ has not what it needs of a call."""
    plan = variant.plan
    found = {position: type(value).__name__ for position, value in variant.constants.items()}
    found |= {position: "int" if position in plan.integers else "float" for position in plan.numbers}
    of_types = all(kind == types[position] for position, kind in found.items())
    if not of_types or plan.needs_whole_memory or plan.orders:
        return None
    return PackagedKernel(
        name=plan.forward.name,
        tensors=plan.tensors,
        numbers=plan.numbers,
        constants=variant.constants,
        bounds=tuple((position, g.sign, g.relation, g.bound) for position, g in plan.number_guards),
        made=plan.outputs + plan.saved.intermediates,
        needs_row_major=plan.needs_row_major,
        is_cuda=variant.serving.backend == "cuda",
    )


def _annotated(parameter: Parameter) -> str:
    """How a parameter might be annotated: as its default, if it has one that is not None."""
    has_default = parameter.default is not inspect.Parameter.empty and parameter.default is not None
    return f"{parameter.name}: {type(parameter.default).__name__ if has_default else 'torch.Tensor'}"


def _too_many(operator: BaseOperator, count: int) -> OpwrightError:
    fact = f"has a kernel that takes {count} tensors and sizes, and PyTorch passes at most {MOST_ARGUMENTS}"
    return _unsupported(operator, fact, "make operators of its parts, or pass stacked tensors")


def _unsupported(operator: BaseOperator, fact: str, hint: str) -> OpwrightError:
    place = place_of(operator.reference)
    return WheelUnsupported(f"{operator.name} {fact}, so no wheel can hold it", place=place, hint=hint)
