"""In-place changes as pure operations: a change of a view is written back to its base."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._pytree import tree_leaves

from opwright.errors import NoKernel
from opwright.tracing.interface.memory import memory_of
from opwright.tracing.recording.overlaps import may_overlap

aten = torch.ops.aten


@dataclass(frozen=True, slots=True)
class SeenThrough:
    """How one tensor was made as a view of another.

    Attributes:
        source: Its base.
        func: The view operation.
        arguments: Its arguments after the source.
        keywords: Its keyword arguments.
        position: Which of several results it is; None if there is one.
        offset: Where a piece of a split begins.
    """

    source: torch.Tensor
    func: OpOverload
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    position: int | None = None
    offset: Any = 0

    def of(self, source: torch.Tensor) -> torch.Tensor:
        """The same view of another tensor."""
        seen: Any = self.func(source, *self.arguments, **self.keywords)
        found: torch.Tensor = seen if self.position is None else seen[self.position]
        return found

    def with_source(self, old: torch.Tensor, new: torch.Tensor) -> SeenThrough:
        """The same view, with one tensor replaced by another."""
        return replace(self, source=new) if self.source is old else self

    def written_back(self, value: torch.Tensor) -> torch.Tensor | None:
        """The source with the elements of the view replaced; None if that cannot be expressed."""
        rule = _WRITTEN_BACK.get(self.func.overloadpacket)
        return rule(self, value) if rule else None


def views_of(func: OpOverload, args: Sequence[Any], kwargs: dict[str, Any], result: Any) -> list[SeenThrough]:
    """How each result of an operation is a view of its first argument; empty if none is."""
    returned = func._schema.returns
    if not returned or returned[0].alias_info is None or not args or not isinstance(args[0], torch.Tensor):
        return []
    if isinstance(result, torch.Tensor):
        return [SeenThrough(args[0], func, tuple(args[1:]), kwargs)]
    dim = kwargs.get("dim", args[2] if len(args) > 2 else 0)
    offsets = [sum(member.shape[dim] for member in result[:position]) for position in range(len(result))]
    return [SeenThrough(args[0], func, tuple(args[1:]), kwargs, p, offset) for p, offset in enumerate(offsets)]


def functional_of(func: OpOverload) -> OpOverload | None:
    """The operation that returns what `func` writes into its first argument."""
    name = func._schema.name.removeprefix("aten::")
    if not name.endswith("_") or name.endswith("__"):
        return None
    packet = getattr(aten, _RENAMED.get(name, name.removesuffix("_")), None)
    wanted = [str(argument.type) for argument in func._schema.arguments]
    for overload in packet.overloads() if packet else ():
        candidate: OpOverload = getattr(packet, overload)
        kinds = [str(argument.type) for argument in candidate._schema.arguments]
        if kinds == wanted and not candidate._schema.is_mutable:
            return candidate
    return None


def written_by(func: OpOverload, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
    """The arguments that an operation writes into."""
    named = dict(zip((argument.name for argument in func._schema.arguments), args, strict=False)) | kwargs
    return [named.get(argument.name) for argument in func._schema.arguments if argument.is_write]


def memory_written(func: OpOverload, args: Sequence[Any], kwargs: dict[str, Any]) -> set[int]:
    """The memory that an operation writes into, by its keys.

    Raises:
        NoKernel: If it may read elements that it writes elsewhere, which eager refuses, or does in some order.
    """
    written = [each for each in tree_leaves(written_by(func, args, kwargs)) if isinstance(each, torch.Tensor)]
    read = [each for each in tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)]
    if any(memory_of(one) == memory_of(other) and may_overlap(one, other) for one in written for other in read):
        fact = f"the function changes a tensor by values in the same memory ({func.name()})"
        raise NoKernel(fact, hint="copy these first, by .clone()")
    return {memory_of(tensor) for tensor in written}


def without_out(func: OpOverload) -> OpOverload | None:
    """The operation that returns what `func` writes into its `out=` arguments."""
    given = [str(argument.type) for argument in func._schema.arguments if not argument.is_out]
    for overload in func.overloadpacket.overloads():
        candidate: OpOverload = getattr(func.overloadpacket, overload)
        kinds = [str(argument.type) for argument in candidate._schema.arguments]
        if kinds == given and not candidate._schema.is_mutable and len(given) < len(func._schema.arguments):
            return candidate
    return None


_RENAMED = {"normal_": "normal_functional"}


def _scattered(scatter: Callable[..., torch.Tensor]) -> Callable[[SeenThrough, torch.Tensor], torch.Tensor]:
    return lambda view, value: scatter(view.source, value, *view.arguments, **view.keywords)


def _permuted_back(view: SeenThrough, value: torch.Tensor) -> torch.Tensor:
    order = [dimension % value.dim() for dimension in view.arguments[0]]
    return value.permute([order.index(dimension) for dimension in range(value.dim())])


def _piece(view: SeenThrough, value: torch.Tensor) -> torch.Tensor:
    dim = view.keywords.get("dim", view.arguments[1] if len(view.arguments) > 1 else 0)
    return torch.slice_scatter(view.source, value, dim, view.offset, view.offset + value.shape[dim])


def _of_dtype(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The same bits, seen as another type, which `x.view(torch.int32)` changes."""
    return value if value.dtype is dtype else value.view(dtype)


_WRITTEN_BACK: dict[Any, Callable[[SeenThrough, torch.Tensor], torch.Tensor]] = {
    aten.slice: _scattered(aten.slice_scatter.default),
    aten.select: _scattered(aten.select_scatter.default),
    aten.diagonal: _scattered(aten.diagonal_scatter.default),
    aten.as_strided: _scattered(aten.as_strided_scatter.default),
    aten.transpose: lambda view, value: value.transpose(*view.arguments),
    aten.t: lambda _, value: value.t(),
    aten.permute: _permuted_back,
    aten.split: _piece,
    aten.split_with_sizes: _piece,
    **dict.fromkeys(
        (aten.unsqueeze, aten.squeeze, aten.view, aten._unsafe_view, aten.reshape),
        lambda view, value: _of_dtype(value, view.source.dtype).reshape(view.source.shape),
    ),
    **dict.fromkeys((aten.alias, aten.detach), lambda _, value: value),
}
