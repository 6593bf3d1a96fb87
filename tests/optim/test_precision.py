"""Dtypes of states, rounding at random, masters, clipping, and GradScaler."""

from __future__ import annotations

import copy
import gc
import math
from typing import Any

import pytest
import torch

from opwright.optim import SGD, AdamW
from opwright.optim.rounding import rounded_at_random
from tests.optim.trained import assert_same, parameters, train

pytestmark = pytest.mark.usefixtures("ranks")

DRAWS = 100_000
STANDARD_ERRORS = 3


def test_states_have_the_dtypes_that_are_asked_for() -> None:
    optimizer = AdamW(parameters(), state_dtype={"exp_avg": torch.bfloat16})
    train(optimizer, 3)
    for state in optimizer.state.values():
        assert state["exp_avg"].dtype == torch.bfloat16
        assert state["exp_avg_sq"].dtype == torch.float32


def test_states_of_less_precision_are_near() -> None:
    made = train(AdamW(parameters(), lr=0.01, state_dtype=torch.bfloat16), 5)
    right = train(torch.optim.AdamW(parameters(), lr=0.01), 5)
    torch.testing.assert_close(made, right, rtol=0.02, atol=0.005)
    assert any(not torch.equal(a, b) for a, b in zip(made, right, strict=True))


def test_states_of_more_precision_than_the_parameter() -> None:
    optimizer = AdamW(parameters(dtype=torch.bfloat16), state_dtype=torch.float32)
    train(optimizer, 2)
    assert {state["exp_avg"].dtype for state in optimizer.state.values()} == {torch.float32}


def test_a_state_dict_keeps_dtypes() -> None:
    optimizer = AdamW(parameters(), state_dtype=torch.bfloat16)
    train(optimizer, 2)
    other = AdamW([p.detach().clone().requires_grad_() for p in optimizer.param_groups[0]["params"]])
    other.load_state_dict(optimizer.state_dict())
    assert {state["exp_avg"].dtype for state in other.state.values()} == {torch.bfloat16}
    assert {state["step"].dtype for state in other.state.values()} == {torch.float32}
    assert_same(train(other, 2, seed=7), train(optimizer, 2, seed=7))


def within(mean: float, exact: float, spread: float, draws: int) -> bool:
    return abs(mean - exact) <= STANDARD_ERRORS * spread / math.sqrt(draws)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("value", [1.001, -0.3333, 3e-6, 1.0])
def test_random_rounding_is_unbiased(dtype: torch.dtype, value: float) -> None:
    torch.manual_seed(11)
    param = torch.zeros(DRAWS, dtype=dtype, requires_grad=True)
    optimizer = SGD([param], lr=1.0 / 3, rounding="stochastic")
    param.grad = torch.full_like(param, -value)
    optimizer.step()
    exact = -param.grad[0].float() * torch.tensor(1 / 3)
    assert_unbiased(param.detach(), exact.item())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("value", [1.001, -0.3333, 3e-6, 1.0])
def test_random_rounding_by_operations_is_unbiased(dtype: torch.dtype, value: float) -> None:
    made = rounded_at_random(torch.full((DRAWS,), value), dtype, torch.Generator().manual_seed(0))
    assert_unbiased(made, torch.tensor(value).item())


def assert_unbiased(made: torch.Tensor, exact: float) -> None:
    values = made.double()
    assert values.unique().numel() <= 2
    assert abs(values.mean().item() - exact) <= STANDARD_ERRORS * values.std().item() / math.sqrt(DRAWS)


def test_random_rounding_is_reproduced_from_the_seed_and_the_state_dict() -> None:
    def run(seed: int) -> Any:
        torch.manual_seed(seed)
        optimizer = AdamW(parameters(dtype=torch.bfloat16), rounding="stochastic")
        train(optimizer, 3)
        return optimizer

    first, second, third = run(1), run(1), run(2)
    assert_same(first.param_groups[0]["params"], second.param_groups[0]["params"])
    pairs = zip(first.param_groups[0]["params"], third.param_groups[0]["params"], strict=True)
    assert any(not torch.equal(a, b) for a, b in pairs)
    torch.manual_seed(77)
    other = AdamW([p.detach().clone().requires_grad_() for p in first.param_groups[0]["params"]], rounding="stochastic")
    other.load_state_dict(copy.deepcopy(first.state_dict()))
    assert_same(train(other, 2, seed=9), train(first, 2, seed=9))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_rounding_by_operations_is_to_a_neighbour(dtype: torch.dtype) -> None:
    values = torch.cat([torch.randn(1000) * 10.0**power for power in range(-8, 4)] + [torch.tensor([0.0, 1e30, -1e30])])
    special = torch.tensor([math.inf, -math.inf, math.nan])
    made = rounded_at_random(values[:-2], dtype, torch.Generator().manual_seed(0)).double()
    nearest = values[:-2].to(dtype)
    apart = (nearest.view(torch.int16) + 1).view(dtype).double() - nearest.double()
    assert ((made - values[:-2].double()).abs() <= apart.abs() * 1.01).all()
    torch.testing.assert_close(rounded_at_random(special, dtype, torch.Generator()), special.to(dtype), equal_nan=True)


def test_masters_keep_what_is_too_small_for_the_parameter() -> None:
    param = torch.ones(64, dtype=torch.bfloat16, requires_grad=True)
    plain = torch.ones(64, dtype=torch.bfloat16, requires_grad=True)
    with_master, without = SGD([param], lr=1e-4, master=True), SGD([plain], lr=1e-4)
    for _ in range(100):
        param.grad = plain.grad = torch.ones(64, dtype=torch.bfloat16)
        with_master.step()
        without.step()
    assert torch.equal(plain.detach(), torch.ones_like(plain))
    torch.testing.assert_close(with_master.state[param]["master"], torch.full((64,), 0.99))
    assert torch.equal(param.detach(), torch.full((64,), 0.99).bfloat16())


def test_masters_go_on_when_the_parameters_change() -> None:
    param, later = (torch.ones(64, dtype=torch.bfloat16, requires_grad=True) for _ in range(2))
    optimizer = SGD([param], lr=1e-4, master=True)
    for step in range(100):
        if step == 50:
            optimizer.add_param_group({"params": [later]})
        param.grad = later.grad = torch.ones(64, dtype=torch.bfloat16)
        optimizer.step()
    torch.testing.assert_close(optimizer.state[param]["master"], torch.full((64,), 0.99))
    torch.testing.assert_close(optimizer.state[later]["master"], torch.full((64,), 0.995))


@pytest.mark.parametrize("most", [0.1, 1e6])
def test_clipping_is_that_of_clip_grad_norm(most: float) -> None:
    def grads(params: list[torch.Tensor]) -> list[torch.Tensor]:
        generator = torch.Generator().manual_seed(1)
        return [torch.randn(p.shape, generator=generator) for p in params]

    params, others = parameters(), parameters()
    optimizer, right = AdamW(params, max_grad_norm=most, lr=0.1), AdamW(others, lr=0.1)
    for _ in range(3):
        for param, other, grad in zip(params, others, grads(params), strict=True):
            param.grad, other.grad = grad.clone(), grad.clone()
        torch.nn.utils.clip_grad_norm_(others, most)
        right.step()
        optimizer.step()
    assert_same(params, others)


def test_gradients_are_not_kept() -> None:
    optimizer = AdamW(parameters(((40, 3), (5,), ())))
    train(optimizer, 2)
    kept = [param.grad.untyped_storage() for param in optimizer.param_groups[0]["params"]]
    assert all(torch._C._storage_Use_Count(storage._cdata) > 1 for storage in kept)
    optimizer.zero_grad()
    gc.collect()
    assert [torch._C._storage_Use_Count(storage._cdata) for storage in kept] == [1, 1, 1]


def test_gradients_are_freed_on_request() -> None:
    optimizer = SGD(parameters(), free_grads=True)
    assert all(param.grad is None for param in train(optimizer, 1))


@pytest.mark.parametrize("unscaled_before", [False, True])
def test_grad_scaler(unscaled_before: bool) -> None:
    def run(cls: Any, options: dict[str, Any]) -> tuple[list[torch.Tensor], list[torch.Tensor], float]:
        scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
        params = parameters()
        optimizer = cls(params, lr=0.1, **options)
        for count in range(4):
            optimizer.zero_grad()
            loss = sum((p * p).sum() for p in params) * (float("inf") if count == 2 else 1.0)
            scaler.scale(loss).backward()
            if unscaled_before:
                scaler.unscale_(optimizer)
            scaler.step(optimizer)
            scaler.update()
        return params, [p.grad for p in params], scaler.get_scale()

    made, right = run(AdamW, {}), run(torch.optim.AdamW, {"fused": True})
    torch.testing.assert_close(made, right, equal_nan=True)


@pytest.mark.parametrize("most", [0.5, 2.0])  # of the norm of the gradients as they are without the scale
def test_clipping_of_scaled_gradients(most: float) -> None:
    """Gradients are clipped as after `scaler.unscale_`."""

    def run(make: Any, *, by_hand: bool) -> list[torch.Tensor]:
        scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
        params = parameters()
        norm = float(torch.nn.utils.get_total_norm([2 * p.detach() for p in params]))
        optimizer = make(params, norm * most)
        scaler.scale(sum((p * p).sum() for p in params)).backward()
        if by_hand:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(params, norm * most)
        scaler.step(optimizer)
        return params

    made = run(lambda params, norm: SGD(params, lr=0.1, max_grad_norm=norm), by_hand=False)
    torch.testing.assert_close(made, run(lambda params, norm: torch.optim.SGD(params, lr=0.1), by_hand=True))
