"""What asks whether torch's functions are overridden gets the answer of a call, where no mode of a trace is there."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._guards import detect_fake_mode
from torch.overrides import has_torch_function_unary
from torch.utils._python_dispatch import is_in_torch_dispatch_mode

import opwright
from opwright.tracing.torch_hooks.has_torch_function import asked_as_in_calls


def in_overrides(x: Tensor) -> Tensor:
    asked = torch.overrides.has_torch_function((x, 1)) or torch.overrides.has_torch_function_unary(x)
    return x.sin() * (2 if asked or torch.overrides.has_torch_function_variadic(x, x.shape[0]) else 3)


def by_a_name_of_its_own(x: Tensor) -> Tensor:
    return x.sin() * (2 if has_torch_function_unary(x) else 3)


def whether_modes_are_on(x: Tensor) -> Tensor:
    return x.sin() * (2 if is_in_torch_dispatch_mode() or torch._C._len_torch_function_stack() else 3)


def whether_it_is_fake(x: Tensor) -> Tensor:
    return x.sin() * (3 if detect_fake_mode([x]) is None else 2)


@pytest.mark.falls_back
@pytest.mark.parametrize("function", [in_overrides, by_a_name_of_its_own, whether_modes_are_on, whether_it_is_fake])
def test_what_a_trace_cannot_answer_is_the_functions(function: Any):
    operator, x = opwright.operator(function), torch.linspace(0, 1, 5)
    for _ in range(2):
        torch.testing.assert_close(operator(x), function(x))
    assert operator.last_rung == "composed"


def test_torch_asks_without_the_modes_of_a_trace():
    class Overriding(Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return super().__torch_function__(func, types, args, kwargs or {})

    plain = torch.ones(2)
    with asked_as_in_calls(), torch.overrides.TorchFunctionMode():
        assert not torch.overrides.has_torch_function((plain, nn.Parameter(plain), 1))
        assert torch.overrides.has_torch_function_variadic(plain, plain.as_subclass(Overriding))
    assert not torch.overrides.has_torch_function_unary(plain)
    with torch.overrides.TorchFunctionMode():
        assert torch.overrides.has_torch_function((plain,))


class Attending(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: Tensor, mask: Tensor, padding: Tensor) -> Tensor:
        found: Tensor = self.inner(x, x, x, attn_mask=mask, key_padding_mask=padding, need_weights=False)[0]
        return found


@pytest.mark.falls_back  # one operation of torch's may be all there is
@pytest.mark.parametrize("make", [lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), Attending])
def test_attention_takes_the_way_that_it_takes_in_eager(make: Any):
    """The faster way gives NaN where a row is masked whole."""
    torch.manual_seed(0)
    module = make().eval()
    served = opwright.module(module)
    x, mask = torch.randn(2, 4, 8), torch.triu(torch.ones(4, 4), 1).bool()
    padding = torch.tensor([[1, 0, 0, 0], [0, 0, 0, 1]]).bool()
    for recording in (False, True, False):
        with torch.set_grad_enabled(recording):
            for _ in range(2):
                torch.testing.assert_close(served(x, mask, padding), module(x, mask, padding), equal_nan=True)
