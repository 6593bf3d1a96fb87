"""Steps as functions: pure, differentiable, and the same as those in place."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

import opwright.optim
from opwright.optim import LAMB, SGD, Adam, AdamW
from tests.optim.trained import parameters, train
from tests.suite.nights import mostly_at_night


@pytest.mark.usefixtures("ranks")
@pytest.mark.parametrize("name", mostly_at_night(["SGD", "LAMB", "ScheduleFreeAdamW", "AdamW", "NAdam"], by_day=3))
def test_it_is_the_step_in_place_and_changes_nothing(name: str) -> None:
    cls = getattr(opwright.optim, name)
    optimizer = cls(parameters())
    params = [param.detach().clone() for param in optimizer.param_groups[0]["params"]]
    states = None
    for step in (1, 2, 3):
        train(optimizer, 1, seed=step)
        grads = [param.grad for param in optimizer.param_groups[0]["params"]]
        before = [param.clone() for param in params]
        found, states = cls.functional(params, grads, states, step)
        assert all(torch.equal(a, b) for a, b in zip(params, before, strict=True))
        params = found
    torch.testing.assert_close(params, [p.detach() for p in optimizer.param_groups[0]["params"]])


@pytest.mark.parametrize("cls", [SGD, AdamW, LAMB])
def test_it_is_differentiable_twice_in_everything(cls: type) -> None:
    def stepped(param: torch.Tensor, grad: torch.Tensor, lr: torch.Tensor, decay: torch.Tensor) -> torch.Tensor:
        (once,), states = cls.functional([param], [grad], lr=lr, weight_decay=decay, step=1)
        (twice,), _ = cls.functional([once], [grad * once], states, lr=lr, weight_decay=decay, step=2)
        return twice

    torch.manual_seed(0)
    given = [torch.randn(4, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    given += [torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in (0.1, 0.01)]
    assert gradcheck(stepped, given)
    assert gradgradcheck(stepped, given)


def test_a_learning_rate_is_learned_through_unrolled_steps() -> None:
    def loss_after(lr: torch.Tensor) -> torch.Tensor:
        params, states = [torch.ones(3)], None
        for step in (1, 2, 3):
            params, states = Adam.functional(params, [2 * params[0]], states, step, lr=lr)
        return params[0].square().sum()

    assert torch.func.grad(loss_after)(torch.tensor(0.01)) < 0


def test_without_a_gradient_nothing_moves() -> None:
    param = torch.ones(3)
    params, states = AdamW.functional([param], [None])
    assert params[0] is param
    assert states == [{}]


@opwright.operator(name="optim_tests::three_steps")
def three_steps(param: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
    params, states = [param], None
    for step in (1, 2, 3):
        params, states = AdamW.functional(params, [grad], states, step, lr=0.1)
    return params[0]


def test_unrolled_steps_are_one_operator() -> None:
    param, grad = torch.randn(6, 5, requires_grad=True), torch.randn(6, 5)
    torch.testing.assert_close(three_steps(param, grad), three_steps.reference(param, grad))
    assert three_steps.last_rung == "cpp"


@pytest.mark.parametrize("name", mostly_at_night(["AdamW", "Lion", "LAMB"], by_day=2))
def test_check_passes(name: str) -> None:
    verdict = getattr(opwright.optim, name).check(dtypes=(torch.float32,))
    failed = [str(row) for row in verdict.rows if row.status == "failed"]
    if name == "Lion":  # signs have no numeric derivatives
        failed = [row for row in failed if "derivatives" not in row]
    assert not failed


def test_explain_shows_the_kernel_and_its_traffic() -> None:
    page = AdamW.explain()
    assert "A step reads 16 bytes and writes 12 bytes" in page
    assert "update_on_stack<adamw_optimizer>" in page
    assert "A step reads 8 bytes and writes 6 bytes" in AdamW.explain(dtype=torch.bfloat16)


def test_bench_measures_every_way() -> None:
    times = SGD.bench(sizes=[64, 100], rounds=1)
    assert {"kernels", "definition", "torch.optim, fused"} <= set(times.median_us)
    assert "torch.optim, fused" in repr(times)
