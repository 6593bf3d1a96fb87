"""Steps on a GPU under a GradScaler, or with clipped gradients: the factor and whether a step is called off stay there.

Kernels and launchers run on the processor, where every number arrives at once.
"""

from __future__ import annotations

import copy
import io
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

import opwright.optim
from opwright.optim.definition import STEP
from opwright.optim.factor import Factor
from opwright.optim.serving.skips import Skip
from opwright.optim.serving.tables import TensorTable
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
], 1)  # fmt: skip


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
    (Centered, {"max_grad_norm": 0.5}), (opwright.optim.Adafactor, {"max_grad_norm": 0.5}), (opwright.optim.LAMB, {}),
    (opwright.optim.NAdam, {}), (opwright.optim.ASGD, {}), (opwright.optim.Adafactor, {}),
], 0))  # fmt: skip
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
    assert ours._undecided is not None
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


@pytest.mark.parametrize("way", mostly_at_night(WAYS, 2))
def test_a_step_that_was_called_off_is_not_counted(way: str) -> None:
    ours, right = (WAYS[way](optimizer) for optimizer in called_off())
    for optimizer in (ours, right):
        assert {int(state[STEP]) for state in optimizer.state.values()} == {2}
        scaled_step(optimizer, 3)
    assert_same(everything(ours), everything(right))


def test_numbers_of_steps_that_were_written_meanwhile_stay() -> None:
    """As by a reset of all moments, through dictionaries that were kept aside."""
    ours, _ = called_off()
    held = list(ours.__dict__["state"].values())
    held[0].clear()
    held[1][STEP].zero_()
    assert [int(state.get(STEP, -1)) for state in ours.state.values()] == [-1, 0, *[2] * (len(held) - 2)]


def test_states_of_before_are_loaded_as_they_are() -> None:
    torch.manual_seed(1)
    optimizer = on_host(opwright.optim.AdamW)(parameters(NOT_EMPTY, torch.bfloat16), rounding="stochastic")
    before = optimizer.state_dict()
    for step in range(3):
        scaled_step(optimizer, step, overflow=step == 2)
    optimizer.load_state_dict(before)
    assert not optimizer.state
    assert optimizer._drawn == 0


def test_an_error_in_a_step_that_is_called_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was counted before it is taken back."""
    optimizer = on_host(opwright.optim.AdamW)(parameters(((3, 4), (5,))))
    for step in range(2):
        scaled_step(optimizer, step)
    copied, tables = TensorTable._on_device, []

    def full(table: TensorTable) -> torch.Tensor:
        tables.append(table)
        if len(tables) == 2:
            raise torch.OutOfMemoryError("there is no memory left")
        return copied(table)

    monkeypatch.setattr(TensorTable, "_on_device", full)
    with pytest.raises(torch.OutOfMemoryError):
        scaled_step(optimizer, 2, overflow=True)
    assert [int(state[STEP]) for state in optimizer.state.values()] == [2, 2]


@pytest.mark.parametrize("of_host", [False, True])
def test_a_first_step_that_is_called_off_makes_no_states(of_host: bool) -> None:
    """A rate that begins later, and weights that are loaded then, decide what the states begin with."""
    rprop, sgd = (on_host(cls) if of_host else cls for cls in (opwright.optim.Rprop, opwright.optim.SGD))
    (param,), (half,) = parameters(((4, 3),)), parameters(((4, 3),), torch.bfloat16)
    before = param.detach().clone()
    growing, with_master = rprop([param], lr=1e-6), sgd([half], lr=0.0, master=True)
    for optimizer in (growing, with_master):
        scaled_step(optimizer, 0, overflow=True)
        assert not optimizer.state
    growing.param_groups[0]["lr"] = 1e-2
    half.detach().fill_(5.0)
    for optimizer in (growing, with_master):
        scaled_step(optimizer, 1)
    torch.testing.assert_close((param.detach() - before).abs(), torch.full((4, 3), 1e-2), rtol=1e-4, atol=1e-6)
    assert torch.equal(half.detach(), torch.full((4, 3), 5.0, dtype=torch.bfloat16))


def test_empty_parameters_need_no_waiting(no_waiting: Callable[[], None]) -> None:
    optimizer = on_host(opwright.optim.AdamW)(parameters(((3, 4), (0, 3))))
    scaled_step(optimizer, 0)
    no_waiting()
    for step in range(1, 4):
        scaled_step(optimizer, step, overflow=step == 2)
    assert [int(state[STEP]) for state in optimizer.state.values()] == [3, 3]


@pytest.mark.parametrize("of_host", [False, True])
def test_gradients_are_freed_whether_a_step_is_called_off_or_not(of_host: bool) -> None:
    cls = on_host(opwright.optim.SGD) if of_host else opwright.optim.SGD
    optimizer = cls(parameters(((3, 4),)), free_grads=True)
    for step in range(3):
        scaled_step(optimizer, step, overflow=step != 1)
        assert optimizer.param_groups[0]["params"][0].grad is None


SEEDS = range(30)


@pytest.mark.parametrize("seed", mostly_at_night(SEEDS, 1))
def test_random_training_is_that_of_the_processor(seed: int) -> None:
    """Overflows, clipping by the user, gradients that are missing, groups that come, states that are saved."""
    results = []
    for on_gpu in (False, True):
        draw = random.Random(seed)
        dtype = draw.choice([torch.float32, torch.bfloat16])
        more = [{"max_grad_norm": 0.5}, {"maximize": True}, {"free_grads": False}]
        halves = [{"rounding": "stochastic"}, {"master": True}, {"state_dtype": torch.float32}]
        options = {**draw.choice(more), **(draw.choice(halves) if dtype is torch.bfloat16 else {})}
        adam, sgd = (on_host(cls) if on_gpu else cls for cls in (opwright.optim.AdamW, opwright.optim.SGD))
        torch.manual_seed(seed)
        first = adam(parameters(NOT_EMPTY[:3], dtype), **options)
        second = sgd(parameters(NOT_EMPTY[3:], dtype), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=64.0, growth_interval=3)
        for step in range(12):
            scale, overflow = scaler.get_scale(), draw.random() < 0.3
            scaler.scale(torch.ones(()))
            for optimizer in (first, second):
                give_gradients(optimizer, step, overflow=overflow and optimizer is first, scale=scale)
            if step > 2 and draw.random() < 0.3:
                second.param_groups[0]["params"][0].grad = None
            if draw.random() < 0.3:
                scaler.unscale_(first)
                torch.nn.utils.clip_grad_norm_(first.param_groups[0]["params"], 1.0)
            scaler.step(first)
            scaler.step(second)
            scaler.update()
            match draw.randrange(8):
                case 0:
                    first.load_state_dict(copy.deepcopy(first.state_dict()))
                case 1:
                    first.load_state_dict(first.state_dict())
                case 2 if len(second.param_groups) < 2:
                    second.add_param_group({"params": parameters(((4, 3),), dtype), "lr": 0.2})
                case 3:
                    first = copy.deepcopy(first)
        held = [first, second]
        params = [param for each in held for group in each.param_groups for param in group["params"]]
        states = [v for each in held for s in each.state.values() for _, v in sorted(s.items()) if v is not None]
        results.append([*params, *states])
    assert_same(*results)


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
        assert optimizer._undecided is None
    assert {int(state[STEP]) for state in optimizer.state.values()} == {2}
