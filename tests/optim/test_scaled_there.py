"""Steps on a GPU under a GradScaler, or with clipped gradients: the factor and whether a step is called off stay there.

Kernels and launchers run on the processor, where every number arrives at once.
"""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from typing import Any

import pytest
import torch

import opwright.optim
from opwright.optim.clipping import Factor
from opwright.optim.definition import STEP
from opwright.optim.serving.skips import Skip
from tests.optim.test_cuda import SHAPES, Centered, groups, on_host
from tests.optim.trained import assert_same, parameters, train
from tests.suite.nights import mostly_at_night

NOT_EMPTY = tuple(shape for shape in SHAPES if 0 not in shape)


def give_gradients(optimizer: torch.optim.Optimizer, step: int, *, overflow: bool, scale: float = 64.0) -> None:
    """The same for each optimizer, as a backward pass of a scaled loss leaves them."""
    generator = torch.Generator().manual_seed(step)
    for group in optimizer.param_groups:
        for param in group["params"]:
            drawn = torch.randn(param.shape, generator=generator, dtype=torch.float64) * scale
            param.grad = drawn.to(param.dtype)
            if overflow and param.numel():
                param.grad.view(-1)[-1] = float("inf")


def scaled_step(optimizer: Any, step: int, *, overflow: bool = False, scale: float = 64.0) -> None:
    """What a GradScaler does in a step."""
    give_gradients(optimizer, step, overflow=overflow, scale=scale)
    optimizer.grad_scale, optimizer.found_inf = torch.tensor(scale), torch.tensor(float(overflow))
    optimizer.step()
    del optimizer.grad_scale, optimizer.found_inf


def everything(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    """Parameters, gradients, states and steps."""
    params = [param for group in optimizer.param_groups for param in group["params"]]
    states = [value for state in optimizer.state.values() for _, value in sorted(state.items()) if value is not None]
    return [*params, *(param.grad for param in params), *states]


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From a call on, the processor may not ask for a number of the GPU."""

    def refuse(_: Any) -> Any:
        raise AssertionError("it waits")

    def begin() -> None:
        monkeypatch.setattr(Skip, "now", refuse)
        monkeypatch.setattr(Factor, "number", property(refuse))

    return begin


CASES = mostly_at_night([
    (opwright.optim.AdamW, torch.bfloat16, {"rounding": "stochastic", "max_grad_norm": 0.5}),
    (opwright.optim.SGD, torch.float32, {"momentum": 0.9}),
    (opwright.optim.AdamW, torch.float32, {}),
    (opwright.optim.AdamW, torch.float32, {"max_grad_norm": 0.5}),
    (opwright.optim.AdamW, torch.float64, {"max_grad_norm": 0.5}),
    (opwright.optim.AdamW, torch.bfloat16, {"master": True, "max_grad_norm": 0.5}),
    (opwright.optim.AdamW, torch.float16, {"state_dtype": torch.float32}),
    (opwright.optim.Lion, torch.float32, {"maximize": True, "max_grad_norm": 2.0}),
    (opwright.optim.Rprop, torch.float32, {}),
    (opwright.optim.Adagrad, torch.float32, {"max_grad_norm": 0.5}),
], 2)  # fmt: skip


@pytest.mark.parametrize(("cls", "dtype", "options"), CASES)
def test_steps_of_a_grad_scaler_wait_for_nothing(
    cls: Any, dtype: torch.dtype, options: dict[str, Any], no_waiting: Callable[[], None]
) -> None:
    """And are those of the processor bit for bit, also where some are called off."""
    results = []
    for each in (cls, on_host(cls)):
        torch.manual_seed(1)
        optimizer = each(groups(parameters(NOT_EMPTY, dtype)), **options)
        scaled_step(optimizer, 0)  # which builds kernels
        if each is not cls:
            no_waiting()
        for step in range(1, 7):
            scaled_step(optimizer, step, overflow=step in (2, 3, 6))
        results.append(everything(optimizer))
    assert_same(*reversed(results))


def test_clipped_steps_wait_for_nothing(no_waiting: Callable[[], None]) -> None:
    ours, right = (each(groups(parameters(NOT_EMPTY)), max_grad_norm=0.5) for each in _both(opwright.optim.SGD))
    for optimizer in (right, ours):
        train(optimizer, 1)
        if optimizer is ours:
            no_waiting()
        train(optimizer, 3, seed=6)
    assert_same(everything(ours), everything(right))


@pytest.mark.parametrize(("cls", "options"), mostly_at_night([
    (Centered, {"max_grad_norm": 0.5}), (opwright.optim.LAMB, {}), (opwright.optim.NAdam, {}),
    (opwright.optim.ASGD, {}),
], 1))  # fmt: skip
def test_what_reduces_or_keeps_numbers_is_right(cls: Any, options: dict[str, Any]) -> None:
    shapes = ((7, 5), (1, 9), (64, 64))
    results = []
    for each in _both(cls):
        optimizer = each(groups(parameters(shapes)), **options)
        for step in range(5):
            scaled_step(optimizer, step, overflow=step in (1, 3))
        results.append(everything(optimizer))
    torch.testing.assert_close(*results, rtol=1e-5, atol=1e-7)
    assert int(next(iter(optimizer.state.values()))[STEP]) == 3


def _both(cls: Any) -> tuple[Any, Any]:
    return on_host(cls), cls


def called_off() -> tuple[Any, Any]:
    """An optimizer whose last step was called off, and which does not know it yet, and one that never took it."""
    torch.manual_seed(1)
    ours = on_host(opwright.optim.AdamW)(parameters(NOT_EMPTY, torch.bfloat16), rounding="stochastic")
    torch.manual_seed(1)
    right = opwright.optim.AdamW(parameters(NOT_EMPTY, torch.bfloat16), rounding="stochastic")
    for optimizer in (ours, right):
        scaled_step(optimizer, 0)
        scaled_step(optimizer, 1)
    scaled_step(ours, 2, overflow=True)
    assert ours._called_off is not None
    return ours, right


def _saved(optimizer: Any) -> Any:
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    file.seek(0)
    made = type(optimizer)(
        [param.detach().clone().requires_grad_() for param in optimizer.param_groups[0]["params"]],
        rounding="stochastic",
    )
    made.load_state_dict(torch.load(file))
    return made


WAYS: dict[str, Callable[[Any], Any]] = {
    "going on": lambda optimizer: optimizer,
    "state_dict": _saved,
    "deepcopy": copy.deepcopy,
    "its own states again": lambda optimizer: (optimizer.load_state_dict(optimizer.state_dict()), optimizer)[1],
    "another group": lambda optimizer: (optimizer.add_param_group({"params": [torch.ones(3)]}), optimizer)[1],
}


@pytest.mark.parametrize("way", WAYS)
def test_a_step_that_was_called_off_is_not_counted(way: str) -> None:
    ours, right = (WAYS[way](optimizer) for optimizer in called_off())
    for optimizer in (ours, right):
        assert {int(state[STEP]) for state in optimizer.state.values()} == {2}
        scaled_step(optimizer, 3)
    assert_same(everything(ours), everything(right))


@pytest.mark.parametrize("overflow", [False, True])
def test_another_way_through_the_definition_waits(overflow: bool) -> None:
    """A kernel that does not serve the numbers of a step, which was asked not to wait."""
    results = []
    for each in _both(Warming):
        optimizer = each(parameters(NOT_EMPTY))
        scaled_step(optimizer, 0)
        scaled_step(optimizer, 1)
        scaled_step(optimizer, 2, overflow=overflow)  # from the third on, the rate is another
        scaled_step(optimizer, 3)
        scaled_step(optimizer, 4, overflow=True)
        scaled_step(optimizer, 5)
        results.append(everything(optimizer))
    assert_same(*results)


@opwright.optimizer(state=("sum",))
def Warming(param: Any, grad: Any, sum: Any, step: Any, *, lr: float = 0.1) -> Any:
    """Begins slowly."""
    rate = lr * 0.5 if step < 3 else lr
    sum = sum + grad * grad
    return param - rate * grad / (sum.sqrt() + 1e-6), sum


def test_an_optimizer_of_the_processor_knows_at_once() -> None:
    optimizer = opwright.optim.AdamW(parameters(NOT_EMPTY))
    for step in range(3):
        scaled_step(optimizer, step, overflow=step == 1)
        assert optimizer._called_off is None
    assert {int(state[STEP]) for state in optimizer.state.values()} == {2}
