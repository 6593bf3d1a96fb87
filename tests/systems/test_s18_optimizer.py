"""S18: an optimizer of one's own, AdamW, whose update is written once and runs as one kernel over many tensors."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch

import opwright

SHAPES = ((40, 3), (7,), (2, 3, 4, 5), (1, 6), ())


@opwright.optimizer(state=("exp_avg", "exp_avg_sq"))
def OwnAdamW(param, grad, exp_avg, exp_avg_sq, step, *, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2):
    beta1, beta2 = betas
    param = param * (1 - lr * weight_decay)
    exp_avg = beta1 * exp_avg + (1 - beta1) * grad
    exp_avg_sq = beta2 * exp_avg_sq + (1 - beta2) * grad * grad
    denominator = (exp_avg_sq / (1 - beta2**step)).sqrt() + eps
    return param - lr / (1 - beta1**step) * exp_avg / denominator, exp_avg, exp_avg_sq


def model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))


def fit(network: torch.nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    for _ in range(steps):
        optimizer.zero_grad()
        network(torch.randn(16, 5, generator=generator)).square().mean().backward()
        optimizer.step()
    return [param.detach().clone() for param in network.parameters()]


def groups(network: Any) -> list[dict[str, Any]]:
    return [{"params": network[0].parameters()}, {"params": network[2].parameters(), "lr": 0.05, "betas": (0.8, 0.9)}]


def test_it_trains_as_that_of_torch() -> None:
    ours, theirs = model(), model()
    made = fit(ours, OwnAdamW(groups(ours), lr=0.01), 20)
    right = fit(theirs, torch.optim.AdamW(groups(theirs), lr=0.01), 20)
    torch.testing.assert_close(made, right)


def test_it_has_what_an_optimizer_has() -> None:
    network = model()
    optimizer = OwnAdamW(groups(network), lr=0.01)
    assert isinstance(optimizer, torch.optim.Optimizer)
    assert optimizer.defaults["betas"] == (0.9, 0.999)
    assert [group["lr"] for group in optimizer.param_groups] == [0.01, 0.05]
    extra = torch.nn.Parameter(torch.ones(3))
    optimizer.add_param_group({"params": [extra]})
    fit(network, optimizer, 2)
    assert extra not in optimizer.state
    assert set(optimizer.state[network[0].weight]) == {"step", "exp_avg", "exp_avg_sq"}


def test_going_on_after_saving_is_exact() -> None:
    def again(optimizer: Any, network: torch.nn.Module) -> list[torch.Tensor]:
        return fit(network, optimizer, 3)

    network = model()
    optimizer = OwnAdamW(network.parameters(), lr=0.01)
    fit(network, optimizer, 3)
    saved, params = copy.deepcopy(optimizer.state_dict()), copy.deepcopy(network.state_dict())
    right = again(optimizer, network)
    other = model()
    other.load_state_dict(params)
    resumed = OwnAdamW(other.parameters(), lr=0.5)
    resumed.load_state_dict(saved)
    assert all(map(torch.equal, again(resumed, other), right))
    assert pickle.loads(pickle.dumps(resumed)).param_groups[0]["lr"] == 0.01


def test_one_kernel_serves_all_tensors_and_all_rates() -> None:
    params = [torch.randn(shape, requires_grad=True) for shape in SHAPES[:4]]
    optimizer = OwnAdamW(params)
    for param in params:
        param.grad = torch.randn_like(param)
    optimizer.step()
    sources = {variant.name for _, found in OwnAdamW.variants.all() for variant in found
               if hasattr(variant, "operands")}  # fmt: skip
    assert len(sources) == 1
    before = OwnAdamW.variants.built
    for count in range(1000):
        rate = 1e-3 / (1 + count)
        optimizer.param_groups[0]["lr"] = rate if count % 2 else torch.tensor(rate)
        optimizer.step()
    assert OwnAdamW.variants.built == before


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape(shape: tuple[int, ...]) -> None:
    start, grad = torch.randn(shape), torch.randn(shape)
    found = []
    for cls in (OwnAdamW, torch.optim.AdamW):
        param = start.clone().requires_grad_()
        optimizer = cls([param], lr=0.1)
        for _ in range(3):
            param.grad = grad.clone()
            optimizer.step()
        found.append(param.detach())
    torch.testing.assert_close(*found)
