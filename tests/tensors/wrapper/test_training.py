"""Wrappers as the parameters of modules: optimizers, states, checkpoints of activations, export, and sharding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from tests.tensors.wrapped import Meta


def linear(dtype: torch.dtype = torch.float64) -> nn.Linear:
    module = nn.Linear(4, 3, dtype=dtype)
    wrapped = nn.Parameter(Meta(module.weight.detach().clone(), "me"))
    assert isinstance(wrapped, nn.Parameter)
    module.weight = wrapped
    return module


def twin_of(module: nn.Linear) -> nn.Linear:
    """The same with plain parameters."""
    plain = nn.Linear(4, 3, dtype=module.weight.dtype)
    plain.load_state_dict({"weight": module.weight.elem.clone(), "bias": module.bias.detach().clone()})
    return plain


OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "SGD with momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "Adam": lambda parameters: torch.optim.Adam(parameters, lr=0.1),
    "AdamW, fused": lambda parameters: torch.optim.AdamW(parameters, lr=0.1, fused=True),
    "AdamW, foreach": lambda parameters: torch.optim.AdamW(parameters, lr=0.1, foreach=True),
    "RMSprop": lambda parameters: torch.optim.RMSprop(parameters, lr=0.1),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_takes_the_steps_of_plain_parameters(name: str) -> None:
    module = linear()
    plain, x = twin_of(module), torch.randn(5, 4, dtype=torch.float64)
    inside = module.weight.elem
    for each in (module, plain):
        optimizer = OPTIMIZERS[name](each.parameters())
        for _ in range(3):
            optimizer.zero_grad()
            each(x).square().mean().backward()
            optimizer.step()
    assert type(module.weight) is Meta
    assert module.weight.elem is inside
    torch.testing.assert_close(inside, plain.weight.detach())


def test_states_are_saved_and_loaded() -> None:
    module, other = linear(), linear()
    state = module.state_dict()
    assert type(state["weight"]) is Meta
    assert state["weight"].owner == "me"
    other.load_state_dict(state)
    assert torch.equal(other.weight.elem, module.weight.elem)
    assert other.weight.elem is not module.weight.elem
    twin_of(module).load_state_dict(state)  # plain parameters take the values


def test_modules_move_with_their_metadata() -> None:
    module = linear().to(torch.float32)
    assert (type(module.weight), module.weight.owner, module.weight.dtype) == (Meta, "me", torch.float32)
    assert module.weight.elem.dtype == torch.float32
    assert isinstance(module.weight, nn.Parameter)
    on_meta = module.to("meta")
    assert on_meta.weight.elem.is_meta
    assert on_meta.weight.owner == "me"


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_activations_are_computed_again(use_reentrant: bool) -> None:
    module = linear()
    plain, given = twin_of(module), torch.randn(5, 4, dtype=torch.float64, requires_grad=True)
    wrapper = Meta(given.detach().clone(), "me").requires_grad_()
    found = checkpoint(lambda x: torch.tanh(module(x)) ** 2, wrapper, use_reentrant=use_reentrant)
    found.sum().backward()
    (torch.tanh(plain(given)) ** 2).sum().backward()
    assert (type(found), found.owner) == (Meta, "me")
    torch.testing.assert_close(wrapper.grad.elem, given.grad)
    torch.testing.assert_close(module.weight.grad.elem, plain.weight.grad)


def test_a_module_is_exported() -> None:
    module, x = linear(), torch.randn(5, 4, dtype=torch.float64)
    exported = torch.export.export(module, (x,))
    found = exported.module()(x)
    expected = module(x)
    assert type(expected) is Meta
    torch.testing.assert_close(getattr(found, "elem", found), expected.elem)
