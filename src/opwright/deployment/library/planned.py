"""Exported → what its library holds: operators under names of their own, with kernels and references."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from opwright.codegen.cpp.registration import PackagedKernel, PackagedOperator
from opwright.deployment.library.graphs import ReferenceGraph, reference_graphs
from opwright.deployment.library.references import emit_references
from opwright.deployment.library.registration import LibraryOperator, emit_library
from opwright.deployment.programs.calls import place_of_node
from opwright.deployment.programs.exported import Exported, OperatorCall
from opwright.deployment.programs.settled import READ_IN_CPP
from opwright.deployment.wheels.planned import PlannedVariant, Serving, packaged_kernel, plan_call
from opwright.errors import DeploymentUnsupported, NoKernel, UntraceableReference
from opwright.toolchain.cpu_levels import CpuLevel, cpu_levels
from opwright.toolchain.recipe import INCLUDE_DIRECTORY, header_digests
from opwright.toolchain.source import Source
from opwright.tracing.interface.place import place_of

_SERVING = Serving("cpp", "cpu")
_CAPABILITIES = {"AVX512": 2, "AVX2": 1}  # of torch


@dataclass(frozen=True, slots=True, eq=False)
class PlannedLibrary:
    """What a library is built from.

    Attributes:
        name: "lib<name>.so".
        operators: What it registers, by the name of the operator in the exported program.
        library: Kernels and registrations, in C++.
        references: References, in C++.
        level: The processors that the kernels are for.
    """

    name: str
    operators: dict[str, PackagedOperator]
    library: Source
    references: Source
    level: CpuLevel


def plan_library(exported: Exported, *, shims: bool = False) -> PlannedLibrary:
    """Derive the kernels of a program's calls, and write down the references.

    Args:
        exported: The program.
        shims: Whether its operators are functions of C too.

    Raises:
        DeploymentUnsupported: If an operator takes what C++ cannot read.
        WheelUnsupported: If there are no processors of this kind to build for.
    """
    level = _level()
    by_name: dict[str, list[OperatorCall]] = {}
    for call in exported.calls:
        by_name.setdefault(call.operator.name, []).append(call)
    operators, graphs = {}, {}
    for name, calls in by_name.items():
        graphs[name] = reference_graphs(calls)
        operators[name] = _named(name, _operator(calls), graphs[name], shims=shims)
    listed = list(operators.values())
    references = [(o.packaged.name, o.packaged.types, graphs[name]) for name, o in operators.items()]
    return PlannedLibrary(
        exported.name,
        {name: operator.packaged for name, operator in operators.items()},
        Source(f"{exported.name}_library", emit_library(listed, shims=shims)),
        Source(f"{exported.name}_references", emit_references(references, level)),
        level,
    )


def _operator(calls: Sequence[OperatorCall]) -> LibraryOperator:
    call = calls[0]
    types = tuple(str(parameter.type) for parameter in call.signature.parameters)
    if strange := sorted(set(types) - READ_IN_CPP):
        raise DeploymentUnsupported(
            f"{call.operator.name} has parameters of type {', '.join(strange)}, which a program in C++ cannot pass",
            place=place_of_node(call.node) or place_of(call.operator.reference),
            hint="pass tensors, floats, ints and bools",
        )
    kernels: dict[str, tuple[PackagedKernel, Source]] = {}
    for variant in _variants(calls):
        kernel = packaged_kernel(variant, types)
        if kernel is not None and not variant.plan.is_random:
            kernels.setdefault(f"{kernel.name} {kernel.constants}", (kernel, variant.plan.forward))
    packaged = PackagedOperator(
        call.operator.name,
        str(call.signature.schema),
        types,
        call.outputs,
        tuple(kernel for kernel, _ in kernels.values()),
    )
    return LibraryOperator(packaged, tuple(source for _, source in kernels.values()))


def _variants(calls: Sequence[OperatorCall]) -> list[PlannedVariant]:
    """The kernels that the calls ask for; a call for which none can be derived is the reference's."""
    found = []
    for call in calls:
        for arguments in (call.arguments, *call.others):
            if not all(a.numel() for a in arguments if isinstance(a, torch.Tensor)):
                continue
            try:
                plan, numbers = plan_call(call.operator, call.signature, arguments, False, _SERVING)
            except (NoKernel, UntraceableReference):
                continue
            constants = {
                position: value
                for position, value in enumerate(arguments)
                if not isinstance(value, torch.Tensor) and position not in numbers
            }
            found.append(PlannedVariant(plan, constants, _SERVING))
    return found


def _named(name: str, operator: LibraryOperator, graphs: Sequence[ReferenceGraph], *, shims: bool) -> LibraryOperator:
    """Under a name that tells what it computes, so that deployments and the operators of Python live side by side.

    Functions of C are in one namespace for all of a process, and are called after the last part of the name.
    """
    told = [source.text for source in operator.sources] + [str(graph.program.graph) for graph in graphs]
    told += header_digests(INCLUDE_DIRECTORY).values()  # of another opwright, whose kernels may read alike
    digest = hashlib.sha256("\0".join([name, operator.packaged.schema, *told]).encode()).hexdigest()[:12]
    namespace, short = name.split("::")
    named = f"{namespace}_{digest}::{short}_{digest}" if shims else f"{namespace}_{digest}::{short}"
    return replace(operator, packaged=replace(operator.packaged, name=named))


def _level() -> CpuLevel:
    """The best level that this processor has."""
    rank = {"": 0, "avx2": 1, "avx512": 2}
    here = _CAPABILITIES.get(torch.backends.cpu.get_cpu_capability(), 0)
    return next(level for level in cpu_levels() if rank.get(level.capability, 0) <= here)
