"""autograd: derivatives of every order by backward passes, requested in every way."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import torch

from opwright.auditing.case import Case, loss_of
from opwright.auditing.judge import Judge
from opwright.auditing.witness import Seen
from opwright.checking.calls import differentiable, every_gradient, random_gradients, reached
from opwright.checking.checks.layouts import GRADIENT_LAYOUTS
from opwright.checking.finding import Skipped

_ALL_SUBSETS_UP_TO = 4


def gradients(case: Case) -> Seen:
    """Run one backward pass."""
    leaves = case.leaves
    case.loss(*leaves).backward()
    return {"gradient of input": [accumulated(leaf) for leaf in leaves]}


def gradient_penalty(case: Case) -> Seen:
    """Add a gradient penalty to a loss: the cotangent requires no gradient, but the gradient must."""
    leaves = case.leaves
    outputs = case.floats(*leaves)
    total = sum((_real_sum(output) for output in outputs), start=torch.zeros(()))
    first = every_gradient(total, leaves, create_graph=True)
    penalty = sum(((gradient * gradient.conj()).real.sum() for gradient in first), start=torch.zeros(()))
    return {
        "gradient of loss and penalty for input": every_gradient(loss_of(outputs) + penalty, leaves, create_graph=True)
    }


def each_subset(case: Case) -> Seen:
    """Ask for gradients of some inputs only."""
    count = len(case.inputs)
    sizes = range(1, count + 1) if count <= _ALL_SUBSETS_UP_TO else (1, count - 1)
    seen: dict[str, object] = {}
    for wanted in (subset for size in sizes for subset in combinations(range(count), size)):
        inputs = [tensor.requires_grad_(index in wanted) for index, tensor in enumerate(case.inputs)]
        outputs = case(*inputs)
        if not reached(outputs):
            continue
        found = every_gradient(loss_of(reached(outputs)), [inputs[index] for index in wanted])
        seen[f"with inputs {list(wanted)} only, gradient"] = found
        seen[f"with inputs {list(wanted)} only, requires_grad of output"] = [out.requires_grad for out in outputs]
    return seen


def each_output(case: Case) -> Seen:
    """Differentiate each output alone, so that the others get no gradient."""
    count = sum(output.requires_grad for output in case.outputs)
    if count < 2:
        raise Skipped("there is one differentiable output only")
    seen = {}
    for used in range(count):
        leaves = case.leaves
        outputs = reached(case(*leaves))
        if used >= len(outputs):
            break
        seen[f"with output {used} only, gradient of input"] = every_gradient(loss_of([outputs[used]]), leaves)
    return seen


def same_tensor_twice(case: Case) -> Seen:
    """Pass one tensor for two inputs."""
    inputs = case.inputs
    pairs = [
        (first, second)
        for first, second in combinations(range(len(inputs)), 2)
        if (inputs[first].shape, inputs[first].dtype) == (inputs[second].shape, inputs[second].dtype)
    ]
    if not pairs:
        raise Skipped("no two inputs have the same shape and dtype")
    seen = {}
    for first, second in pairs:
        leaves = list(case.leaves)
        leaves[second] = leaves[first]
        distinct = [leaf for index, leaf in enumerate(leaves) if index != second]
        seen[f"with input {first} as input {second}, gradient"] = every_gradient(
            case.loss(*leaves), distinct, create_graph=True
        )
    return seen


def two_steps(case: Case) -> Seen:
    """Let the backward passes of two calls accumulate in `.grad`."""
    leaves = case.leaves
    for _ in range(2):
        case.loss(*leaves).backward()
    return {"accumulated gradient of input": [accumulated(leaf) for leaf in leaves]}


def same_graph_twice(case: Case) -> Seen:
    """Run two backward passes through one graph."""
    leaves = case.leaves
    loss = case.loss(*leaves)
    loss.backward(retain_graph=True)
    first = [accumulated(leaf).clone() for leaf in leaves]
    loss.backward()
    return {"gradient of input": first, "accumulated gradient of input": [accumulated(leaf) for leaf in leaves]}


def freed_graph(case: Case) -> Seen:
    """Run backward through a freed graph: torch raises if something was saved; a wrong gradient is a fault."""
    leaves = case.leaves
    outputs = reached(case(*leaves))
    cotangents = random_gradients(outputs)
    torch.autograd.backward(outputs, cotangents)
    first = [accumulated(leaf).clone() for leaf in leaves]
    try:
        torch.autograd.backward(outputs, cotangents)
    except RuntimeError:
        return {"accumulated gradient of input": [2 * gradient for gradient in first]}
    return {"accumulated gradient of input": [accumulated(leaf) for leaf in leaves]}


def odd_gradients(case: Case) -> Seen:
    """Run backward with cotangents in the layouts that autograd produces: expanded, transposed, a slice."""
    count = len(random_gradients(case.outputs))
    seen = {}
    for name, arrange in GRADIENT_LAYOUTS.items():
        for position in range(count):
            leaves = case.leaves
            outputs = reached(case(*leaves))
            cotangents = random_gradients(outputs)
            if position >= len(outputs) or not cotangents[position].dim():
                continue
            cotangents[position] = arrange(cotangents[position])
            found = every_gradient(outputs, leaves, cotangents)
            seen[f"with gradient {position} {name}, gradient of input"] = found
    if not seen:
        raise Skipped("no result has an axis to rearrange")
    return seen


def changed_before_backward(case: Case) -> Seen:
    """Change an input in place after the call: torch may raise in the backward pass; a wrong gradient is a fault."""
    leaves = case.leaves
    given = [leaf.clone() for leaf in leaves]
    loss = case.loss(*given)
    with torch.no_grad():
        for tensor in given:
            tensor.mul_(0.5)
    try:
        loss.backward()
    except RuntimeError as error:
        if "modified by an inplace operation" not in str(error):
            raise
        return gradients(case)
    return {"gradient of input": [accumulated(leaf) for leaf in leaves]}


def accumulated(leaf: torch.Tensor) -> torch.Tensor:
    """Return the gradient of a leaf; zeros if it has none."""
    return torch.zeros_like(leaf) if leaf.grad is None else leaf.grad


def _derivatives(case: Case, order: int) -> Sequence[torch.Tensor]:
    leaves = case.leaves
    derivatives: Sequence[torch.Tensor] = case.floats(*leaves)
    for _ in range(order):
        derivatives = every_gradient(loss_of(derivatives), leaves, create_graph=True)
    return [derivative.detach() for derivative in derivatives]


def _real_sum(output: torch.Tensor) -> torch.Tensor:
    return (output.real if output.is_complex() else output).sum() if differentiable(output) else torch.zeros(())


JUDGES = (
    Judge("backward", gradients),
    Judge("second order (create_graph)", lambda case: {"second derivative for input": _derivatives(case, order=2)}),
    Judge("third order", lambda case: {"third derivative for input": _derivatives(case, order=3)}),
    Judge("gradient penalty", gradient_penalty),
    Judge("each subset of inputs", each_subset),
    Judge("each output alone", each_output),
    Judge("same tensor passed twice", same_tensor_twice),
    Judge("two steps accumulate", two_steps),
    Judge("retain_graph", same_graph_twice),
    Judge("freed graph", freed_graph),
    Judge("cotangents of odd layouts", odd_gradients),
    Judge("input changed before backward", changed_before_backward, expected=gradients),
)
