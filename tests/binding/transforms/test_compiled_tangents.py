"""Forward mode inside of functions that `torch.compile` has compiled, where PyTorch opens its level without Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.func import grad, hessian, jacfwd, jvp, vmap

import opwright

Function = Callable[..., Any]


def _product(x: Tensor, y: Tensor) -> Tensor:
    return (x * y).tanh()


PROGRAMS: dict[str, Callable[[Function], Function]] = {
    "beside other operations": lambda f: lambda x, y: jvp(lambda a: f(a, y) + a, (x,), (x,))[1],
    "alone": lambda f: lambda x, y: jvp(f, (x, y), (y, x)),
    "jacobian": lambda f: lambda x, y: jacfwd(f)(x, y),
    "hessian": lambda f: lambda x, y: hessian(lambda a: f(a, y).sum())(x),
    "over a batch": lambda f: lambda x, y: vmap(lambda a, b: jvp(f, (a, b), (b, a))[1])(x, y),
    "of a batch": lambda f: lambda x, y: jvp(lambda a: vmap(f)(a, y), (x,), (y,))[1],
    "differentiated": lambda f: lambda x, y: grad(lambda a: jvp(f, (a, y), (y, a))[1].sum())(x),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_tangents_pass(program: str) -> None:
    torch._dynamo.reset()
    operator = opwright.operator(_product, name="tests::compiled_tangents")
    x, y = torch.tensor([0.1, 0.2]), torch.tensor([0.3, 0.4])
    expected = PROGRAMS[program](_product)(x, y)
    found = torch.compile(PROGRAMS[program](operator), backend="eager", fullgraph=True)(x, y)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(PROGRAMS[program](operator)(x, y), expected)  # no level is left open
