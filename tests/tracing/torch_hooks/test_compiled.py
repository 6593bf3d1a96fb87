"""Operators whose functions call others that `torch.compile` has compiled."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import nn
from torch.nn import functional

import opwright
from opwright.tracing.torch_hooks.compiled import compiled_as_written
from tests.suite.nights import mostly_at_night

X = torch.linspace(-1, 1, 6)
WAYS = {"plain": {}, "whole": {"fullgraph": True}, "of any size": {"dynamic": True}}


@pytest.fixture(autouse=True)
def _nothing_is_compiled():
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.mark.parametrize("way", mostly_at_night(WAYS, ["whole"]))
def test_they_have_kernels_that_see_what_changes(way):
    scale = 2.0

    def written(x):
        return x.sin() * scale

    inner = torch.compile(written, backend="eager", **WAYS[way])
    operator = opwright.operator(lambda x: inner(x) + x, name=f"calls_compiled_{way.replace(' ', '_')}")
    for scale in (2.0, 3.0):
        x = X.clone().requires_grad_()
        result = operator(x)
        torch.testing.assert_close(result, x.sin() * scale + x)
        torch.testing.assert_close(torch.autograd.grad(result.sum(), x)[0], x.cos() * scale + 1)
        assert operator.last_rung == "cpp"
    inner = torch.compile(lambda x: x.exp(), backend="eager")
    torch.testing.assert_close(operator(X), X.exp() + X)
    assert operator.last_rung == "cpp"


@pytest.mark.falls_back
def test_transforms_and_draws():
    inner = torch.compile(lambda x: functional.dropout(x.sin()), backend="eager")

    def calls(x):
        return inner(x) * x

    operator = opwright.operator(calls)
    transforms = (
        lambda f: f(X),
        lambda f: torch.func.grad(lambda x: f(x).sum())(X),
        lambda f: torch.func.jvp(f, (X,), (X,)),
        lambda f: torch.vmap(f, randomness="different")(X.reshape(2, 3)),
    )
    for transform in transforms:
        found = []
        for function in (operator, calls):
            torch.manual_seed(1)
            found.append((transform(function), torch.rand(())))
        torch.testing.assert_close(*found)


@pytest.mark.falls_back
def test_side_effects_are_seen():
    calls = []

    def written(x):
        calls.append(x)
        return x * 2

    inner = torch.compile(written, backend="eager")
    operator = opwright.operator(lambda x: inner(x) + 1, name="calls_compiled_that_counts")
    for _ in range(3):
        operator(X)
    assert len(calls) == 3
    assert operator.last_rung == "composed"


def test_other_threads_compile():
    compiled = []

    def backend(graph, _):
        compiled.append(graph)
        return graph

    inner = torch.compile(lambda x: x.sin(), backend=backend)
    with compiled_as_written():
        inner(X)
        assert not compiled
        thread = threading.Thread(target=inner, args=(X,))
        thread.start()
        thread.join()
        assert len(compiled) == 1
    inner(torch.ones(2, 2))
    assert len(compiled) == 2


@pytest.mark.falls_back
def test_a_module_of_which_a_part_is_compiled():
    class Joined(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = torch.compile(nn.Linear(3, 3), backend="eager"), nn.Linear(3, 3)

        def forward(self, x):
            return self.first(x) + torch.tanh(self.second(x))

    module = Joined()
    x = torch.randn(4, 3)
    expected = module(x)
    torch.testing.assert_close(opwright.module(module)(x), expected)
    torch.testing.assert_close(opwright.module(module, depth=1)(x), expected)
