"""Sizes of weights are constants in what is derived from a module."""

from __future__ import annotations

import torch
from torch import nn

import opwright
from opwright.derivation.backward import backward_reference, make_static, static_in
from opwright.ir.expressions.integer import Condition, integer
from opwright.ir.program import size_symbol
from opwright.operators.stages import derive
from tests.derived import specs_of


def _scaled(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x * weight)


def test_sizes_of_static_parameters_are_constants() -> None:
    def reference(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return _scaled(x, weight)

    make_static(reference, ["weight"])
    specs = specs_of(["x", "weight"], [torch.randn(3, 4), torch.randn(4)])
    forward = derive(reference, specs, "scaled").forward
    assert Condition("==", size_symbol("weight", 0), integer(4)) in forward.guards
    assert forward.steps[0].targets[0].shape[1] == integer(4)
    assert derive(_scaled, specs, "scaled").forward.steps[0].targets[0].shape[1] == size_symbol("x", 1)


def test_the_gradient_inherits_them() -> None:
    def reference(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return _scaled(x, weight)

    make_static(reference, ["weight"])
    assert static_in(backward_reference(reference, 2, [0], [0])) == {"weight"}
    assert not static_in(backward_reference(_scaled, 2, [0], [0]))


def test_a_weight_of_another_width_gets_kernels_of_its_own() -> None:
    plain = nn.LayerNorm(6)
    served = opwright.module(plain)
    for width in (6, 5, 6):
        plain.normalized_shape = (width,)
        plain.weight, plain.bias = nn.Parameter(torch.randn(width)), nn.Parameter(torch.randn(width))
        x = torch.randn(3, width)
        torch.testing.assert_close(served(x), plain(x))
        assert served.last_rung == "cpp"
