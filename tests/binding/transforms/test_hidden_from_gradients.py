"""Forward mode does not see `no_grad`, and an operator does not either."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.func import grad, hessian, jacfwd, jvp
from torch.utils.checkpoint import checkpoint

from opwright.api.operator import Operator

pytestmark = [
    pytest.mark.falls_back,
    pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated"),  # by torch's own forward mode
]


def partly_hidden(x: Tensor) -> Tensor:
    with torch.no_grad():
        factor = torch.sin(x)
    return factor * x


@torch.no_grad()
def factor_of(x: Tensor) -> Tensor:
    return torch.cos(x)


def hidden_by_a_decorator(x: Tensor) -> Tensor:
    return factor_of(x) * x


def checkpointed(x: Tensor) -> Tensor:
    return checkpoint(torch.sin, x, use_reentrant=False) * x


def dual(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(function(forward_ad.make_dual(x, torch.ones_like(x)))).tangent
        assert tangent is not None
        return tangent


TRANSFORMS: dict[str, Callable[[Callable[[Tensor], Tensor], Tensor], Tensor]] = {
    "jvp": lambda function, x: jvp(function, (x,), (torch.ones_like(x),))[1],
    "hessian": lambda function, x: hessian(lambda y: function(y).sum())(x),
    "jacfwd": lambda function, x: jacfwd(function)(x),
    "grad": lambda function, x: grad(lambda y: function(y).sum())(x),
    "dual tensors": dual,
}


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
@pytest.mark.parametrize("function", [partly_hidden, hidden_by_a_decorator])
def test_derivatives_are_those_of_the_function(
    function: Callable[[Tensor], Tensor], transform: Callable[[Callable[[Tensor], Tensor], Tensor], Tensor]
) -> None:
    operator, x = Operator(function, name=f"tests::{function.__name__}"), torch.tensor([0.5, 2.0])
    for _ in range(2):
        torch.testing.assert_close(transform(operator, x), transform(function, x))


@pytest.mark.parametrize("transform", ["jvp", "jacfwd", "dual tensors"])
def test_forward_mode_of_a_checkpoint_is_that_of_the_function(transform: str) -> None:
    """Reverse mode of torch.func refuses checkpoints, and forward mode takes them; that of PyTorch 2.11 does not."""
    operator, x = Operator(checkpointed, name="tests::checkpointed"), torch.tensor([0.5, 2.0])
    if torch.__version__ < (2, 12):
        for function in (checkpointed, operator):
            with pytest.raises((NotImplementedError, RuntimeError), match=r"must implement the jvp|_NoopSaveInputs"):
                TRANSFORMS[transform](function, x)
        return
    for _ in range(2):
        torch.testing.assert_close(TRANSFORMS[transform](operator, x), TRANSFORMS[transform](checkpointed, x))
