"""The calls of a program → operators of ONNX Runtime, each with the kernels that it may run."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir
import torch

from opwright.binding.serving.numbers import can_be_given, given_at_run_time, needed_in, numbers_in
from opwright.codegen.cpp.program import takes_lists
from opwright.deployment.onnx.attributes import attributes_of
from opwright.deployment.onnx.custom.sizes import with_sizes_of_one
from opwright.deployment.onnx.nodes import domain_of, name_of
from opwright.deployment.programs.exported import OperatorCall
from opwright.errors import DeploymentUnsupported, NoKernel, OpwrightError
from opwright.ir.names.fresh import fresh
from opwright.ir.names.identifiers import identifiers
from opwright.ir.program import Call, Program, programs_of
from opwright.toolchain.source import Source
from opwright.tracing.guarded import guarded
from opwright.tracing.interface.signature import place_of
from opwright.tracing.interface.specs import describe
from opwright.tracing.scalars.guards import NumberGuard
from opwright.tracing.scalars.type_questions import asks_for_types

_HINT = 'deploy it with operators="function"'


@dataclass(frozen=True, slots=True)
class Variant:
    """A kernel of an operator.

    Attributes:
        source: Its C++.
        program: What that was emitted from.
        operands: What it takes: inputs of the node, and numbers as -1, -2, ….
        fixed: The numbers that it is for, by their place among the attributes.
        guards: Conditions on the others.
    """

    source: Source
    program: Program
    operands: tuple[int, ...]
    fixed: tuple[tuple[int, float], ...]
    guards: tuple[tuple[int, NumberGuard], ...]


@dataclass(frozen=True, slots=True)
class Attribute:
    """A number of an operator: its name, how the node holds it, and whether it is an integer."""

    name: str
    kind: ir.AttributeType
    is_integer: bool


@dataclass(slots=True)
class CustomOperator:
    """An operator of ONNX Runtime, for one kind of tensors.

    Attributes:
        domain: Its domain.
        name: Its name there.
        full_name: "namespace::name", for messages.
        inputs: The dtypes of what it takes.
        outputs: Those of its results.
        attributes: Its numbers.
        variants: Its kernels, tried in this order.
    """

    domain: str
    name: str
    full_name: str
    inputs: tuple[torch.dtype, ...]
    outputs: tuple[torch.dtype, ...]
    attributes: tuple[Attribute, ...]
    variants: list[Variant] = field(default_factory=list)


class CustomOperators:
    """Collects what the calls of a program need."""

    def __init__(self) -> None:
        self._known: dict[Any, CustomOperator] = {}

    @property
    def operators(self) -> tuple[CustomOperator, ...]:
        """All of them."""
        return tuple(self._known.values())

    def name_for(self, call: OperatorCall) -> str:
        """The name of the operator for a call, in the domain of its operator.

        Raises:
            DeploymentUnsupported: If it has no kernels that run without PyTorch.
        """
        attributes = _numbers(call)
        words = [
            repr(value)
            for value in call.arguments
            if not isinstance(value, torch.Tensor) and type(value) not in (int, float)
        ]
        tensors = [value for value in call.arguments if isinstance(value, torch.Tensor)]
        kinds = tuple((tensor.dtype, tensor.dim()) for tensor in tensors)
        outputs = _outputs(call)
        key = (call.operator.name, kinds, outputs, attributes, tuple(words))
        if key not in self._known:
            taken = {each.name for each in self._known.values() if each.domain == domain_of(call)}
            inputs = tuple(tensor.dtype for tensor in tensors)
            name = fresh(name_of(call), taken)
            self._known[key] = CustomOperator(domain_of(call), name, call.operator.name, inputs, outputs, attributes)
        found = self._known[key]
        self._add(found, _variant(call, call.arguments, attributes))
        for arguments in with_sizes_of_one(call):
            with contextlib.suppress(DeploymentUnsupported):  # what takes no such sizes says so when it runs
                self._add(found, _variant(call, arguments, attributes))
        return found.name

    def _add(self, found: CustomOperator, variant: Variant) -> None:
        known = [(each.source.name, each.fixed) for each in found.variants]
        if (variant.source.name, variant.fixed) not in known:
            found.variants.append(variant)


def _numbers(call: OperatorCall) -> tuple[Attribute, ...]:
    held = attributes_of(call)
    names = identifiers([parameter.name for parameter in call.signature.parameters])
    return tuple(
        Attribute(name, held[name].type, type(value) is int)
        for name, value in zip(names, call.arguments, strict=True)
        if type(value) in (int, float) and name in held
    )


def _outputs(call: OperatorCall) -> tuple[torch.dtype, ...]:
    made = call.node.meta["val"]
    return tuple(each.dtype for each in (made if isinstance(made, tuple | list) else (made,)))


def _variant(call: OperatorCall, arguments: Sequence[Any], attributes: Sequence[Attribute]) -> Variant:
    given = [value.contiguous() if isinstance(value, torch.Tensor) else value for value in arguments]
    try:
        derived = _derived(call, given)
    except OpwrightError as refusal:
        raise _unsupported(call, f"has no kernel: {refusal.fact}") from refusal
    plan, program = derived.plan, derived.forward
    for part in programs_of(program):
        for step in part.steps:
            if isinstance(step, Call):
                raise _unsupported(call, f"calls {step.function}, which is PyTorch's and not in ONNX Runtime")
    if not plan.result.is_plain or plan.is_random or plan.orders or plan.needs_whole_memory or takes_lists(program):
        raise _unsupported(call, "has a kernel that only PyTorch can call")
    tensors = [place for place, value in enumerate(given) if isinstance(value, torch.Tensor)]
    names = identifiers([parameter.name for parameter in call.signature.parameters])
    place_in = {place: number for number, each in enumerate(attributes) for place in [list(names).index(each.name)]}
    return Variant(
        source=plan.forward,
        program=program,
        operands=tuple(-1 - place_in[p] if p in plan.numbers else tensors.index(p) for p in plan.tensors),
        fixed=tuple(
            (number, float(arguments[place])) for place, number in place_in.items() if place not in plan.numbers
        ),
        guards=tuple((place_in[place], guard) for place, guard in plan.number_guards),
    )


def _derived(call: OperatorCall, given: Sequence[Any]) -> Any:
    """Derive kernels that take numbers at run time where that can be."""
    from opwright.operators.stages import derive  # imports sympy, which `import opwright` does without

    operator = call.operator
    reference = call.signature.positional(operator.reference)
    names = identifiers([parameter.name for parameter in call.signature.parameters])
    open_numbers = {place for place, value in enumerate(given) if can_be_given(value)}
    if asks_for_types(operator.reference):
        open_numbers = set()
    while True:
        prepared = given_at_run_time(given, sorted(open_numbers)) if open_numbers else list(given)
        specs = describe(names, prepared, gradients=False, numbers=numbers_in(prepared))
        try:
            return guarded(reference, functools.partial(derive, reference, specs, name_of(call), "auto", "cpp"))
        except NoKernel as refusal:
            if not open_numbers:
                raise
            open_numbers -= needed_in(prepared, refusal, names).keys()


def _unsupported(call: OperatorCall, fact: str) -> DeploymentUnsupported:
    return DeploymentUnsupported(f"{call.operator.name} {fact}", place=place_of(call.operator.reference), hint=_HINT)
