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

MAY_COPY = "opwright_may_copy"  # set on a function whose results may be copies where eager gives aliases: gradients


def refuse_views(
    outputs: Sequence[torch.Tensor], arguments: Sequence[Any], node_of: Callable[[torch.Tensor], Node]
) -> None:
    """Refuse results that are views of an argument or of each other; pieces of one split do not overlap.

    Raises:
        NoKernel: If there are such.
    """
    behind = {memory_of(argument) for argument in arguments if isinstance(argument, torch.Tensor)}
    seen: dict[int, Node] = {}
    for output in outputs:
        memory, origin = memory_of(output), _split_behind(node_of(output))
        if memory in behind:
            raise NoKernel("the function returns a view of one of its arguments", hint=RETURN_CLONE)
        if memory in seen and seen[memory] is not origin:
            raise NoKernel("the function returns two views of the same memory", hint=RETURN_CLONE)
        seen[memory] = origin


def _split_behind(node: Node) -> Node:
    source = node.args[0] if node.target is operator.getitem else None
    return source if isinstance(source, Node) else node
