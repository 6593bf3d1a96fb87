"""The kinds of arguments that an ejected project has kernels for, from the operator's samples.

samples → kinds     one for each pattern of dtypes, ranks, sizes of one and constants
kinds   → forms     one for each `autograd.Function`: kinds with the same constants and the same saved values
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from opwright.binding.serving.numbers import Numbers, needed_in, numbers_in
from opwright.binding.variants.variant import Plan
from opwright.derivation.forward import is_differentiable
from opwright.errors import NoKernel, NotEjectable, OpwrightError, SamplesMissing
from opwright.ir.expressions.integer import holds
from opwright.ir.program import Call, Program, programs_of
from opwright.operators.stages import Derivation
from opwright.samples import Sample, required
from opwright.tracing.interface.signature import Signature, place_of, read_signature
from opwright.tracing.interface.specs import ConstantSpec, NumberSpec, TensorSpec

if TYPE_CHECKING:
    from opwright.operators.base import BaseOperator


@dataclass(frozen=True, slots=True)
class Kind:
    """The kind of arguments that one pair of kernels serves.

    Attributes:
        label: A C identifier: "float32", "float64_2".
        derivation: The derivation for them.
        sample: The first sample of the kind, its arguments ordered by parameter.
        cuda: The derivation for the same arguments on a GPU; None if it has no kernels there.
        without_cuda: Why it has none.
    """

    label: str
    derivation: Derivation
    sample: Sample
    cuda: Derivation | None = None
    without_cuda: str = ""


@dataclass(frozen=True, slots=True)
class Form:
    """Kinds that one `autograd.Function` serves.

    Attributes:
        suffix: Distinguishes its names from those of other forms: "", "_2", …
        constants: Value by parameter, without the parameters that are tensors in this form.
        kinds: In the order of the samples.
    """

    suffix: str
    constants: dict[str, Any]
    kinds: tuple[Kind, ...]

    @property
    def derivation(self) -> Derivation:
        """The derivation of the first kind; arguments and saved tensors are the same for all."""
        return self.kinds[0].derivation


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A sample that kernels do not serve, and why."""

    sample: str
    reason: str


def kinds_of(operator: BaseOperator, dtypes: Sequence[torch.dtype]) -> tuple[tuple[Kind, ...], tuple[LeftOut, ...]]:
    """Derive kernels for every kind of sample.

    Args:
        operator: An operator with samples.
        dtypes: The dtypes to make samples of.

    Raises:
        SamplesMissing: If there are none.
        NotEjectable: If no sample has kernels, or the operator needs something that a project cannot have.
    """
    signature = read_signature(operator.reference)
    samples = list(_samples(operator, signature, dtypes))
    if not samples:
        asked = ", ".join(str(dtype).removeprefix("torch.") for dtype in dtypes)
        raise SamplesMissing(
            f"{_name(operator)} has no samples for {asked}",
            place=place_of(operator.reference),
            hint="let samples= yield some, or name another dtype",
        )
    numbers = Numbers(operator.reference)
    for sample in samples:
        numbers.prepare(sample.args)
    kinds: list[Kind] = []
    left: list[LeftOut] = []
    hints: list[str | None] = []
    for sample in samples:
        if any(serves(kind, sample) for kind in kinds):
            continue
        try:
            derivation = _derive(operator, sample, numbers)
        except NotEjectable:
            raise
        except OpwrightError as error:
            left.append(LeftOut(describe_sample(sample), error.fact))
            hints.append(error.hint)
            continue
        cuda, reason = _on_gpu(operator, derivation)
        kinds.append(Kind(_label(sample, [kind.label for kind in kinds]), derivation, sample, cuda, reason))
    if not kinds:
        fact, place = f"no sample has a kernel: {left[0].reason}", place_of(operator.reference)
        raise NotEjectable(fact, place=place, hint=hints[0])
    return tuple(kinds), tuple(left)


def forms_of(kinds: Sequence[Kind], signature: Signature) -> tuple[Form, ...]:
    """Group kinds by what the Python side of a project distinguishes."""
    groups: list[tuple[Any, dict[str, Any], list[Kind]]] = []
    for kind in kinds:
        constants = _constants(kind, signature)
        shape = (repr(constants), _structure(kind.derivation.plan))
        for key, _, members in groups:
            if key == shape and all(_told_apart(kind, member) for member in members):
                members.append(kind)
                break
        else:
            groups.append((shape, constants, [kind]))
    return tuple(
        Form(f"_{number}" if number > 1 else "", constants, tuple(members))
        for number, (_, constants, members) in enumerate(groups, 1)
    )


def describe_sample(sample: Sample) -> str:
    """The arguments of a sample in short: "float32[16, 384], float32[16, 128], -1"."""
    return ", ".join(
        f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
        if isinstance(value, torch.Tensor)
        else repr(value)
        for value in sample.args
    )


def serves(kind: Kind, sample: Sample) -> bool:
    """Whether a kind's kernels serve a sample, judged by dtypes, sizes and constants."""
    sizes: dict[str, int] = {}
    for spec, value in zip(kind.derivation.specs, sample.args, strict=True):
        match spec:
            case TensorSpec(name, dtype, traced):
                if not isinstance(value, torch.Tensor) or value.dtype != dtype or value.dim() != len(traced):
                    return False
                if any((size == 1) != (now == 1) or now == 0 for size, now in zip(traced, value.shape, strict=True)):
                    return False
                sizes |= {f"{name}_size_{dimension}": size for dimension, size in enumerate(value.shape)}
            case ConstantSpec(_, constant):
                if isinstance(value, torch.Tensor) or repr(value) != repr(constant):
                    return False
            case NumberSpec(_, number):
                if type(value) is not type(number):
                    return False
    return all(holds(guard, sizes) for guard in kind.derivation.forward.guards)


def refuse_options(operator: BaseOperator) -> None:
    """Refuse an operator that mutates or casts its arguments, which ejected projects do not support.

    Raises:
        NotEjectable: If it does.
    """
    if operator._mutated:
        raise NotEjectable(
            f"{_name(operator)} changes its arguments",
            place=place_of(operator.reference),
            hint="eject an operator that returns new tensors",
        )
    if operator.autocast is not None:
        raise NotEjectable(
            f"{_name(operator)} has an autocast policy, but an ejected operator runs its reference under autocast",
            place=place_of(operator.reference),
            hint="eject it without autocast=",
        )


def _samples(operator: BaseOperator, signature: Signature, dtypes: Sequence[torch.dtype]) -> Iterator[Sample]:
    otherwise = "it is unknown which kernels to eject"
    samples = required(operator.samples, _name(operator), otherwise, place_of(operator.reference))
    for dtype in dtypes:
        for sample in samples("cpu", dtype):
            yield Sample(signature.bind(tuple(sample.args), dict(sample.kwargs)), {}, sample.name)


def _derive(operator: BaseOperator, sample: Sample, numbers: Numbers) -> Derivation:
    tracked = [value.detach().requires_grad_() if is_differentiable(value) else value for value in sample.args]
    derivation: Derivation | None = None
    while derivation is None:
        arguments, _ = numbers.prepare(tracked)
        try:
            derivation = operator._derive(arguments, recording=True)
        except NoKernel as refusal:
            if not numbers_in(arguments):
                raise
            numbers.settle(tracked, needed_in(arguments, refusal, operator._names))
    _refuse_what_cannot_stand_alone(operator, derivation)
    return derivation


def _on_gpu(operator: BaseOperator, derivation: Derivation) -> tuple[Derivation | None, str]:
    """Derive the same for tensors on a GPU; None and the reason if that fails, or would need another Python side."""
    if derivation.plan.numbers:
        return None, "a kernel would wait for numbers from the CPU"
    try:
        on_gpu = operator._derive_for(
            [replace(spec, device="cuda") if isinstance(spec, TensorSpec) else spec for spec in derivation.specs],
            "cuda",
        )
        on_gpu.cuda_sources()
    except OpwrightError as error:
        return None, error.fact
    if _structure(on_gpu.plan) != _structure(derivation.plan):
        return None, "it saves other values for its backward pass there"
    return on_gpu, ""


def _refuse_what_cannot_stand_alone(operator: BaseOperator, derivation: Derivation) -> None:
    plan, place = derivation.plan, place_of(operator.reference)
    if plan.asks_for_identity:
        fact = f"{_name(operator)} asks which of its tensors are the same one, which kernels cannot tell"
        raise NotEjectable(fact, place=place, hint="decide that outside of the operator")
    if plan.records_unasked:
        fact = f"{_name(operator)} switches gradients on for what it returns, which kernels cannot do"
        raise NotEjectable(fact, place=place, hint="switch them on around its calls")
    if plan.is_random:
        raise NotEjectable(
            f"{_name(operator)} draws random numbers; its second derivative would draw new ones",
            place=place,
            hint="draw them outside of the operator, and pass them as an argument",
        )
    if plan.needs_whole_memory:
        fact = f"{_name(operator)} depends on the memory layout of its arguments"
        raise NotEjectable(fact, place=place, hint="index or reshape instead of as_strided")
    if not plan.result.is_plain:
        raise NotEjectable(
            f"{_name(operator)} does not return a new tensor, or a tuple of new tensors",
            place=place,
            hint="return tensors that it computes, each only once",
        )
    for program in (derivation.forward, derivation.backward):
        for name in sorted(_foreign_calls(program) if program else ()):
            fact = f"{_name(operator)} calls {name}, which is not part of PyTorch"
            raise NotEjectable(fact, place=place, hint="call it outside of the operator")


def _foreign_calls(program: Program) -> set[str]:
    calls = {step.function for part in programs_of(program) for step in part.steps if isinstance(step, Call)}
    return {name for name in calls if not name.startswith("aten::")}


def _label(sample: Sample, taken: Sequence[str]) -> str:
    """A label from the dtype of the first tensor; if that is taken, ranks and a number are added."""
    tensors = sample.tensors()
    dtype = str(tensors[0].dtype).removeprefix("torch.") if tensors else "constant"
    ranks = "_".join(f"{tensor.dim()}d" for tensor in tensors)
    wishes = [dtype, f"{dtype}_{ranks}", *(f"{dtype}_{ranks}_{number}" for number in range(2, len(taken) + 3))]
    return next(wish for wish in wishes if wish not in taken)


def _constants(kind: Kind, signature: Signature) -> dict[str, Any]:
    return {
        parameter.name: spec.value
        for parameter, spec in zip(signature.parameters, kind.derivation.specs, strict=True)
        if isinstance(spec, ConstantSpec)
    }


def _structure(plan: Plan) -> Any:
    """Everything that the Python side of a project depends on."""
    saved = plan.saved
    return (
        (plan.outputs, plan.tensors, plan.numbers, plan.integers, plan.number_guards, plan.tangents, plan.gradients),
        (saved.arguments, saved.outputs, saved.intermediates, saved.sizes, saved.contributing),
        (plan.needs_row_major, plan.backward is None),
    )


def _told_apart(left: Kind, right: Kind) -> bool:
    """Whether dtypes and ranks distinguish the kernels of two kinds, forward and backward."""

    def seen(program: Program | None) -> Any:
        return program and [(buffer.dtype, len(buffer.shape)) for buffer in program.inputs]

    one, other = left.derivation, right.derivation
    forward = seen(one.forward) != seen(other.forward)
    return forward and (one.backward is None or seen(one.backward) != seen(other.backward))


def _name(operator: BaseOperator) -> str:
    return operator.reference.__name__
