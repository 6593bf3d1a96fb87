"""While the module in C++ is being built, calls like an earlier one are left to the module as written."""

import pytest
import torch
from torch import nn

import opwright
from opwright.nn import meanwhile, serving


class Coming:
    """Stands for the module of the process, which is not there yet."""

    def __init__(self, *, is_coming=True):
        self.is_coming = is_coming

    def equip(self, user, settings):
        pass


@pytest.fixture
def native(monkeypatch):
    coming = Coming()
    monkeypatch.setattr(serving, "native", coming)
    monkeypatch.setattr(meanwhile, "_LONG_S", float("inf"))
    return coming


def rung_of(module, *args):
    result = module(*args)
    torch.testing.assert_close(result, nn.Module.__call__(module.original, *args))
    return module.last_rung


def served():
    written = nn.Sequential(nn.Linear(3, 4), nn.GELU())
    module = opwright.module(written)
    object.__setattr__(module, "original", written)
    return module


def test_calls_like_an_earlier_one_run_as_written(native):
    module, x = served(), torch.randn(2, 3)
    assert rung_of(module, x) == "cpp"
    rungs = [rung_of(module, torch.randn(5, 3)) for _ in range(3)]
    assert rungs[-1] == "composed"
    assert "as written until what calls them is built" in str(module.explain())


@pytest.mark.parametrize(
    "other",
    [
        lambda module, x: (module, x.double()),
        lambda module, x: (module, x.requires_grad_()),
        lambda module, x: (module, x[None]),
        lambda module, x: (module.eval(), x),
    ],
    ids=["dtype", "gradient", "dimensions", "mode"],
)
def test_new_calls_are_derived_for(native, other):
    module, x = served(), torch.randn(2, 3)
    for _ in range(3):
        module(x)
    assert module.last_rung == "composed"
    module, x = other(module, x.clone())
    if x.dtype is torch.float64:
        module.double()
    module(x)
    assert module.last_rung == "cpp"


def test_all_calls_run_on_kernels_when_it_is_there(native):
    module, x = served(), torch.randn(2, 3)
    for _ in range(3):
        module(x)
    native.is_coming = False
    assert rung_of(module, x) == "cpp"
    assert "as written" not in str(module.explain())


def test_long_comparisons_are_not_made_in_python_where_cpp_never_comes(native, monkeypatch):
    monkeypatch.setattr(meanwhile, "_LONG_S", 0.0)
    native.is_coming = False
    module, x = served(), torch.randn(2, 3)
    assert [rung_of(module, x) for _ in range(3)] == ["cpp", "cpp", "composed"]
    assert "what calls them cannot be built here" in str(module.explain())


def test_a_user_who_wants_no_cpp_has_kernels(native, monkeypatch):
    monkeypatch.setenv("OPWRIGHT_TAPE", "off")
    module, x = served(), torch.randn(2, 3)
    assert [rung_of(module, x) for _ in range(3)] == ["cpp", "cpp", "cpp"]


def test_calls_with_what_cannot_be_hashed_are_always_new(native):
    class Scaled(nn.Module):
        def forward(self, x, options):
            return x * 2 if options else x.exp()

    module, options = opwright.module(Scaled()), {1, 2}
    for _ in range(3):
        torch.testing.assert_close(module(torch.ones(3), options), torch.full((3,), 2.0))
