"""ATen: the core operations of PyTorch, which `__torch_dispatch__` is given, as spellings to try."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import torch

from opwright.tensors.spellings.overloads import Overload, read_schema
from opwright.tensors.spellings.table import Spelling


@cache
def core_operations() -> tuple[tuple[Spelling, tuple[Overload, ...]], ...]:
    """The operations of core ATen that take a tensor, each with its overload."""
    found = []
    for operation in dict.fromkeys(_operations()):
        if torch.Tag.core in operation.tags and _takes_tensors(operation):
            name = f"aten.{operation._schema.name.removeprefix('aten::')}.{operation._overloadname}"
            found.append((Spelling(operation, name, name), (read_schema(operation._schema),)))
    return tuple(sorted(found, key=lambda pair: pair[0].name))


def _takes_tensors(operation: Any) -> bool:
    return any("Tensor" in str(argument.type) for argument in operation._schema.arguments)


def _operations() -> Iterator[Any]:
    for name in torch._C._dispatch_get_registrations_for_dispatch_key("CompositeExplicitAutograd"):
        yield from _named(name)
    for name in torch._C._dispatch_get_registrations_for_dispatch_key("CPU"):
        yield from _named(name)


@cache
def _named(name: str) -> tuple[Any, ...]:
    if not name.startswith("aten::"):
        return ()
    base, _, overload = name.removeprefix("aten::").partition(".")
    packet = getattr(torch.ops.aten, base, None)
    found = getattr(packet, overload or "default", None)
    return () if found is None else (found,)
