"""gather: operator → facts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, assert_never

import torch

from opwright.benchmark.machine import this_machine
from opwright.codegen.formula import kernel_formulas, step_formulas
from opwright.drawing.mathml import formula_mathml
from opwright.errors import OpwrightError, RungMissing
from opwright.explain.explain import rung_line, schema_of
from opwright.explain.format_cpp import format_cpp
from opwright.explain.layout import counted
from opwright.explain.origin import place_from_here
from opwright.explain.saved import saved_tensors, shape_of
from opwright.explain.source import source_text
from opwright.ir.expressions.expression import Load, nodes
from opwright.ir.program import Call, Check, Iota, Kernel, Number, Program, Step, View
from opwright.operators.stages import Derivation, Lowered
from opwright.page.diagrams import described_work, diagram_of
from opwright.page.facts import PageFacts, PassFacts, SampleFacts, SavedFacts, StepFacts
from opwright.samples import Sample, told
from opwright.toolchain.source import Source
from opwright.tracing.interface.specs import TensorSpec
from opwright.version import VERSION

if TYPE_CHECKING:
    from opwright.operators.base import BaseOperator


def gather(operator: BaseOperator, samples: Iterable[Sample] | None = None, **measured: Any) -> PageFacts:
    """Collect what is known of an operator, for its first sample.

    Args:
        operator: Without samples or kernels, its page says why, and shows the rest.
        samples: Those that it was measured on; its own if not given.
        measured: What was measured of it, as JSON: fields of `PageFacts`.
    """
    facts = PageFacts(
        name=operator.name,
        place=str(place_from_here(operator)),
        schema=schema_of(operator),
        samples=_samples(operator, samples),
        traced_for=(),
        function=_function(operator),
        rungs=tuple((rung.name, rung_line(rung)) for rung in operator.rungs()),
        refusal="",
        passes=(),
        saved=(),
        machine=asdict(this_machine()) | {"opwright": VERSION},
        **measured,
    )
    try:
        derivation = operator.derivation()
    except OpwrightError as refusal:
        return replace(facts, refusal=str(refusal))
    return replace(
        facts,
        traced_for=tuple(_argument(spec) for spec in derivation.specs),
        passes=tuple(_passes(derivation)),
        saved=tuple(SavedFacts(each.name, each.shape, each.size_bytes, each.role) for each in saved_tensors(derivation))
        if derivation.backward
        else (),
    )


def _function(operator: BaseOperator) -> str:
    try:
        return source_text(operator, "composed")
    except RungMissing as missing:
        return f"# {missing.fact}"


def _samples(operator: BaseOperator, samples: Iterable[Sample] | None) -> tuple[SampleFacts, ...]:
    if samples is None:
        samples = told(operator.samples, operator.name)("cpu", torch.float32) if operator.samples else ()
    return tuple(SampleFacts(each.name, sum(tensor.numel() for tensor in each.tensors())) for each in samples)


def _argument(spec: Any) -> str:
    return f"{spec.name}: {shape_of(spec)}" if isinstance(spec, TensorSpec) else f"{spec.name} = {spec.value!r}"


def _passes(derivation: Derivation) -> list[PassFacts]:
    names = [spec.name for spec in derivation.specs]
    forward, backward = derivation.lowered
    plan = derivation.plan
    made = [_pass("forward", forward, derivation.forward, plan.forward, names)]
    if derivation.backward is not None and backward is not None and plan.backward is not None:
        made.append(_pass("backward", backward, derivation.backward, plan.backward, names))
    return made


def _pass(name: str, lowered: Lowered, program: Program, source: Source, arguments: Collection[str]) -> PassFacts:
    text = format_cpp(source.text)
    functions = _functions(text)
    kernels = [step for step in program.steps if isinstance(step, Kernel)]
    steps = []
    for step in program.steps:
        own = functions[kernels.index(step)] if isinstance(step, Kernel) and len(functions) == len(kernels) else ""
        steps.append(_step(step, arguments, own))
    return PassFacts(name, diagram_of(lowered.program), diagram_of(program), tuple(steps), text)


def _functions(source: str) -> list[str]:
    """The functions of kernels in an emitted source, in order; each has its formulas above it."""
    found = re.finditer(r"(?:^//   [^\n]*\n)+(^(?:template|static|inline)[^\n]*\n.*?^}\n)", source, re.M | re.S)
    return [match[1] for match in found]


def _step(step: Step, arguments: Collection[str], source: str) -> StepFacts:
    formulas = tuple(step_formulas(step))
    match step:
        case Kernel():
            mathml = tuple(formula_mathml(formula, arguments) for formula in kernel_formulas(step))
            return StepFacts("kernel", step.name, _kernel_summary(step), formulas, mathml, source)
        case Call():
            made = step.targets[0].name if step.targets else step.function.rpartition("::")[2].strip("_")
            return StepFacts("library", made, "an operation of PyTorch's library", formulas)
        case View():
            return StepFacts("view", step.target.name, "another way to see the same memory", formulas)
        case Number() | Iota():
            return StepFacts("number", step.target.name, "computed from the sizes", formulas)
        case Check():
            return StepFacts("check", step.buffer, "looked at before the kernels run", formulas)
        case _:
            assert_never(step)


def _kernel_summary(kernel: Kernel) -> str:
    extents = " × ".join(str(axis.extent) for axis in kernel.axes) or "one element"
    values = [*(let.value for let in kernel.lets), *(store.value for store in kernel.stores)]
    loads = counted(node.buffer for value in values for node in nodes(value) if isinstance(node, Load))
    stores = counted(store.buffer for store in kernel.stores)
    return f"{described_work(kernel)}, over {extents}; reads {loads}; writes {stores}"
