"""Forward mode does not see `no_grad`, and an operator does not either."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.func import grad, hessian, jacfwd, jvp
from torch.utils.checkpoint import checkpoint

from opwright.api.operator import Operator
from tests.suite.nights import mostly_at_night

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


def multiplied_up(x: Tensor) -> Tensor:
    """Its gradient reads what is overwritten, and has none itself; `torch.vander` does so."""
    both = torch.stack((x, 2 * x), -1)
    return both.copy_(both.cumprod(-1))


@pytest.mark.parametrize("transform", mostly_at_night(["jvp", "jacfwd", "dual tensors"], by_day=1))
def test_forward_mode_needs_no_second_derivative(transform: str) -> None:
    operator, x = Operator(multiplied_up, name="tests::multiplied_up"), torch.tensor([0.5, 2.0])
    for _ in range(2):
        torch.testing.assert_close(TRANSFORMS[transform](operator, x), TRANSFORMS[transform](multiplied_up, x))


PLACES = torch.tensor([0, 1, 0])
# Several values for one place, each of which has a gradient, and gradients that are computed by logarithms.
WITHOUT_ADJOINT: dict[str, Callable[[Tensor], Tensor]] = {
    "setting": lambda x: setting(x * 1, PLACES, x[PLACES] * 3),
    "setting by a list": lambda x: setting(x * 1, ([0, 0], [1, 1]), x[0, :2] * 3),
    "index_put": lambda x: x.index_put((PLACES,), x * 3),
    "index_put in place": lambda x: (x * 1).index_put_((PLACES,), values=x * 3),
    "at the dispatcher": lambda x: torch.ops.aten.index_put(x, [PLACES], x * 3),
    "scatter": lambda x: x.scatter(0, torch.zeros(3, 3, dtype=torch.int64), x * 2),
    "scatter in place": lambda x: (x * 1).scatter_(0, torch.zeros(3, 3, dtype=torch.int64), src=x * 2),
    "index_copy": lambda x: torch.index_copy(x, 0, PLACES, x * 3),
    "index_fill": lambda x: x.index_fill(0, PLACES, x.sum()),
    "put": lambda x: (x * 1).put_(PLACES, x[0] * 2),
    "logcumsumexp": lambda x: x.logcumsumexp(0),
}
WITH_ADJOINT: dict[str, Callable[[Tensor], Tensor]] = {
    "adding": lambda x: x.index_put((PLACES,), x * 3, accumulate=True),
    "setting a slice": lambda x: setting(x * 1, slice(1, None), x[1:] * 3),
    "setting by a mask": lambda x: setting(x * 1, torch.tensor([True, False, True]), 0.5),
    "scattering a number": lambda x: x.scatter(0, torch.zeros(3, 3, dtype=torch.int64), 2.0),
    "scatter_add": lambda x: x.scatter_add(0, torch.zeros(3, 3, dtype=torch.int64), x * 2),
}


def setting(x: Tensor, place: object, value: Tensor | float) -> Tensor:
    x[place] = value  # type: ignore[index]
    return x


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("transform", mostly_at_night(["jvp", "jacfwd", "hessian", "dual tensors"], by_day=["jvp"]))
@pytest.mark.parametrize("case", [*WITHOUT_ADJOINT, *WITH_ADJOINT])
def test_forward_mode_is_that_of_the_function(case: str, transform: str) -> None:
    function = {**WITHOUT_ADJOINT, **WITH_ADJOINT}[case]

    def reference(x: Tensor) -> Tensor:
        return function(torch.sin(x) * x + 2)

    x = torch.linspace(0.5, 1.5, 9).reshape(3, 3)
    derive, operator = TRANSFORMS[transform], Operator(reference, name="tests::forward_mode_of_places")
    torch.testing.assert_close(derive(operator, x), derive(reference, x))
    if case in WITH_ADJOINT and transform == "jvp":
        assert operator.last_rung == "cpp"
