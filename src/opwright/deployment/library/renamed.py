"""A program that calls the operators of its library, by the names that they have there."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram

from opwright.deployment.library.planned import PlannedLibrary
from opwright.deployment.programs.exported import Exported


@contextmanager
def renamed(exported: Exported, planned: PlannedLibrary) -> Iterator[tuple[ExportedProgram, Mapping[str, OpOverload]]]:
    """Yield a copy of the program whose calls are those of the library, and these operators by their names in Python.

    They are declared in Python meanwhile, for compilers to see their shapes, and are gone afterwards.
    """
    originals = {call.operator.name: call.node.target for call in exported.calls}
    libraries: list[torch.library.Library] = []
    try:
        overloads = {name: _declared(planned, name, originals[name], libraries) for name in planned.operators}
        by_target = {originals[name]: overload for name, overload in overloads.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of torch, about itself
            program = copy.deepcopy(exported.program)
        for node in program.graph.nodes:
            if node.op == "call_function" and node.target in by_target:
                node.target = by_target[node.target]
        program.graph_module.recompile()
        yield program, overloads
    finally:
        for library in libraries:
            library._destroy()


def _declared(planned: PlannedLibrary, name: str, original: Any, libraries: list[torch.library.Library]) -> OpOverload:
    packaged = planned.operators[name]
    overload = _found(packaged.namespace, packaged.short_name)
    if overload is not None:  # a deployment of this operator is in this process
        return overload
    library = torch.library.Library(packaged.namespace, "FRAGMENT")
    libraries.append(library)
    library.define(packaged.schema, tags=(torch.Tag.pt2_compliant_tag,))
    library.impl(packaged.short_name, original, "CompositeExplicitAutograd")
    torch.library.register_fake(packaged.name, original, lib=library)
    declared = _found(packaged.namespace, packaged.short_name)
    assert declared is not None
    return declared


def _found(namespace: str, short: str) -> OpOverload | None:
    packet = getattr(getattr(torch.ops, namespace), short, None)
    return None if packet is None else packet.default
