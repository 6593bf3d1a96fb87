from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from opwright.api.operator import Operator
from opwright.passes.buffers.hand_on import hand_on
from tests.derived import lowered_joint, specs_of

Function = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

X, Y = (torch.rand(3, 4, requires_grad=True) for _ in range(2))
CASES: dict[str, tuple[Function, tuple[bool, bool]]] = {
    "a sum": (lambda x, y: x + y, (True, True)),
    "one of two": (lambda x, y: x.sin() + y, (False, True)),
    "a part": (lambda x, y: (x + y)[:2], (False, False)),
    "another order": (lambda x, y: x.t() + y.cos().t(), (False, False)),
}


@pytest.mark.parametrize(("function", "handed"), CASES.values(), ids=CASES)
def test_gradients(function: Function, handed: tuple[bool, bool]) -> None:
    _, program = lowered_joint(function, specs_of("xy", [X, Y]))
    cotangents = {b.name for b in program.inputs} - {"x", "y"}
    assert tuple(name in cotangents for name in hand_on(program, cotangents).outputs[-2:]) == handed
    x, y = (tensor.detach().clone().requires_grad_() for tensor in (X, Y))
    operator = Operator(function, name="handed_on")
    outputs = [each(x, y) for each in (operator, function)]
    cotangent = torch.rand(outputs[0].shape)
    found, expected = (torch.autograd.grad(output, (x, y), cotangent) for output in outputs)
    torch.testing.assert_close(found, expected)
    assert tuple(gradient is cotangent for gradient in found) == handed
    assert operator.last_rung == "cpp"


def test_leaves_share_no_gradient() -> None:
    x, y = (tensor.detach().clone().requires_grad_() for tensor in (X, Y))
    Operator(CASES["a sum"][0], name="handed_on_to_leaves")(x, y).sum().backward()
    assert x.grad is not None
    assert y.grad is not None
    assert x.grad.data_ptr() != y.grad.data_ptr()
    torch.testing.assert_close(x.grad, torch.ones(3, 4))
