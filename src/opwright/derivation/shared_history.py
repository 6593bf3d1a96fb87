"""How the graphs that autograd has behind the outputs of a call share nodes.

Outputs may be differentiated one after the other, each in a backward pass of its own. A backward pass frees what its
nodes have saved. Another output can be differentiated after it, without `retain_graph=True`, if no node of its graph
has lost what it saved: nodes that save no tensor, as that of an addition, may be shared.

And one output may be computed from another one, as a loss from logits: the gradient of the second one then flows
through the first one, where hooks see it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

Freed = tuple[tuple[int, ...], ...]
"""For each output, those whose backward pass frees what its own needs, by position; () if each frees everything."""


Feeding = tuple[tuple[int, ...], ...]
"""For each output, the others that autograd computes it from, by position; () if no output is computed from another."""


def freed_by(outputs: Sequence[torch.Tensor]) -> Freed:
    """Tell it for the outputs of a call, none of which was differentiated so far."""
    if len(outputs) == 1:
        return ()
    behind = [nodes_behind(output) for output in outputs]
    all_saving = {node for node in set().union(*behind) if _saves_a_tensor(node)}
    saving = [nodes & all_saving for nodes in behind]
    found = tuple(tuple(p for p, other in enumerate(saving) if other & own) for own in saving)
    return () if all(len(others) == len(outputs) for others in found) else found


def feeding(outputs: Sequence[torch.Tensor]) -> Feeding:
    """Tell which outputs the others are computed from.

    A node may have several results, such as the parts of a chunk. So edges count, and not nodes.
    """
    if len(outputs) == 1:
        return ()
    own = {(o.grad_fn, o.output_nr): p for p, o in enumerate(outputs) if o.grad_fn is not None}
    found = tuple(tuple(sorted(_met(nodes_behind(output), own))) for output in outputs)
    return found if any(found) else ()


def _met(behind: set[Any], edges: Mapping[tuple[Any, int], int]) -> set[int]:
    """The positions of those edges that lead from one of these nodes to another one."""
    return {edges[edge] for node in behind for edge in node.next_functions if edge in edges}


def nodes_behind(output: torch.Tensor) -> set[Any]:
    """All nodes of autograd's graph that lead to an output; none to a leaf."""
    met: set[Any] = set() if output.grad_fn is None else {output.grad_fn}
    left = list(met)
    while left:
        new = {behind for behind, _ in left.pop().next_functions if behind is not None} - met
        met |= new
        left += new
    return met


def _saves_a_tensor(node: Any) -> bool:
    """Whether a node saves some: generated nodes have an attribute for each, custom functions a list of them.

    They are not looked at, as a checkpoint would then run again.
    """
    if isinstance(node, torch.autograd.function.BackwardCFunction):
        return bool(node._raw_saved_tensors)
    return any(name.startswith("_raw_saved_") for name in dir(node))
