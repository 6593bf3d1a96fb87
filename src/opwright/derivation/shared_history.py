"""Which outputs autograd differentiates one after the other, each in a backward pass of its own.

A backward pass frees what its nodes have saved. Another output can be differentiated after it, without
`retain_graph=True`, if no node of its graph has lost what it saved: nodes that save no tensor, as that of an addition,
may be shared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

Freed = tuple[tuple[int, ...], ...]
"""For each output, those whose backward pass frees what its own needs, by position; () if each frees everything."""


def freed_by(outputs: Sequence[torch.Tensor]) -> Freed:
    """Tell it for the outputs of a call, none of which was differentiated so far."""
    if len(outputs) == 1:
        return ()
    saving = [{node for node in _nodes_behind(output) if _saves_a_tensor(node)} for output in outputs]
    found = tuple(tuple(p for p, other in enumerate(saving) if other & own) for own in saving)
    return () if all(len(others) == len(outputs) for others in found) else found


def _nodes_behind(output: torch.Tensor) -> Iterator[Any]:
    left = [output.grad_fn]
    met = set(left)
    while left:
        node = left.pop()
        if node is not None:
            yield node
            new = {behind for behind, _ in node.next_functions} - met
            met |= new
            left += new


def _saves_a_tensor(node: Any) -> bool:
    """Whether a node has saved one: generated nodes have an attribute for each, custom functions a list of them."""
    if isinstance(node, torch.autograd.function.BackwardCFunction):
        return bool(node.saved_tensors)
    try:
        return any(_has_tensor(getattr(node, name)) for name in dir(node) if name.startswith("_saved_"))
    except RuntimeError:  # the function has differentiated it, and it is free already
        return True


def _has_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor) or (isinstance(value, tuple | list) and any(map(_has_tensor, value)))
