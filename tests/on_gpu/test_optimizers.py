"""Optimizers on a GPU: the steps of the processor, by kernels, without waiting for the GPU."""

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import torch

import opwright.optim
from opwright.optim.definition import STEP
from opwright.optim.serving import buckets, plan
from tests.on_gpu.device import DEVICE
from tests.optim.trained import assert_one_launch_for_each_step, parameters, train

SHAPES = ((7, 5), (0, 3), (5,), (2, 3, 4), (1, 9), (5000,), (130, 101))
MATRICES = ((7, 5), (0, 3), (4, 4), (1, 9), (50, 100), (130, 101))  # of one rank, for which one kernel is derived
BY_KERNELS = (
    "AdamW", "NAdam", "Lion", "SGD", "Adam", "Adamax", "RAdam", "Adagrad", "Adadelta", "RMSprop", "Rprop", "Adan",
    "ASGD", "ScheduleFreeAdamW", "LAMB",
)  # fmt: skip
BY_THE_DEFINITION = ("Adafactor", "Muon")
HYPER: dict[str, dict[str, Any]] = {
    "SGD": {"momentum": 0.9, "nesterov": True},
    "RMSprop": {"centered": True, "momentum": 0.5},
    "LAMB": {"weight_decay": 0.1},
}
LIKE_TORCH = [
    ("AdamW", {}), ("AdamW", {"amsgrad": True}), ("Adam", {"weight_decay": 0.1}), ("SGD", {}),
    ("SGD", {"momentum": 0.9, "nesterov": True}),
]  # fmt: skip
TOLERANCE = {torch.float32: {"rtol": 1e-5, "atol": 1e-6}, torch.bfloat16: {"rtol": 2**-6, "atol": 2**-8}}
ON_A_GPU = pytest.mark.skipif(DEVICE == "cpu", reason="there is no waiting for the processor")
pytestmark = pytest.mark.seconds(60)  # each builds kernels


def groups(shapes: Sequence[tuple[int, ...]], dtype: torch.dtype, device: str) -> list[dict[str, Any]]:
    """Three groups with rates of their own, or as many as there are parameters."""
    params = [param.detach().to(device).requires_grad_() for param in parameters(shapes, dtype)]
    parts = [{"params": params[:2], "lr": 0.1}, {"params": params[2:4], "lr": 0.02}, {"params": params[4:]}]
    return [part for part in parts if part["params"]]


def params_of(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    return [param for group in optimizer.param_groups for param in group["params"]]


def give_gradients(params: Sequence[torch.Tensor], seed: int) -> None:
    """The same gradients on each device."""
    generator = torch.Generator().manual_seed(seed)
    for param in params:
        param.grad = torch.randn(param.shape, generator=generator, dtype=torch.float64).to(param.device, param.dtype)


def found(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    """Parameters and states, on the processor."""
    states = [value for state in optimizer.state.values() for _, value in sorted(state.items()) if value is not None]
    return [value.detach().cpu() for value in (*params_of(optimizer), *states)]


def assert_near(ours: Sequence[torch.Tensor], right: Sequence[torch.Tensor], dtype: torch.dtype) -> None:
    """Up to the last bits of functions of a GPU."""
    assert len(ours) == len(right)
    for mine, other in zip(ours, right, strict=True):
        torch.testing.assert_close(mine.detach().cpu(), other.detach().cpu(), equal_nan=True, **TOLERANCE[dtype])


@pytest.fixture
def only_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors that are empty or have no dimensions, which no kernel of a GPU is for, are left to the definition."""
    composed = buckets.run_composed

    def refuse(definition: Any, hyper: Any, entry: Any, *rest: Any) -> None:
        assert 0 in entry.param.shape or not entry.param.dim(), f"the definition serves {tuple(entry.param.shape)}"
        composed(definition, hyper, entry, *rest)

    for module in (buckets, plan):
        monkeypatch.setattr(module, "run_composed", refuse)


@contextmanager
def not_waiting() -> Iterator[None]:
    """PyTorch raises if an operation waits for the GPU."""
    if DEVICE == "cpu":
        yield
        return
    torch.cuda.synchronize()
    try:
        with warnings.catch_warnings(action="ignore"):  # that this is a prototype
            torch.cuda.set_sync_debug_mode("error")
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", BY_KERNELS)
def test_steps_are_those_of_the_processor(name: str, dtype: torch.dtype, only_kernels: None) -> None:
    cls, hyper = getattr(opwright.optim, name), HYPER.get(name, {})
    shapes = MATRICES if name in ("ASGD", "LAMB") else SHAPES
    ours = cls(groups(shapes, dtype, DEVICE), **hyper)
    right = cls(groups(shapes, dtype, "cpu"), **hyper)
    for optimizer in (ours, right):
        train(optimizer, 5)
    assert_near(found(ours), found(right), dtype)


@pytest.mark.falls_back
@pytest.mark.parametrize("name", BY_THE_DEFINITION)
def test_what_reduces_along_dimensions_runs_its_definition(name: str) -> None:
    cls, shapes = getattr(opwright.optim, name), ((7, 5), (6, 8))
    ours, right = (cls(groups(shapes, torch.float32, device)) for device in (DEVICE, "cpu"))
    for optimizer in (ours, right):
        train(optimizer, 3)
    # An iteration in half precision, as Muon has, sums in another order there.
    rtol, atol = (2e-2, 2e-2) if name == "Muon" else (1e-4, 1e-5)
    torch.testing.assert_close(found(ours), found(right), rtol=rtol, atol=atol)


@pytest.mark.falls_back
def test_parameters_without_dimensions_run_the_definition_beside_kernels(only_kernels: None) -> None:
    shapes = ((), (4, 3), (), (9,))
    ours, right = (opwright.optim.AdamW(groups(shapes, torch.float32, device)) for device in (DEVICE, "cpu"))
    for optimizer in (ours, right):
        train(optimizer, 4)
    assert_near(found(ours), found(right), torch.float32)


@pytest.mark.parametrize(("name", "hyper"), LIKE_TORCH)
def test_steps_are_those_of_torch_on_the_same_device(name: str, hyper: dict[str, Any], only_kernels: None) -> None:
    results = [
        train(getattr(module, name)(groups(MATRICES, torch.float32, DEVICE), **{"lr": 0.01, **hyper}), 8)
        for module in (opwright.optim, torch.optim)
    ]
    assert_near(*results, torch.float32)


def test_all_groups_are_one_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    optimizer = opwright.optim.AdamW(groups([(5, 4)] * 6, torch.float32, DEVICE))
    assert_one_launch_for_each_step(optimizer, monkeypatch)


@ON_A_GPU
@pytest.mark.parametrize("name", ["AdamW", "SGD", "LAMB", "NAdam"])
def test_a_step_does_not_wait_for_the_gpu(name: str) -> None:
    optimizer = getattr(opwright.optim, name)(groups(MATRICES[2:], torch.float32, DEVICE), **HYPER.get(name, {}))
    train(optimizer, 2)  # which builds and loads kernels
    give_gradients(params_of(optimizer), 9)
    with not_waiting():
        for _ in range(20):
            optimizer.step()
    torch.cuda.synchronize()


@ON_A_GPU
@pytest.mark.parametrize("name", ["AdamW", "SGD", "LAMB"])
def test_clipped_and_scaled_steps_do_not_wait_for_the_gpu(name: str) -> None:
    """Those that a GradScaler calls off are known in the next step, when the GPU has long come to them."""
    ours, right = (
        getattr(opwright.optim, name)(groups(MATRICES[2:], torch.float32, device), max_grad_norm=0.5)
        for device in (DEVICE, "cpu")
    )
    numbers = {device: [torch.tensor(value, device=device) for value in (64.0, 0.0, 1.0)] for device in (DEVICE, "cpu")}
    for optimizer, device in ((ours, DEVICE), (right, "cpu")):
        scale, fine, overflowed = numbers[device]
        give_gradients(params_of(optimizer), 9)
        optimizer.grad_scale, optimizer.found_inf = scale, fine
        optimizer.step()  # which builds and loads kernels
        torch.cuda.synchronize()
        for step in range(20):
            optimizer.grad_scale, optimizer.found_inf = scale, overflowed if step % 3 else fine
            if optimizer is ours:
                with not_waiting():
                    optimizer.step()
            else:
                optimizer.step()
    assert_near(found(ours), found(right), torch.float32)
    assert {int(state[STEP]) for state in ours.state.values()} == {8}


@ON_A_GPU
def test_tables_of_many_steps_in_flight_do_not_overwrite_each_other() -> None:
    """The GPU is kept busy while steps with other numbers are asked for, so that their tables wait side by side."""
    ours, right = (opwright.optim.AdamW(groups(MATRICES[2:], torch.float32, device)) for device in (DEVICE, "cpu"))
    for optimizer in (ours, right):
        train(optimizer, 1)
        give_gradients(params_of(optimizer), 9)
    torch.cuda._sleep(1_000_000_000)
    for step in range(100):
        for optimizer in (ours, right):
            for group in optimizer.param_groups:
                group["lr"] = 1e-3 / (1 + step % 7)
            optimizer.step()
    assert_near(found(ours), found(right), torch.float32)


@ON_A_GPU
def test_a_step_runs_on_the_current_stream() -> None:
    ours, right = (opwright.optim.AdamW(groups(MATRICES[2:], torch.float32, device)) for device in (DEVICE, "cpu"))
    side = torch.cuda.Stream()
    for optimizer in (ours, right):
        train(optimizer, 1)
        give_gradients(params_of(optimizer), 9)
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(200_000_000)
        for param in params_of(ours):
            param.grad.mul_(2)  # the step reads this if it comes after it
        ours.step()
    for param in params_of(right):
        param.grad.mul_(2)
    right.step()
    torch.cuda.current_stream().wait_stream(side)
    assert_near(found(ours), found(right), torch.float32)


def scaled_steps(device: str, options: dict[str, Any]) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Parameters after steps under a GradScaler, of which one overflows; and the gradients of the last."""
    optimizer = opwright.optim.AdamW(groups(MATRICES, torch.float32, device), **options)
    scaler = torch.amp.GradScaler(device, init_scale=64.0)
    for count in range(4):
        give_gradients(params_of(optimizer), count)
        for param in params_of(optimizer):
            param.grad.mul_(scaler.get_scale())
            if count == 1 and param.numel():
                param.grad.view(-1)[0] = float("inf")
        scaler.scale(torch.ones((), device=device))
        scaler.step(optimizer)
        scaler.update()
    return found(optimizer), [param.grad for param in params_of(optimizer)]


@pytest.mark.parametrize("options", [{}, {"max_grad_norm": 0.5}], ids=str)
def test_a_grad_scaler_is_that_of_the_processor(options: dict[str, Any], only_kernels: None) -> None:
    ours, right = (scaled_steps(device, options) for device in (DEVICE, "cpu"))
    for mine, other in zip(ours, right, strict=True):
        assert_near(mine, other, torch.float32)


@pytest.mark.parametrize("options", [
    {"max_grad_norm": 0.5}, {"maximize": True}, {"free_grads": True}, {"lr": torch.tensor(0.02)},
], ids=lambda options: next(iter(options)))  # fmt: skip
def test_options_are_those_of_the_processor(options: dict[str, Any], only_kernels: None) -> None:
    results = []
    for device in (DEVICE, "cpu"):
        optimizer = opwright.optim.AdamW(
            [param for group in groups(MATRICES, torch.float32, device) for param in group["params"]],
            **copy.deepcopy(options),
        )
        train(optimizer, 4)
        results.append(found(optimizer))
    assert_near(*results, torch.float32)


@pytest.mark.parametrize("options", [
    {"rounding": "stochastic", "max_grad_norm": 0.5}, {"rounding": "stochastic"}, {"master": True},
    {"state_dtype": torch.float32},
], ids=str)  # fmt: skip
def test_options_of_half_types_are_those_of_the_processor(options: dict[str, Any], only_kernels: None) -> None:
    """The random bits are the same; a number in the last bit of a float moves few of the roundings."""
    results = []
    for device in (DEVICE, "cpu"):
        torch.manual_seed(1)
        optimizer = opwright.optim.AdamW(groups(MATRICES, torch.bfloat16, device), **options)
        train(optimizer, 4)
        results.append(found(optimizer))
    assert_near(*results, torch.bfloat16)
    same = sum(int((mine == other).sum()) for mine, other in zip(*results, strict=True))
    assert same > 0.97 * sum(value.numel() for value in results[1])


def test_the_mean_of_random_rounding_is_exact() -> None:
    param = torch.ones(1 << 16, dtype=torch.bfloat16, device=DEVICE, requires_grad=True)
    optimizer = opwright.optim.SGD([param], lr=2.0**-10, rounding="stochastic")
    param.grad = torch.ones_like(param)
    optimizer.step()
    assert set(param.detach().cpu().unique().tolist()) == {1.0, 1.0 - 2.0**-8}
    mean = float(param.detach().double().mean())
    assert abs(mean - (1 - 2.0**-10)) < 5 * 2.0**-9 / 256


def test_a_scheduler_builds_nothing(only_kernels: None) -> None:
    results = []
    for device in (DEVICE, "cpu"):
        optimizer = opwright.optim.AdamW(groups(MATRICES, torch.float32, device))
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
        built = 0
        for step in range(8):
            train(optimizer, 1, seed=step)
            scheduler.step()
            built = built or optimizer.variants.built
        assert optimizer.variants.built == built
        results.append(found(optimizer))
    assert_near(*results, torch.float32)


def test_a_rate_on_the_device_is_read(only_kernels: None) -> None:
    shapes = MATRICES[2:]
    results = []
    for rate in (torch.tensor(0.03, device=DEVICE), 0.03):
        params = [param.detach().to(DEVICE).requires_grad_() for param in parameters(shapes)]
        results.append(train(opwright.optim.AdamW(params, lr=rate), 3))
    assert_near(*results, torch.float32)


def test_training_goes_on_bit_for_bit_from_a_state_dict() -> None:
    whole = train(opwright.optim.AdamW(groups(MATRICES, torch.float32, DEVICE)), 3)
    optimizer = opwright.optim.AdamW(groups(MATRICES, torch.float32, DEVICE))
    train(optimizer, 3)
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    file.seek(0)
    other = opwright.optim.AdamW(groups(MATRICES, torch.float32, DEVICE))
    with torch.no_grad():
        for mine, theirs in zip(params_of(other), whole, strict=True):
            mine.copy_(theirs)
    other.load_state_dict(torch.load(file))
    train(optimizer, 3, seed=6)
    train(other, 3, seed=6)
    for mine, theirs in zip(found(other), found(optimizer), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=0)
    for param, state in other.state.items():
        assert state[STEP].device.type == "cpu"
        assert state["exp_avg"].device == param.device


def test_channels_last_and_permuted_gradients(only_kernels: None) -> None:
    results = []
    for device in (DEVICE, "cpu"):
        (image, matrix) = (param.detach().to(device) for param in parameters(((2, 3, 4, 5), (6, 7))))
        params = [image.to(memory_format=torch.channels_last).requires_grad_(), matrix.requires_grad_()]
        optimizer = opwright.optim.AdamW(params)
        for step in range(3):
            give_gradients(params, step)
            params[1].grad = params[1].grad.t().contiguous().t()
            optimizer.step()
        results.append(found(optimizer))
    assert_near(*results, torch.float32)


def test_kernels_see_gradients_of_a_backward_pass(only_kernels: None) -> None:
    """What the passes write just before is what the step reads, whatever stream either runs on."""
    results = []
    for device in (DEVICE, "cpu"):
        torch.manual_seed(2)
        model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 4)).double().float()
        model, inputs = model.to(device), torch.randn(64, 16).to(device)
        optimizer = opwright.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        for _ in range(20):
            optimizer.zero_grad()
            model(inputs).square().mean().backward()
            optimizer.step()
        results.append(found(optimizer))
    for mine, other in zip(*results, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-3, atol=1e-4)


def test_a_parameter_of_one_element(only_kernels: None) -> None:
    """Such as the bias of a layer with one output."""
    ours, right = (opwright.optim.AdamW(groups(((1,), (1, 1), (4, 1)), torch.float32, d)) for d in (DEVICE, "cpu"))
    for optimizer in (ours, right):
        train(optimizer, 3)
    assert_near(found(ours), found(right), torch.float32)


def test_many_tensors() -> None:
    """More than a block's share, and more tensors than threads of a block."""
    shapes = [(2 + 7 * k % 300,) for k in range(700)] + [(100_003,)]
    ours, right = (opwright.optim.AdamW(groups(shapes, torch.float32, device)) for device in (DEVICE, "cpu"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for optimizer in (ours, right):
            train(optimizer, 2)
    assert_near(found(ours), found(right), torch.float32)
