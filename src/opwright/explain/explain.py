"""explain: everything that was derived from an operator, as text of at most 100 columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch

from opwright.binding.environment import SERVED_DEFAULTS
from opwright.binding.rungs import RUNGS, Rung
from opwright.errors import OpwrightError
from opwright.explain.layout import MARGIN, labelled, wrapped
from opwright.explain.operations import operation_lines
from opwright.explain.origin import place_from_here
from opwright.explain.programs import program_lines
from opwright.explain.saved import saved_lines, shape_of
from opwright.introspection import signature_of
from opwright.ir.expressions.integer import substitute
from opwright.ir.program import Buffer, Program
from opwright.ir.relations.relations import LEAST_SIZE, relations
from opwright.operators.stages import Derivation
from opwright.tracing.interface.specs import ArgumentSpec, TensorSpec

if TYPE_CHECKING:
    from opwright.operators.base import BaseOperator

LEFT_TO_FUNCTION = (
    "the function itself: it is one operation of PyTorch, and these kernels would gain nothing over it. They serve "
    "calls pinned to them, and calls under transforms are derived as always"
)
AS_CALLED = "like the last call that was new to it, as it has no samples"


def explanation(operator: BaseOperator) -> str:
    """Explain an operator for its first sample, or else for its last new call; without both, explain what there is."""
    served_by, derivation = "", None
    try:
        derivation = operator.derivation()
        sections = _derived(derivation, AS_CALLED if operator.samples is None else "")
        served_by = LEFT_TO_FUNCTION if derivation.plan.left_to_function else ""
    except OpwrightError as refusal:
        sections = {
            "Kernels": [*labelled("none", refusal.fact), *(labelled("hint", refusal.hint) if refusal.hint else [])]
        }
    rungs = operator.rungs()
    sections["Rungs"] = [line for rung in rungs for line in _rung(rung)]
    if served_by:
        sections["Served by"] = wrapped(served_by)
    sections["Last call"] = wrapped(_last_call(operator, rungs))
    if derivation is not None:
        sections["Derived in"] = profile_lines(derivation.profile, operator.built_in_s)
    title = f"{operator.name}, from {operator.reference.__name__} at {place_from_here(operator)}"
    head = "\n".join([title, *wrapped(schema_of(operator), "", "    ")])
    return "\n\n".join([head, *(_section(title, lines) for title, lines in sections.items())])


def _section(title: str, lines: Sequence[str]) -> str:
    return "\n".join([title, *(MARGIN + line for line in lines)])


def _derived(derivation: Derivation, why: str) -> dict[str, list[str]]:
    sections = {
        "Traced for": [*map(_argument, derivation.specs), *([why] if why else [])],
        "Valid for": _validity(derivation.forward),
        "Graph": operation_lines(derivation.graph),
        "Forward": program_lines(derivation.forward),
    }
    if derivation.backward is None:
        return sections | {"Backward": ["none: no argument can have a gradient"]}
    return sections | {"Backward": program_lines(derivation.backward), "Saved for backward": saved_lines(derivation)}


def _argument(spec: ArgumentSpec) -> str:
    return f"{spec.name}: {shape_of(spec)}" if isinstance(spec, TensorSpec) else f"{spec.name} = {spec.value!r}"


def _validity(program: Program) -> list[str]:
    found = relations(program.guards)

    def shape(buffer: Buffer) -> str:
        sizes = ", ".join(str(substitute(size, found.equal)) for size in buffer.shape)
        return f"{buffer.name}: {buffer.dtype.value}[{sizes}]"

    return [
        *map(shape, program.inputs),
        f"on the CPU, with any strides; every named size at least {LEAST_SIZE}",
        *map(str, found.beyond_least),
    ]


def schema_of(operator: BaseOperator) -> str:
    """What the dispatcher calls it; without a schema, its name and the parameters of its function."""
    try:
        overload = operator.overload
    except OpwrightError:
        overload = None
    return str(overload._schema) if overload else f"{operator.name}{signature_of(operator.reference)}"


def profile_lines(profile: Mapping[str, float], built_in_s: float) -> list[str]:
    """How long the stages of a derivation took, and compilers after them, for a call of this process."""
    total = sum(profile.values())
    shares = ", ".join(f"{stage} {seconds:.3f}" for stage, seconds in profile.items())
    compiled = f"; compilers took {built_in_s:.1f} s for a call" if built_in_s else ""
    return wrapped(f"{total:.3f} s: {shares}{compiled}")


def _rung(rung: Rung) -> list[str]:
    return labelled(rung.name, rung_line(rung))


def rung_line(rung: Rung) -> str:
    """Where a rung comes from, or why it is missing."""
    if not rung.available:
        return f"missing: {rung.reason}"
    origin = {"reference": "the function as written", "derived": "derived", "written": "written by hand"}[rung.origin]
    loaded = f"; variants loaded in this process: {rung.variants}" if rung.name == "cpp" else ""
    return origin + loaded


def _last_call(operator: BaseOperator, rungs: Sequence[Rung]) -> str:
    served = operator.last_rung
    if operator.is_building:
        return f"served by {served}: kernels are still being built, after the time that OPWRIGHT_PATIENCE allows"
    if served is None:
        return "none in this process"
    faster = [rung.name for rung in rungs if rung.available and RUNGS.index(rung.name) > RUNGS.index(served)]
    if not faster:
        return f"served by {served}, the fastest rung here"
    if served != "composed":
        return f"served by {served}, to which it was pinned"
    if (dtype := torch.get_default_dtype()) not in SERVED_DEFAULTS:
        return (
            f"served by composed: torch's default dtype is {dtype}, and kernels are for float32 and float64 as the "
            "default, on which the types of results depend; tensors may have any dtype (hint: leave the default, and "
            f"make tensors with dtype={dtype})"
        )
    return (
        f"served by composed: it was pinned to it, or {faster[-1]} does not support such calls. Empty tensors, tensor "
        "subclasses, and calls under a transform, a mode, autocast or the compiler always go to the reference; for "
        f'other calls, {operator.reference.__name__}.on("{faster[-1]}") raises the reason'
    )
