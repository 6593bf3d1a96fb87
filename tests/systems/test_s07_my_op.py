"""S07: z = 3x - y, written over torch's stable headers."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck

from opwright.errors import NoKernel
from tests.systems.by_hand import by_hand, written

pytestmark = pytest.mark.usefixtures("compiled_once")
SIZES = r"my_op takes tensors of one size, and was given \(2, 3\) and \(3, 2\)"


def test_values_and_gradients() -> None:
    my_op = by_hand("my_op", "my_op")
    assert written(my_op) == {"cpp"}
    x, y = (torch.randn(3, 4, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.equal(my_op.on("cpp")(x, y), 3 * x - y)
    assert gradcheck(my_op.on("cpp"), (x, y))
    assert my_op.last_rung == "cpp"


def test_incoming_gradients_of_any_layout() -> None:
    my_op = by_hand("my_op", "my_op").on("cpp")
    x, y = torch.randn(3, 4, requires_grad=True), torch.randn(3, 4, requires_grad=True)
    my_op(x, y).sum().backward()
    assert torch.equal(x.grad, torch.full((3, 4), 3.0))
    of_y = torch.autograd.grad(my_op(x, y), y, torch.arange(12.0).reshape(4, 3).t())[0]
    assert torch.equal(of_y, -torch.arange(12.0).reshape(4, 3).t())


def test_other_sizes_are_refused_clearly() -> None:
    my_op = by_hand("my_op", "my_op")
    for call in (my_op, my_op.on("cpp")):
        with pytest.raises(ValueError, match=SIZES):
            call(torch.randn(2, 3), torch.randn(3, 2))


def test_halves_are_served_by_what_is_derived() -> None:
    x = torch.randn(3, 4, dtype=torch.bfloat16)
    my_op = by_hand("my_op", "my_op")
    torch.testing.assert_close(my_op(x, x), my_op.reference(x, x))
    with pytest.raises(NoKernel, match="is not written for bfloat16"):
        my_op.on("cpp")(x, x)
