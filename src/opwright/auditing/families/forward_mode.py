"""forward mode: dual tensors as arguments and as cotangents."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.autograd import forward_ad

from opwright.auditing.case import Case
from opwright.auditing.judge import Judge
from opwright.auditing.witness import Seen
from opwright.checking.calls import every_gradient, random_gradients, random_tangents, reached
from opwright.checking.finding import Skipped


def dual_inputs(case: Case) -> Seen:
    """Give every input a tangent."""
    with forward_ad.dual_level():
        return _unpacked(case(*_duals(case.inputs)))


def one_dual_input(case: Case) -> Seen:
    """Give one input at a time a tangent."""
    seen = {}
    for position in range(len(case.inputs)):
        with forward_ad.dual_level():
            inputs = list(case.inputs)
            inputs[position] = _duals([inputs[position]])[0]
            seen[f"with a tangent of input {position} only"] = _unpacked(case(*inputs))
    return seen


def dual_leaves(case: Case) -> Seen:
    """Give leaves that require gradients a tangent, and run backward: the gradients have tangents too."""
    leaves = case.leaves
    with forward_ad.dual_level():
        loss = case.loss(*_duals(leaves))
        return _unpacked(every_gradient(loss, leaves))


def dual_gradient(case: Case) -> Seen:
    """Run backward with a cotangent that has a tangent."""
    leaves = case.leaves
    outputs = reached(case(*leaves))
    with forward_ad.dual_level():
        cotangents = _duals(random_gradients(outputs))
        return _unpacked(every_gradient(outputs, leaves, cotangents))


def _duals(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    if not tensors:
        raise Skipped("no input can have a tangent")
    return [forward_ad.make_dual(t, tangent) for t, tangent in zip(tensors, random_tangents(tensors), strict=True)]


def _unpacked(results: Sequence[torch.Tensor]) -> Seen:
    """Separate primals and tangents; a missing tangent is zero."""
    parts = [forward_ad.unpack_dual(result) for result in results]
    primals = [part.primal.detach() for part in parts]
    tangents = [torch.zeros_like(p.primal) if p.tangent is None else p.tangent.detach() for p in parts]
    return {"primal": primals, "tangent": tangents}


JUDGES = (
    Judge("dual inputs", dual_inputs),
    Judge("one dual input", one_dual_input),
    Judge("dual leaves", dual_leaves),
    Judge("a dual cotangent", dual_gradient),
)
