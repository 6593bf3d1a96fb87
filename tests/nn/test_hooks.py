"""Hooks run in PyTorch's order, on the served module and inside of it."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import nn

import opwright


def _events(module: nn.Module, inner: bool) -> list[str]:
    events: list[str] = []
    hooked = module[0] if inner else module
    hooked.register_forward_pre_hook(lambda *_: events.append("before"))
    hooked.register_forward_hook(lambda *_: events.append("after"))
    hooked.register_full_backward_pre_hook(lambda *_: events.append("before backward"))
    hooked.register_full_backward_hook(lambda *_: events.append("after backward"))
    x = torch.randn(4, 6, requires_grad=True)
    for _ in range(2):
        module(x).sum().backward()
    return events


@pytest.mark.falls_back
@pytest.mark.parametrize("inner", [False, True], ids=["outer", "inner"])
def test_hooks_run_in_order(inner: bool) -> None:
    plain = nn.Sequential(nn.Linear(6, 4), nn.Tanh())
    served = opwright.module(copy.deepcopy(plain))
    assert _events(served, inner) == _events(plain, inner)
    assert served.last_rung == ("composed" if inner else "cpp")


@pytest.mark.falls_back
def test_inner_hooks_are_said_once_and_removal_brings_kernels_back(told: Callable[[], list[str]]) -> None:
    served = opwright.module(nn.Sequential(nn.Linear(6, 4), nn.Tanh()))
    handle = served[0].register_forward_hook(lambda module, args, output: output * 2)
    x = torch.randn(3, 6)
    for _ in range(2):
        torch.testing.assert_close(served(x), torch.tanh(2 * nn.functional.linear(x, served[0].weight, served[0].bias)))
    assert ["its module '0' has hooks, which must run" in text for text in told()] == [True]
    handle.remove()
    torch.testing.assert_close(served(x), torch.tanh(nn.functional.linear(x, served[0].weight, served[0].bias)))
    assert served.last_rung == "cpp"


def test_an_outer_hook_changes_the_result() -> None:
    served = opwright.module(nn.Linear(6, 4))
    served.register_forward_hook(lambda module, args, output: output + 1)
    x = torch.randn(3, 6)
    torch.testing.assert_close(served(x), nn.functional.linear(x, served.weight, served.bias) + 1)


@pytest.mark.falls_back
def test_global_hooks_reach_the_modules_inside() -> None:
    served = opwright.module(nn.Sequential(nn.Linear(6, 4), nn.Tanh()))
    seen: list[str] = []
    handle = nn.modules.module.register_module_forward_hook(lambda m, *_: seen.append(type(m).__name__))
    try:
        served(torch.randn(3, 6))
    finally:
        handle.remove()
    assert seen == ["Linear", "Tanh", "Sequential"]
