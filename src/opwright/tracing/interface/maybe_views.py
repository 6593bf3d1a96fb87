"""Results that are copies of contiguous arguments, and views of others: `x.mT.contiguous()`."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Node

aten = torch.ops.aten

_ALWAYS = {aten.contiguous, aten.reshape, aten.flatten}
_WITH_A_FORMAT = {aten.clone, aten._to_copy}  # what a trace has in place of `.contiguous()` and `.to(memory_format=)`
_PIECES = {aten.split, aten.split_with_sizes, aten.unbind, aten.chunk, aten.tensor_split}


def may_be_views(outputs: Sequence[Node]) -> bool:
    """Whether eager may return a view of an argument, or two of one tensor, where these are copies.

    Args:
        outputs: What a trace with contiguous arguments returns; none of it is a view there.
    """
    found = [_source(output) for output in outputs]
    shared = Counter(source for source, _ in found)
    return any(is_copied and (source.op == "placeholder" or shared[source] > 1) for source, is_copied in found)


def _source(node: Node) -> tuple[Node, bool]:
    """What a value is a view of if nothing is copied, and whether something is here."""
    is_copied = False
    while node.args and isinstance(before := node.args[0], Node):
        if _copies_if_needed(node, before):
            is_copied = True
        elif not _is_view(node):
            break
        node = before
    return node, is_copied


def _copies_if_needed(node: Node, before: Node) -> bool:
    packet = _packet(node)
    if packet in _WITH_A_FORMAT:
        has_format = node.kwargs.get("memory_format") not in (None, torch.preserve_format)
        return has_format and node.meta["val"].dtype is before.meta["val"].dtype
    return packet in _ALWAYS


def _is_view(node: Node) -> bool:
    if node.target is operator.getitem:
        return _packet(node.args[0]) in _PIECES
    target = node.target
    return isinstance(target, OpOverload) and (target.is_view or target.overloadpacket in _PIECES)


def _packet(node: Any) -> Any:
    return getattr(node.target, "overloadpacket", None)
