"""Results must not share memory: kernels write new tensors, so the reference must return new tensors too."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import Node

from opwright.errors import NoKernel
from opwright.tracing.hints import RETURN_CLONE
from opwright.tracing.interface.memory import memory_of

AS_TRACED = "opwright_as_traced"  # set on a function: takes what that returned in a trace, gives what kernels return
MAY_COPY = "opwright_may_copy"  # set on a function whose results may be copies where eager gives aliases: gradients


def refuse_views(
    outputs: Sequence[torch.Tensor], arguments: Sequence[Any], node_of: Callable[[torch.Tensor], Node]
) -> None:
    """Refuse results that are views of an argument or of each other; pieces of one split do not overlap.

    Raises:
        NoKernel: If there are such.
    """
    behind = {memory_of(argument) for argument in arguments if isinstance(argument, torch.Tensor)}
    seen: dict[int, list[tuple[Node, Any]]] = {}
    for output in outputs:
        memory, piece = memory_of(output), _piece_behind(node_of(output))
        if memory in behind:
            raise NoKernel("the function returns a view of one of its arguments", hint=RETURN_CLONE)
        others = seen.setdefault(memory, [])
        if any(split is not piece[0] or position == piece[1] for split, position in others):
            raise NoKernel("the function returns two views of the same memory", hint=RETURN_CLONE)
        others.append(piece)


def _piece_behind(node: Node) -> tuple[Node, Any]:
    """The split that a tensor is a piece of, perhaps in another shape, and which piece; or the tensor alone."""
    source: Any = node
    while source.target is not operator.getitem:
        value, source = source.meta["val"], source.args[0] if source.args else None
        if not isinstance(source, Node) or not isinstance(source.meta["val"], torch.Tensor):
            return node, None
        if memory_of(source.meta["val"]) != memory_of(value):
            return node, None
    split, position = source.args
    return split, position
