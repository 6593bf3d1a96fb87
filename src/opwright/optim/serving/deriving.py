"""Derive: a definition, and what a kernel of it is wanted for → the source of that kernel."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from opwright.binding.variants.states import State
from opwright.codegen.header import Origin
from opwright.errors import NotElementwise
from opwright.optim.definition import FACTOR, STEP, Definition
from opwright.optim.kinds import Rounded, not_yet, update_of
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
        is_table: Whether it is for a table of tensors.
        given: The operands of a table; of a kernel for one tensor, its arguments.
        beside: The numbers of a table; of a kernel for one tensor, what its results replace.
    """

    source: Source
    is_table: bool
    given: tuple[str, ...]
    beside: tuple[str, ...]


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
    update, names = _update(definition, state, wanted, not_yet if kind.at_random else None)
    distant = [name for name, state in zip(definition.states, kind.states, strict=True) if state and state.is_distant]
    if for_gpus and distant:
        raise NotElementwise(
            f"the state '{distant[0]}' is a number in the memory of the GPU, where the processor would wait for it",
            hint="let its first value be a tensor without dimensions on the processor, as `step` is",
        )
    if for_gpus and not kind.is_flat:
        raise NotElementwise("its states or its gradient lie in memory in another order than the parameter")
    if kind.is_flat:
        with contextlib.suppress(*([] if kind.is_part or for_gpus else [NotElementwise])):
            there = (FACTOR,) if kind.distant_factor else ()
            return _table(definition, update, whole=not kind.is_part, for_gpus=for_gpus, distant=there)
    if kind.is_part:
        raise NotElementwise(
            "parts of the parameter and its states lie in memory in other orders",
            hint="make the parts contiguous before the optimizer is made",
        )
    return _for_one(definition, update, names)


def text_of(definition: Definition, state: State, wanted: Wanted) -> str:
    """The source of a kernel in C++."""
    update, names = _update(definition, state, wanted, None)
    with contextlib.suppress(NotElementwise):
        return _table(definition, update, whole=True, for_gpus=False).source.text
    return _for_one(definition, update, names).source.text


def _update(definition: Definition, state: State, wanted: Wanted, rounded: Rounded | None) -> tuple[Update, list[str]]:
    """The update of a kind as a Program, and the names of its arguments."""
    from opwright.operators.updates import derive_update  # imports sympy, which PyTorch's optimizers do not need

    update, names, results = update_of(definition, wanted.kind, wanted.hyper, rounded)
    specs, name = _specs_of(names, wanted), definition.name.lower()
    with hold_off_forks():
        derived = state.tracing(update, lambda reference: derive_update(reference, specs, results, name))
    return derived, names


def _table(
    definition: Definition, update: Update, *, whole: bool, for_gpus: bool, distant: Sequence[str] = ()
) -> Derived:
    from opwright.operators.updates import cuda_table_source, table_source  # as above

    origin = _origin(definition)
    if for_gpus:
        source, updated = cuda_table_source(update, STEP, origin, whole=whole, distant=distant)
        return Derived(source, True, updated.operands, updated.numbers)
    emitted = table_source(update, STEP, origin, whole=whole)
    return Derived(Source(emitted.source.name, emitted.source.text), True, emitted.operands, emitted.numbers)


def _for_one(definition: Definition, update: Update, names: Sequence[str]) -> Derived:
    from opwright.operators.updates import tensor_source  # as above

    return Derived(tensor_source(update, _origin(definition)), False, tuple(names), update.replaced)


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
