"""What is asked of optimizers beside their numbers: no rebuilding, no memory, tensors as numbers, other devices."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch
from torch.profiler import profile

import opwright.func
import opwright.optim
from opwright.optim import SGD, AdamW
from tests.optim.trained import assert_same, parameters, train
from tests.suite.nights import mostly_at_night

SHAPES = ((7, 5), (3,), (2, 3, 4))


@pytest.mark.parametrize("cls", mostly_at_night([AdamW, opwright.optim.LAMB, opwright.optim.NAdam], 1))
def test_a_changing_rate_is_one_kernel_over_a_thousand_steps(cls: Any) -> None:
    params = parameters(SHAPES)
    optimizer = cls(params)
    train(optimizer, 1)
    before = cls.variants.built
    for count in range(1000):
        rate = 1e-3 / (count + 1)
        optimizer.param_groups[0]["lr"] = torch.tensor(rate) if count % 2 else rate
        optimizer.step()
    assert cls.variants.built == before
    assert {int(optimizer.state[param]["step"]) for param in params} == {1001}


def test_betas_are_tensors_as_in_torch() -> None:
    def run(cls: Any, wrapped: Any) -> list[torch.Tensor]:
        betas = (wrapped(0.8), wrapped(0.95))
        return train(cls(parameters(SHAPES), lr=wrapped(0.01), betas=betas), 5)

    for given in (run(AdamW, lambda value: torch.tensor(value, dtype=torch.float64)), run(AdamW, float)):
        torch.testing.assert_close(given, run(torch.optim.AdamW, float))


def test_a_rate_that_is_changed_in_place_is_read_again() -> None:
    rate = torch.tensor(0.5)
    param = torch.zeros(3, requires_grad=True)
    optimizer = SGD([param], lr=rate)
    for value, right in ((0.5, -0.5), (0.25, -0.75)):
        rate.fill_(value)
        param.grad = torch.ones(3)
        optimizer.step()
        assert torch.equal(param.detach(), torch.full((3,), right))


@pytest.mark.parametrize("cls", mostly_at_night([AdamW, opwright.optim.LAMB, SGD, opwright.optim.Lion], 2))
def test_a_step_allocates_no_memory(cls: Any) -> None:
    optimizer = cls(parameters(SHAPES))
    train(optimizer, 3)
    with profile(profile_memory=True) as seen:
        optimizer.step()
    assert not [event.name for event in seen.events() if event.name.startswith("aten::") or event.cpu_memory_usage]


def test_what_allocates_is_noticed() -> None:
    optimizer = torch.optim.AdamW(parameters(SHAPES), foreach=False)
    train(optimizer, 3)
    with profile(profile_memory=True) as seen:
        optimizer.step()
    assert [event.name for event in seen.events() if event.cpu_memory_usage]


def test_devices_are_mixed_in_one_optimizer() -> None:
    """Those without kernels run the definition there, as on "meta", where it computes shapes alone."""
    here, there = parameters(SHAPES[:2])
    right = here.detach().clone().requires_grad_()
    elsewhere = there.detach().to("meta").requires_grad_()
    optimizer, alone = AdamW([here, elsewhere]), AdamW([right])
    for seed in range(3):
        generator = torch.Generator().manual_seed(seed)
        here.grad = torch.randn(here.shape, generator=generator)
        right.grad = here.grad.clone()
        elsewhere.grad = torch.ones(elsewhere.shape, device="meta")
        optimizer.step()
        alone.step()
    assert_same([here], [right])
    assert optimizer.state[elsewhere]["exp_avg"].device.type == "meta"
    assert int(optimizer.state[elsewhere]["step"]) == 3


def stepped(param: torch.Tensor, grad: torch.Tensor, rate: torch.Tensor) -> torch.Tensor:
    (new,), _ = AdamW.functional([param], [grad], lr=rate, step=1)
    return new.square().sum()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch.jit, which torch's forward mode imports
@pytest.mark.parametrize("transform", ["grad", "hessian", "jacfwd", "vmap"])
def test_steps_are_transformed(transform: str) -> None:
    """By `opwright.func`, as by `torch.func`."""
    torch.manual_seed(0)
    param, grad, rate = torch.randn(4, dtype=torch.float64), torch.randn(4, dtype=torch.float64), torch.tensor(0.1)
    rate = rate.double()

    def made(func: Any) -> Any:
        if transform == "vmap":
            return func.vmap(func.grad(stepped, argnums=2), in_dims=(0, 0, None))
        return getattr(func, transform)(stepped, argnums=2 if transform != "hessian" else 0)

    given = (param, grad, rate) if transform != "vmap" else (param.expand(3, 4) * 2, grad.expand(3, 4), rate)
    torch.testing.assert_close(made(opwright.func)(*given), made(torch.func)(*given))


def test_a_compiled_step_and_a_plain_one_are_the_same() -> None:
    def run(compiled: bool) -> list[torch.Tensor]:
        optimizer = AdamW(parameters(SHAPES))
        step = torch.compile(optimizer.step, backend="eager") if compiled else optimizer.step
        params = optimizer.param_groups[0]["params"]
        for seed in range(3):
            generator = torch.Generator().manual_seed(seed)
            for param in params:
                param.grad = torch.randn(param.shape, generator=generator)
            step()
        return params

    assert_same(run(True), run(False))


@pytest.mark.parametrize(
    ("named", "loaded_named"), mostly_at_night([(True, False), (False, True), (True, True), (False, False)], by_day=2)
)
def test_named_parameters_load_states_of_others(named: bool, loaded_named: bool) -> None:
    """To and from torch.optim, whether parameters are named or not."""

    def made(cls: Any, is_named: bool) -> Any:
        params = parameters(SHAPES)
        return cls([(f"p{k}", param) for k, param in enumerate(params)] if is_named else params, lr=0.01)

    theirs, ours = made(torch.optim.AdamW, named), made(AdamW, loaded_named)
    train(theirs, 2)
    with torch.no_grad():
        for mine, other in zip(ours.param_groups[0]["params"], theirs.param_groups[0]["params"], strict=True):
            mine.copy_(other)
    ours.load_state_dict(theirs.state_dict())
    torch.testing.assert_close(train(ours, 2, seed=9), train(theirs, 2, seed=9))


def test_a_user_writes_the_function_and_nothing_else() -> None:
    @opwright.optimizer(state=("velocity",))
    def Heavy(param: Any, grad: Any, velocity: Any, step: Any, *, lr: float = 0.1, drag: float = 0.9) -> Any:
        velocity = drag * velocity + grad
        return param - lr * velocity, velocity

    made, right = Heavy(parameters(SHAPES)), torch.optim.SGD(parameters(SHAPES), lr=0.1, momentum=0.9)
    torch.testing.assert_close(train(made, 4), train(right, 4))
    assert isinstance(made, torch.optim.Optimizer)


def test_signatures_name_hyper_parameters() -> None:
    names = list(inspect.signature(AdamW).parameters)
    assert names[:4] == ["params", "lr", "betas", "eps"]
    assert "max_grad_norm" in names
    assert inspect.signature(AdamW).parameters["betas"].default == (0.9, 0.999)
    assert "hyper" not in names

    class Mine(AdamW):
        def __init__(self, params: Any, speed: float) -> None:
            super().__init__(params, lr=speed)

    assert list(inspect.signature(Mine).parameters) == ["params", "speed"]
    assert list(inspect.signature(type("Same", (AdamW,), {})).parameters) == names
