"""S01: a linear layer on every rung."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.autograd import gradcheck

from tests.systems.by_hand import by_hand, written


def double(*sizes: int) -> torch.Tensor:
    return torch.randn(*sizes, dtype=torch.float64, requires_grad=True)


def test_the_function_is_written_by_hand() -> None:
    assert written(by_hand("linear", "linear")) == {"function", "cpp"}
    assert written(by_hand("linear", "add_bias")) == {"cpp", "cuda"}


def test_gradcheck_of_the_size_in_the_documents() -> None:
    x, weight, bias = double(16, 512), double(256, 512), double(256)
    assert gradcheck(by_hand("linear", "linear").on("function"), (x, weight, bias), fast_mode=True)


@pytest.mark.nightly  # against torch/extension.h: some twenty seconds of a compiler
def test_gradcheck_of_the_cpp_rung() -> None:
    linear = by_hand("linear", "linear").on("cpp")
    x, weight, bias = double(16, 512), double(256, 512), double(256)
    assert gradcheck(linear, (x, weight, bias), fast_mode=True)
    assert gradcheck(linear, (x, weight, None), fast_mode=True)
    assert_gradients_where_asked(linear)


def test_gradients_only_where_they_are_asked_for() -> None:
    assert_gradients_where_asked(by_hand("linear", "linear").on("function"))


def assert_gradients_where_asked(linear: Callable[..., Any]) -> None:
    x, weight, bias = torch.randn(4, 3), torch.randn(5, 3, requires_grad=True), torch.randn(5)
    linear(x, weight, bias).sum().backward()
    torch.testing.assert_close(weight.grad, x.sum(0).expand(5, 3))
    assert x.grad is None
    assert bias.grad is None


def test_the_bias_is_added_by_a_kernel_to_any_layout() -> None:
    add_bias = by_hand("linear", "add_bias")
    product, bias = double(5, 4).t(), double(5)
    assert torch.equal(add_bias.on("cpp")(product, bias), product + bias)
    assert gradcheck(add_bias.on("cpp"), (product, bias))  # its backward pass is derived


def test_without_a_bias() -> None:
    x, weight = torch.randn(4, 3), torch.randn(5, 3)
    torch.testing.assert_close(by_hand("linear", "linear").on("function")(x, weight), x @ weight.t())
