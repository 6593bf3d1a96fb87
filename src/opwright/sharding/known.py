"""The rules of an operator for one kind of arguments, derived and proven once in a process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from opwright.errors import OpwrightError
from opwright.ir.expressions.integer import Condition, holds
from opwright.operators.base import BaseOperator
from opwright.sharding.derive import Derived, derive_rules
from opwright.sharding.prove import Subject, proven
from opwright.sharding.rule import Told
from opwright.tracing.interface.specs import ArgumentSpec, ConstantSpec, TensorSpec
from opwright.tracing.recording.faults import fault_of

_MOST_KINDS = 256
_MOST_OF_A_KIND = 16


@dataclass(frozen=True, slots=True)
class _Entry:
    """Rules, and the sizes for which they are valid."""

    derived: Derived
    guards: tuple[Condition, ...] | None
    sizes: Mapping[str, int]

    def holds(self, sizes: Mapping[str, int]) -> bool:
        return self.sizes == sizes if self.guards is None else all(holds(guard, sizes) for guard in self.guards)


_known: WeakKeyDictionary[BaseOperator, dict[Any, list[_Entry]]] = WeakKeyDictionary()


def specs_of(operator: BaseOperator, args: Sequence[Any], sizes: Sequence[Sequence[int]]) -> tuple[ArgumentSpec, ...]:
    """What the arguments are as a whole.

    Args:
        operator: The operator.
        args: Flat arguments; of tensors, only the dtype matters.
        sizes: The sizes of the whole tensors, one after the other.
    """
    remaining = iter(sizes)
    return tuple(
        TensorSpec(name, arg.dtype, tuple(next(remaining))) if hasattr(arg, "dtype") else ConstantSpec(name, arg)
        for name, arg in zip(operator.argument_names, args, strict=True)
    )


def rules_for(operator: BaseOperator, specs: Sequence[ArgumentSpec]) -> Derived:
    """The rules; none, and why, if the structure of the operator cannot be read."""
    kinds = _known.setdefault(operator, {})
    try:
        key = tuple(map(_kind, specs)), operator.outside_now()
    except OpwrightError as refusal:
        return Derived((), (Told("everything", refusal.fact),))
    sizes = {f"{s.name}_size_{d}": n for s in specs if isinstance(s, TensorSpec) for d, n in enumerate(s.sizes)}
    entries = kinds.setdefault(key, [])
    for entry in entries:
        if entry.holds(sizes):
            return entry.derived
    derived, guards = _derived(operator, specs)
    if len(kinds) > _MOST_KINDS:
        kinds.clear()
    del entries[: max(0, len(entries) + 1 - _MOST_OF_A_KIND)]
    entries.append(_Entry(derived, guards, sizes))
    return derived


def _kind(spec: ArgumentSpec) -> Any:
    """What a trace is special to, besides its guards: sizes of one are numbers in it."""
    if isinstance(spec, TensorSpec):
        return spec.name, spec.dtype, tuple(min(size, 2) for size in spec.sizes)
    return spec.name, type(spec.value), spec.value


def _derived(operator: BaseOperator, specs: Sequence[ArgumentSpec]) -> tuple[Derived, tuple[Condition, ...] | None]:
    """The rules, and for which sizes they are valid; None for these alone."""
    tensors = [spec for spec in specs if isinstance(spec, TensorSpec)]
    if any(0 in spec.sizes for spec in tensors):
        return Derived((), (Told("everything", "a tensor is empty as a whole"),)), None
    try:
        structure = operator.structure(specs)
        subject = Subject(operator.flat_reference, specs, structure)
        return proven(subject, derive_rules(structure, tensors)), structure.program.guards
    except Exception as error:
        refusal = error if isinstance(error, OpwrightError) else fault_of(error)
        return Derived((), (Told("everything", refusal.fact),)), None
