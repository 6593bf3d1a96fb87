"""States of integers, which a definition gets as they are: counters, marks, ages."""

from __future__ import annotations

import pytest
import torch

import opwright

START = {torch.int64: 2**53, torch.int32: 2**24, torch.uint8: 200, torch.bool: 0}


def _count(dtype):
    return lambda param, **hyper: torch.full_like(param, START[dtype], dtype=dtype)


def counting(dtype):
    @opwright.optimizer(state={"count": _count(dtype), "average": None})
    def Counting(param, grad, count, average, step, *, lr=0.1):
        average = 0.9 * average + grad
        new = (count | (grad > 0)) if count.dtype is torch.bool else count + (grad > 0)
        return param - lr * average / (new % 7 + 1), new, average

    return Counting


@pytest.mark.parametrize("param_dtype", [torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("dtype", START)
def test_integers_stay_exact(dtype, param_dtype):
    torch.manual_seed(0)
    optimizer_of = counting(dtype)
    parameters = [torch.randn(shape, dtype=param_dtype, requires_grad=True) for shape in ((5,), (3, 4), ())]
    eager = [each.detach().clone() for each in parameters]
    states = [(torch.full(each.shape, START[dtype], dtype=dtype), torch.zeros_like(each)) for each in eager]
    optimizer = optimizer_of(parameters)
    for step in range(1, 6):
        gradients = [torch.randn_like(each) for each in eager]
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        optimizer.step()
        for place, gradient in enumerate(gradients):
            made = optimizer_of.definition.function(eager[place], gradient, *states[place], float(step))
            eager[place], states[place] = made[0].to(param_dtype), made[1:]
    for parameter, expected, (count, average) in zip(parameters, eager, states, strict=True):
        state = optimizer.state[parameter]
        assert state["count"].dtype is dtype
        torch.testing.assert_close(state["count"], count, rtol=0, atol=0)
        torch.testing.assert_close(state["average"], average)
        torch.testing.assert_close(parameter.detach(), expected)
