"""Operations that depend on how a matrix inside of a function lies: as in eager."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from opwright.api.operator import Operator

pytestmark = [pytest.mark.falls_back]

REAL = torch.randn(3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
COMPLEX = torch.complex(REAL, REAL.flip(0))
CASES: dict[str, tuple[Callable[..., Tensor], Tensor]] = {
    "determinant of a transposed matrix": (lambda x: torch.linalg.det(x.mT).exp(), REAL),
    "its logarithm": (lambda x: torch.linalg.slogdet(x.mT)[1].exp(), REAL),
    "determinant of parts": (lambda x: torch.linalg.det(x.repeat(1, 2)[:, ::2]).exp(), REAL),
    "determinant": (lambda x: torch.linalg.det(x).exp(), REAL),
    "determinant of a complex matrix": (lambda x: torch.linalg.det(x.mT).abs().exp(), COMPLEX),
    "strides of a transposed matrix": (lambda x: x.mT.as_strided((3,), (1,)).exp(), REAL),
    "strides of what is computed": (lambda x: (x.mT * 2).as_strided((3,), (1,)).exp(), REAL),
    "strides of an argument": (lambda x: x.as_strided((3,), (1,)).exp(), REAL),
    "equations of rows": (lambda x: torch.linalg.solve(x, x + 1, left=False) * 2, REAL),
    "complex equations of rows": (lambda x: torch.linalg.solve(x, x + 1, left=False) * 2, COMPLEX),
}


@pytest.mark.parametrize("case", CASES)
def test_values_and_gradients_of_both_orders(case: str) -> None:
    function, given = CASES[case]
    operator = Operator(function, name=f"tests::lies_otherwise_{list(CASES).index(case)}")
    for _ in range(2):
        found, expected = (every_order(each, given) for each in (operator, function))
        torch.testing.assert_close(found, expected)


NORMS: dict[str, Callable[[Tensor], Tensor]] = {
    "of a transposed matrix": lambda x: torch.linalg.vector_norm(x.mT),
    "of its rows": lambda x: torch.linalg.vector_norm(x.mT, dim=1),
    "beside exponentials": lambda x: torch.linalg.vector_norm(x.mT) * x.mT.exp().sum(),
}


@pytest.mark.parametrize("case", NORMS)
def test_second_gradients_that_can_be_differentiated_again(case: str) -> None:
    """Their kernels read what two passes have saved, which may be one value."""
    function = NORMS[case]
    operator = Operator(function, name=f"tests::norm_again_{list(NORMS).index(case)}")
    found, expected = [], []
    for each, made in ((operator, found), (function, expected)):
        x = REAL.clone().requires_grad_()
        result = each(x)
        (gradient,) = torch.autograd.grad(result, x, torch.full_like(result, 0.5), create_graph=True)
        made += torch.autograd.grad(gradient, x, torch.linspace(0.5, 1.5, 9).double().view(3, 3), create_graph=True)
    torch.testing.assert_close(found, expected)


def every_order(function: Callable[..., Tensor], given: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    x = given.clone().requires_grad_()
    result = function(x)
    (gradient,) = torch.autograd.grad(result.abs().sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(gradient.abs().sin().sum(), x, materialize_grads=True, allow_unused=True)
    return result, gradient, second


def along(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The derivative of a function in a direction, by forward mode."""
    return lambda x: torch.func.jvp(function, (x,), (torch.full_like(x, 0.5),))[1]


@pytest.mark.parametrize("case", list(CASES)[:4])
def test_tangents_of_determinants(case: str) -> None:
    function, given = CASES[case]
    operator = Operator(function, name=f"tests::determinant_moves_{list(CASES).index(case)}")
    direction = torch.arange(9.0).double().view(3, 3).sin()  # of no symmetry, which would hide a transposed formula
    for _ in range(2):
        found, expected = (torch.func.jvp(each, (given,), (direction,)) for each in (operator, function))
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("lies", ["row by row", "transposed"])
def test_second_derivatives_of_a_determinant_by_forward_mode(lies: str) -> None:
    """Against reverse mode twice: PyTorch's own second derivative by forward mode is wrong."""
    operator = Operator(lambda x: torch.linalg.det(x).sin(), name="tests::determinant_along")
    x = REAL if lies == "row by row" else REAL.mT
    hessian = torch.func.jacrev(torch.func.jacrev(operator.reference))(x)
    torch.testing.assert_close(torch.func.jacfwd(torch.func.jacfwd(operator))(x), hessian)
    torch.testing.assert_close(torch.func.grad(along(operator))(x), 0.5 * hessian.sum((2, 3)))
