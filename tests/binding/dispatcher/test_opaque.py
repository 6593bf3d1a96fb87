"""Steps that are not traced, in chains with torch operations: values, derivatives, refusals."""

import numpy
import pytest
import torch
from torch import Tensor

import opwright
from opwright.errors import UnsupportedReturn
from tests.operator.against_eager import assert_as_eager, random


@opwright.opaque(like=torch.empty_like, backward=lambda cotangents, x: cotangents * numpy_cosine(x))
def numpy_sine(x: Tensor) -> Tensor:
    return torch.from_numpy(numpy.sin(x.numpy()))


@opwright.opaque(like=torch.empty_like, backward=lambda cotangents, x: -cotangents * numpy_sine(x))
def numpy_cosine(x: Tensor) -> Tensor:
    return torch.from_numpy(numpy.cos(x.numpy()))


@opwright.opaque(like=torch.empty_like)
def without_derivative(x: Tensor) -> Tensor:
    return torch.from_numpy(numpy.sinh(x.numpy()))


@opwright.opaque(like=lambda x: x.new_empty(x.shape[0]))
def mistaken(x: Tensor) -> Tensor:
    return torch.from_numpy(x.numpy().astype(numpy.float64).sum(1))


def chain(x: Tensor, y: Tensor) -> Tensor:
    return numpy_sine(x * 2 + y) * torch.tanh(y)


def refused(x: Tensor) -> Tensor:
    return without_derivative(x * 2) + 1


def wrong(x: Tensor) -> Tensor:
    return mistaken(x * 2) + 1


def in_torch(x: Tensor, y: Tensor) -> Tensor:
    return torch.sin(x * 2 + y) * torch.tanh(y)


def test_a_chain_and_its_derivatives_of_both_orders():
    operator = opwright.operator(chain)
    for shape in ((3, 4), (5, 2)):
        x, y = random(*shape, dtype=torch.float64), random(*shape, seed=1, dtype=torch.float64)
        assert_as_eager(operator, x, y)
        torch.testing.assert_close(operator(x, y), in_torch(x, y))
        (found,) = torch.autograd.grad(operator(x, y).sum(), x, create_graph=True)
        (expected,) = torch.autograd.grad(in_torch(x, y).sum(), x, create_graph=True)
        torch.testing.assert_close(found, expected)


@pytest.mark.falls_back
def test_without_a_derivative_a_gradient_is_refused():
    operator = opwright.operator(refused)
    x = random(3, gradient=False)
    torch.testing.assert_close(operator(x), torch.sinh(x * 2) + 1)
    assert operator.last_rung == "cpp"
    with pytest.raises(RuntimeError, match="autograd"):
        operator(random(3)).sum().backward()


def test_a_result_of_another_dtype_is_refused():
    with pytest.raises(UnsupportedReturn, match=r"mistaken returns torch\.float64"):
        opwright.operator(wrong)(random(3, 4, gradient=False))


def step_of(factor: float):
    def scaled_outside(x: Tensor) -> Tensor:
        return torch.from_numpy(x.numpy() * factor)

    return opwright.opaque(scaled_outside, like=torch.empty_like)


def test_steps_of_one_name_are_two():
    double, triple = step_of(2.0), step_of(3.0)

    @opwright.operator(name="opaque::doubled")
    def doubled(x: Tensor) -> Tensor:
        return double(x) + 1

    @opwright.operator(name="opaque::tripled")
    def tripled(x: Tensor) -> Tensor:
        return triple(x) + 1

    x = random(3, 4).detach()
    for _ in range(2):
        torch.testing.assert_close([doubled(x), tripled(x)], [2 * x + 1, 3 * x + 1])
    assert doubled.last_rung == tripled.last_rung == "cpp"
