"""Derive: a definition, and what a kernel of it is wanted for → the source of that kernel."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from opwright.binding.variants.states import State
from opwright.codegen.header import Origin
from opwright.errors import NoKernel, NotElementwise
from opwright.optim.definition import FACTOR, STEP, Definition
from opwright.optim.kinds import Kind, Rounded, not_yet, update_of
from opwright.optim.serving.kernels import Wanted
from opwright.package import PACKAGE
from opwright.toolchain.process.forks import hold_off_forks
from opwright.toolchain.source import Source
from opwright.tracing.interface.place import function_behind
from opwright.tracing.interface.specs import ArgumentSpec, NumberSpec, TensorSpec

if TYPE_CHECKING:
    from opwright.operators.updates import Update


@dataclass(frozen=True, slots=True)
class Derived:
    """What a derivation comes to, before it is built.

    Attributes:
        source: What is built.
        operands: The tensors of a row of its table.
        numbers: The numbers of a row.
        one_by_one: Whether it runs kernels for each tensor.
    """

    source: Source
    operands: tuple[str, ...]
    numbers: tuple[str, ...]
    one_by_one: bool


def derive(definition: Definition, state: State, wanted: Wanted, *, for_gpus: bool) -> Derived:
    """Derive a kernel.

    Args:
        definition: The update of one parameter.
        state: What it reads outside of its arguments.
        wanted: What the kernel is for.
        for_gpus: Whether it is in CUDA.

    Raises:
        OpwrightError: If there can be none.
    """
    kind = wanted.kind
    update = _update(definition, state, wanted, not_yet if kind.at_random else None)
    distant = [name for name, state in zip(definition.states, kind.states, strict=True) if state and state.is_distant]
    if for_gpus and distant:
        raise NotElementwise(
            f"the state '{distant[0]}' is a number in the memory of the GPU, where the processor would wait for it",
            hint="let its first value be a tensor without dimensions on the processor, as `step` is",
        )
    if kind.is_flat:
        with contextlib.suppress(*([] if kind.is_part else [NotElementwise])):
            there = (FACTOR,) if kind.distant_factor else ()
            return _together(definition, update, whole=not kind.is_part, for_gpus=for_gpus, distant=there)
    if kind.is_part:
        raise NotElementwise(
            "parts of the parameter and its states lie in memory in other orders",
            hint="make the parts contiguous before the optimizer is made",
        )
    if for_gpus and kind.at_random:
        raise NoKernel(
            "what is computed of rows and columns is not rounded at random on a GPU",
            hint='leave rounding="nearest", or keep float32 masters',
        )
    return _one_by_one(definition, update, _scalars(definition, kind), for_gpus=for_gpus)


def text_of(definition: Definition, state: State, wanted: Wanted) -> str:
    """The source of a kernel in C++."""
    update = _update(definition, state, wanted, None)
    with contextlib.suppress(NotElementwise):
        return _together(definition, update, whole=True, for_gpus=False).source.text
    return _one_by_one(definition, update, _scalars(definition, wanted.kind), for_gpus=False).source.text


def _update(definition: Definition, state: State, wanted: Wanted, rounded: Rounded | None) -> Update:
    """The update of a kind as a Program."""
    from opwright.codegen.cpp.names import CPP, spelling
    from opwright.operators.updates import derive_update  # imports sympy, which PyTorch's optimizers do not need

    update, names, results = update_of(definition, wanted.kind, wanted.hyper, rounded)
    specs, name = _specs_of(names, wanted), spelling(definition.name.lower())
    name = f"{name}_update" if name in CPP.reserved() else name
    with hold_off_forks():
        derived: Update = state.tracing(update, lambda reference: derive_update(reference, specs, results, name))
    return derived


def _scalars(definition: Definition, kind: Kind) -> list[str]:
    """The states that the processor keeps as numbers."""
    pairs = zip(definition.states, kind.states, strict=True)
    return [name for name, state in pairs if state and state.is_number and not state.is_distant]


def _together(
    definition: Definition, update: Update, *, whole: bool, for_gpus: bool, distant: Sequence[str] = ()
) -> Derived:
    from opwright.operators.updates import cuda_table_source, table_source  # as above

    origin = _origin(definition)
    if for_gpus:
        source, updated = cuda_table_source(update, STEP, origin, whole=whole, distant=distant)
        return Derived(source, updated.operands, updated.numbers, one_by_one=False)
    emitted = table_source(update, STEP, origin, whole=whole)
    source = Source(emitted.source.name, emitted.source.text)
    return Derived(source, emitted.operands, emitted.numbers, one_by_one=False)


def _one_by_one(definition: Definition, update: Update, scalars: Sequence[str], *, for_gpus: bool) -> Derived:
    from opwright.operators.updates import cuda_each_source, each_source  # as above

    origin = _origin(definition)
    if for_gpus:
        source, updated = cuda_each_source(update, STEP, scalars, origin)
        return Derived(source, updated.operands, updated.row, one_by_one=True)
    emitted = each_source(update, STEP, scalars, origin)
    source = Source(emitted.source.name, emitted.source.text)
    return Derived(source, emitted.operands, emitted.numbers, one_by_one=True)


def _origin(definition: Definition) -> Origin | None:
    function = function_behind(definition.function)
    if function is None or function.__code__.co_filename.startswith(str(PACKAGE)):
        return None
    return Origin(function.__qualname__, function.__code__.co_filename.rpartition("/")[2])


def _specs_of(names: Sequence[str], wanted: Wanted) -> list[ArgumentSpec]:
    """What the arguments of an update are, for its trace."""
    numbers, tensors = wanted.numbers, wanted.tensors
    specs: list[ArgumentSpec] = []
    for name in names:
        if name == FACTOR and wanted.kind.distant_factor:
            specs.append(TensorSpec(name, torch.float64, ()))
        elif name in numbers:
            specs.append(NumberSpec(name, numbers[name]))
        else:
            specs.append(TensorSpec(name, tensors[name].dtype, tuple(tensors[name].shape)))
    return specs
