"""What flows between outputs of one call, as from a loss to the logits that it is computed from.

A kernel of the backward pass goes from all outputs to the arguments at once. Where a hook, a retained gradient or
`torch.autograd.grad` looks at an output in between, PyTorch's autograd runs the function again, and its graph is cut
there: gradients flow from other outputs to the cut, and from what comes in there to the arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from opwright.derivation.pull_back import gradients
from opwright.tracing.torch_hooks.functorch import are_active, is_forward_mode
from opwright.tracing.trace_functions import none_of_them

Cut = Callable[[Sequence[torch.Tensor], Sequence[torch.Tensor], Sequence[torch.Tensor]], Any]
"""(arguments, outputs, where it is cut) → leaves that get what flowed there, and how to mend it; `native/cut.h`."""


def cut_gradients(
    reference: Callable[..., Any],
    arguments: Sequence[Any],
    recorded: Sequence[int],
    cotangents: dict[int, torch.Tensor],
    at: Sequence[int],
    wanted: Sequence[int],
    cut: Cut,
) -> tuple[torch.Tensor | None, ...]:
    """The gradients of the wanted arguments, or if none are wanted, of the outputs at which the graph is cut.

    They can be differentiated again where that is asked for; but in a second derivative, these outputs are functions of
    the arguments, and no variables of their own.

    Args:
        reference: The function as written, taking every argument by position.
        arguments: Those of the call.
        recorded: The positions of those that gradients flow to.
        cotangents: By the place of an output in what the function returns.
        at: The places of outputs.
        wanted: Positions of arguments.
        cut: Cuts the graph.

    Raises:
        RuntimeError: Under transforms of `torch.func`, where no graph is recorded.
    """
    if are_active() or is_forward_mode():
        raise RuntimeError(
            "a gradient with respect to an output from which another one is computed is not available under transforms "
            "and in forward mode (hint: ask for one gradient at a time, or call the function as written)"
        )
    tensors = [each for each in (*arguments, *cotangents.values()) if isinstance(each, torch.Tensor)]
    create_graph = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
    given = list(arguments)
    with torch.enable_grad():
        for position in recorded:
            alias = torch.ops.aten.alias(given[position])
            given[position] = alias if alias.requires_grad else alias.detach().requires_grad_()
        returned = reference(*given)
        with none_of_them():  # as in derivation/backward.py
            outputs = tree_leaves(returned)
        sources = [given[position] for position in recorded]
        made = cut(sources, [outputs[place] for place in {*cotangents, *at}], [outputs[place] for place in at])
        found = gradients(
            [outputs[place] for place in cotangents],
            [given[position] for position in wanted] or made.leaves(),
            list(cotangents.values()),
            create_graph=create_graph,
            allow_unused=True,
        )
        made.mend()  # gradients of these go to the arguments
        return found
