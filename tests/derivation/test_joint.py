"""Traced gradients, interpreted, against autograd; a backward that can be differentiated again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional

from opwright.derivation.backward import backward_reference, backward_signature
from opwright.derivation.joint import trace_joint
from opwright.derivation.tangents import tangent_names
from opwright.tracing.interface.results import Given, Made
from opwright.tracing.interface.signature import read_signature
from tests.derived import lowered_joint, run, specs_of

Tensor = torch.Tensor
GENERATOR = torch.Generator().manual_seed(0)


def normal(*shape: int) -> Tensor:
    return torch.randn(shape, generator=GENERATOR, dtype=torch.float64).requires_grad_()


def lltm_cell(gates: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    i, o, g = gates.chunk(3, dim=-1)
    cell = old_cell + functional.elu(g) * torch.sigmoid(i)
    return torch.tanh(cell) * torch.sigmoid(o), cell


CASES: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]] = {
    "lltm cell": (lltm_cell, (normal(4, 9), normal(4, 3))),
    "broadcast": (lambda x, y: x * y, (normal(4, 1, 3), normal(2, 1))),
    "slice": (lambda x: x[1:, :-1] ** 2, (normal(4, 3),)),
    "slice with a step": (lambda x: x[:, 1::2] ** 2, (normal(4, 7),)),
    "slice that is everything": (lambda x: x[-99:99] ** 2, (normal(4, 3),)),
    "select": (lambda x: x[1] * x[-1], (normal(4, 3),)),
    "transposed product": (lambda x, y: torch.tanh(x.mT @ y), (normal(4, 3), normal(4, 2))),
    "linear": (functional.linear, (normal(4, 3), normal(2, 3), normal(2))),
    "cat": (lambda x, y: torch.cat([x * 2, y], -1).sin(), (normal(4, 3), normal(4, 2))),
    "softmax": (lambda x: functional.softmax(x, -1), (normal(4, 3),)),
    "layer norm": (lambda x, w, b: functional.layer_norm(x, (3,), w, b), (normal(4, 3), normal(3), normal(3))),
    "an argument that is not used": (lambda x, y: x.sin(), (normal(4), normal(4))),
    "an output twice": (lambda x: (lambda y: (y, y))(x.sin()), (normal(4),)),
    "an output without derivative": (lambda x: (x.sin(), x > 0), (normal(4),)),
    "in place on a temporary": (lambda x, y: (x * 2).mul_(y), (normal(4), normal(4))),
    "in place through an alias": (lambda x: torch.empty_like(x).fill_(2) * x, (normal(4),)),
    "detached": (lambda x: x * x.detach(), (normal(4),)),
    "atanh": (lambda x: torch.atanh(x.tanh()), (normal(4),)),
}


@pytest.mark.parametrize(("reference", "arguments"), CASES.values(), ids=CASES)
def test_gradients_are_those_of_autograd(reference: Callable[..., Any], arguments: tuple[Tensor, ...]) -> None:
    joint, program = lowered_joint(reference, specs_of("xyz"[: len(arguments)], arguments))
    returned = reference(*arguments)
    outputs = tuple(dict.fromkeys([returned] if isinstance(returned, Tensor) else returned))
    assert joint.result.is_bare == isinstance(returned, Tensor)
    assert [tangent is not None for tangent in joint.tangents] == [output.requires_grad for output in outputs]
    flowing = [output for output in outputs if output.requires_grad]
    cotangents = [torch.randn(output.shape, generator=GENERATOR, dtype=output.dtype) for output in flowing]
    expected = torch.autograd.grad(flowing, arguments, cotangents, allow_unused=True)
    assert [g is not None for g in joint.gradients] == [g is not None for g in expected]
    made = run(program, [*arguments, *cotangents])
    wanted = [*outputs, *(gradient for gradient in expected if gradient is not None)]
    for actual, right in zip(made, wanted, strict=True):
        torch.testing.assert_close(actual, right.detach(), rtol=1e-12, atol=1e-12)


def test_no_gradient_for_what_requires_none() -> None:
    joint = trace_joint(lambda x, y: x * y, specs_of("xy", (normal(3), normal(3).detach())))
    assert [gradient is not None for gradient in joint.gradients] == [True, False]


def test_an_argument_returned_as_it_is_is_no_output_of_the_graph() -> None:
    joint = trace_joint(lambda x, y: (x, x * y), specs_of("xy", (normal(3), normal(3))))
    assert joint.result.members == (Given(0), Made(0))
    assert len(joint.graph.outputs) == len(joint.tangents) == 1


@pytest.mark.parametrize(
    ("reference", "arguments"), [CASES[name] for name in ("lltm cell", "broadcast", "select", "layer norm", "cat")]
)
def test_backward_reference_is_differentiable(reference: Callable[..., Any], arguments: tuple[Tensor, ...]) -> None:
    returned = reference(*arguments)
    outputs = (returned,) if isinstance(returned, Tensor) else returned
    every = range(len(arguments))
    backward = backward_reference(reference, len(arguments), every, range(len(outputs)))
    cotangents = tuple(normal(*output.shape) for output in outputs)
    found = backward(*arguments, *cotangents)
    for actual, right in zip(found, torch.autograd.grad(outputs, arguments, cotangents), strict=True):
        torch.testing.assert_close(actual, right)
    assert torch.autograd.gradcheck(backward, (*arguments, *cotangents))


def test_backward_reference_keeps_an_argument_given_twice_apart() -> None:
    x, cotangents = normal(3), normal(3)
    left, right = backward_reference(torch.mul, 2, (0, 1), (0,))(x, x, cotangents)
    torch.testing.assert_close(left, x * cotangents)
    torch.testing.assert_close(right, x * cotangents)


def test_backward_signature() -> None:
    signature = backward_signature(read_signature(lltm_cell), (1,), outputs=2, wanted=2)
    assert [parameter.schema for parameter in signature.parameters] == [
        "Tensor gates",
        "Tensor old_cell",
        "Tensor grad_output_1",
    ]
    assert signature.outputs == 2


@pytest.mark.parametrize(
    ("arguments", "outputs", "names"),
    [
        (("x",), 1, ("grad_output",)),
        (("x",), 2, ("grad_output_0", "grad_output_1")),
        (("x", "grad_output"), 1, ("grad_grad_output",)),
        (("x", "grad_output_0", "grad_grad_output"), 1, ("grad_grad_grad_output",)),
    ],
)
def test_tangent_names(arguments: tuple[str, ...], outputs: int, names: tuple[str, ...]) -> None:
    assert tangent_names(arguments, outputs) == names
