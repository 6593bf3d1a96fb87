"""Libraries that remember frameworks by the class of a tensor: they tell a trace what they tell calls."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable

import pytest
import torch

import opwright

_LIBRARY = """
known = {}

def get_backend(tensor):
    kind = type(tensor)
    if kind not in known:
        known[kind] = Backend() if isinstance(tensor, torch.Tensor) else None
    return known[kind]

class Backend:
    def shape(self, x):
        return x.shape

def halves(x):
    shape = get_backend(x).shape(x)
    return x.reshape(*shape[:-1], 2, shape[-1] // 2)
"""


@pytest.fixture
def halves(monkeypatch: pytest.MonkeyPatch) -> Callable[[torch.Tensor], torch.Tensor]:
    library = types.ModuleType("einops._backends")
    library.torch = torch
    exec(compile(_LIBRARY, "/site-packages/einops/_backends.py", "exec"), vars(library))
    monkeypatch.setitem(sys.modules, "einops._backends", library)
    return library.halves


def test_a_function_that_asks_such_a_library_has_kernels(halves: Callable[[torch.Tensor], torch.Tensor]) -> None:
    @opwright.operator(name="tests::asks_a_library")
    def function(x: torch.Tensor) -> torch.Tensor:
        return halves(x).sum(-1).tanh()

    x = torch.randn(3, 8)
    for given in (x, torch.nn.Parameter(x), x):
        torch.testing.assert_close(function(given), function.reference(given))
        assert function.last_rung == "cpp"


def test_what_it_remembers_does_not_grow_in_a_trace(halves: Callable[[torch.Tensor], torch.Tensor]) -> None:
    class Layer(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return halves(x).sum(-1).tanh()

    served, x = opwright.module(Layer()), torch.randn(3, 8)
    served(x)
    known = halves.__globals__["known"]
    before = dict(known)
    for given in (x, torch.nn.Parameter(x), torch.randn(2, 3, 6)):
        torch.testing.assert_close(served(given), Layer()(given))
    assert known == before
    assert str(served.explain()).count("kernels") == 1
