"""hooks: they see the same gradients, and may change them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import nn

from opwright.auditing.case import Case, loss_of
from opwright.auditing.families.autograd import accumulated, gradients
from opwright.auditing.judge import Judge
from opwright.auditing.modules import Calling
from opwright.auditing.witness import Seen
from opwright.checking.calls import reached


def tensor_hooks(case: Case) -> Seen:
    """Double the gradients of inputs and outputs in hooks."""
    leaves = case.leaves
    outputs = _apart(case(*leaves))
    heard: list[torch.Tensor] = []

    def doubled(gradient: torch.Tensor | None) -> torch.Tensor | None:
        if gradient is None:
            return None
        heard.append(gradient.clone())
        return 2 * gradient

    for tensor in (*leaves, *outputs):
        tensor.register_hook(doubled)
    loss_of(outputs).backward()
    sums = torch.stack([gradient.abs().sum() for gradient in heard]).sort().values
    return {"gradient of input": [accumulated(leaf) for leaf in leaves], "sums of the gradients that hooks saw": sums}


def retained_gradients(case: Case) -> Seen:
    """Keep the gradients of results, which are not leaves."""
    leaves = case.leaves
    outputs = _apart(case(*leaves))
    for output in outputs:
        output.retain_grad()
    loss_of(outputs).backward()
    return {"gradient of output": [accumulated(output) for output in outputs]}


def post_accumulate_hooks(case: Case) -> Seen:
    """Clear each gradient as soon as it is accumulated, as an optimizer inside the backward pass does."""
    leaves = case.leaves
    taken: dict[int, torch.Tensor] = {}

    def take(leaf: torch.Tensor) -> None:
        taken[id(leaf)] = accumulated(leaf).clone()
        leaf.grad = None

    for leaf in leaves:
        leaf.register_post_accumulate_grad_hook(take)
    case.loss(*leaves).backward()
    return {
        "gradient of input": [taken.get(id(leaf), torch.zeros_like(leaf)) for leaf in leaves],
        "left behind": [leaf.grad is None for leaf in leaves],
    }


def module_hooks(case: Case) -> Seen:
    """Add forward and backward hooks to a module that calls the operator."""
    module, heard = Calling(case.function), []

    def hear(
        module: nn.Module, arrived: tuple[torch.Tensor | None, ...], left: tuple[torch.Tensor | None, ...]
    ) -> None:
        heard.append([arrived, left])

    module.register_full_backward_hook(hear)
    module.register_forward_hook(lambda module, args, result: None)
    leaves = case.leaves
    loss_of(reached(replace(case, function=module)(*leaves))).backward()
    return {"heard": heard, "gradient of input": [accumulated(leaf) for leaf in leaves]}


def anomaly_mode(case: Case) -> Seen:
    """Run backward in anomaly mode, which checks every gradient for NaN and records where each node was made."""
    with torch.autograd.detect_anomaly():
        return gradients(case)


def _apart(results: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Copy the results: in the reference, unlike in an operator, one may be computed from another."""
    return [result.clone() for result in reached(results)]


JUDGES = (
    Judge("tensor hooks", tensor_hooks),
    Judge("retain_grad", retained_gradients),
    Judge("post-accumulate hooks", post_accumulate_hooks),
    Judge("module hooks", module_hooks),
    Judge("anomaly mode", anomaly_mode),
)
