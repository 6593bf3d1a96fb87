"""Steps on a GPU: one launch for all parameters. Kernels and launchers run on the processor, and NVRTC takes them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

import opwright.optim
from opwright.errors import CaptureRefused, CudaCompilerMissing, NotElementwise
from opwright.optim.base import DerivedOptimizer
from opwright.optim.classes import optimizer_class
from opwright.optim.definition import STEP
from opwright.optim.kinds import split_numbers
from opwright.optim.serving.deriving import derive
from opwright.optim.serving.entries import Manner
from opwright.optim.serving.kernels import Wanted
from opwright.optim.serving.variants import Variants
from opwright.settings import Settings
from opwright.toolchain.gpu.nvrtc import compile_cuda, find_nvrtc
from opwright.toolchain.recipe import INCLUDE_DIRECTORY
from tests.optim.trained import assert_one_launch_for_each_step, assert_same, parameters, train
from tests.quick_compiler import OPTIMIZING_NOTHING, quick_compiler
from tests.suite.nights import mostly_at_night

SHAPES = ((7, 5), (0, 3), (5,), (2, 3, 4), (1, 9), (5000,))
NAMES = (
    "AdamW", "NAdam", "Lion", "SGD", "Adam", "Adamax", "RAdam", "Adagrad", "Adadelta", "RMSprop", "Rprop", "Adan",
    "ASGD", "ScheduleFreeAdamW",
)  # fmt: skip
MATRICES = ((7, 5), (0, 3), (4, 4), (1, 9), (50, 100))  # of one rank, for which one kernel is derived
BY_DAY = [("AdamW", SHAPES), ("ASGD", MATRICES)]
AT_NIGHT = [(name, SHAPES) for name in NAMES[1:]]
HYPER = {"SGD": {"momentum": 0.9, "nesterov": True}, "RMSprop": {"centered": True, "momentum": 0.5}}


def on_host(cls: type[DerivedOptimizer]) -> type[DerivedOptimizer]:
    """An optimizer whose CUDA kernels run on the processor."""
    compiler = quick_compiler(f"{OPTIMIZING_NOTHING} -fexceptions")
    settings = replace(Settings.from_environment(), cuda_on_host=True, compiler=compiler, notify=False)
    return optimizer_class(cls, cls.definition, Variants(cls.definition, settings))


def groups(params: list[torch.Tensor]) -> list[dict[str, Any]]:
    return [{"params": params[:2], "lr": 0.1}, {"params": params[2:4], "lr": 0.02}, {"params": params[4:]}]


@pytest.mark.parametrize(("name", "shapes"), mostly_at_night([*BY_DAY, *AT_NIGHT], by_day=2))
def test_steps_are_those_of_the_processor(name: str, shapes: Any, no_definition: None) -> None:
    cls, hyper = getattr(opwright.optim, name), HYPER.get(name, {})
    ours, right = (train(each(groups(parameters(shapes)), **hyper), 6) for each in (on_host(cls), cls))
    assert_same(ours, right)


@pytest.mark.parametrize(("name", "hyper"), mostly_at_night([
    ("AdamW", {}), ("SGD", {}), ("SGD", {"momentum": 0.9}), ("Lion", {}), ("LAMB", {"weight_decay": 0.1}),
], 1))  # fmt: skip
def test_parameters_of_one_element_have_kernels(name: str, hyper: dict[str, Any], no_definition: None) -> None:
    """Such as the bias of a layer with one output."""
    cls = getattr(opwright.optim, name)
    ours, right = (train(each(parameters(((1,), (1, 1), (4, 1))), **hyper), 3) for each in (on_host(cls), cls))
    assert_same(ours, right)


@pytest.mark.parametrize("options", mostly_at_night([
    {"rounding": "stochastic", "max_grad_norm": 0.5}, {"rounding": "stochastic"}, {"master": True},
    {"state_dtype": torch.float32},
], 0))  # fmt: skip
def test_options_are_those_of_the_processor(options: dict[str, Any], no_definition: None) -> None:
    results = []
    for cls in (on_host(opwright.optim.AdamW), opwright.optim.AdamW):
        torch.manual_seed(1)
        optimizer = cls(groups(parameters(SHAPES, torch.bfloat16)), **options)
        results.append(
            [*train(optimizer, 4), *(value for state in optimizer.state.values() for value in state.values())]
        )
    assert_same(*results)


def test_other_numbers_are_noticed() -> None:
    ours = train(on_host(opwright.optim.AdamW)(groups(parameters(SHAPES)), lr=0.01), 1)
    with pytest.raises(AssertionError):
        assert_same(ours, train(opwright.optim.AdamW(groups(parameters(SHAPES)), lr=0.011), 1))


def test_all_groups_are_one_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = [(5, 4)] * 6
    optimizer = on_host(opwright.optim.AdamW)(groups(parameters(shapes)))
    assert_one_launch_for_each_step(optimizer, monkeypatch)


@pytest.mark.nightly
def test_what_reduces_along_dimensions_has_kernels(no_definition: None) -> None:
    cls = opwright.optim.Adafactor
    ours, right = (train(each(parameters(((7, 5), (5,)))), 3) for each in (on_host(cls), cls))
    torch.testing.assert_close(ours, right)


@opwright.optimizer(state=("spread",))
def Centered(param: Any, grad: Any, spread: Any, step: Any, *, lr: float = 0.1) -> Any:
    """Three passes over a tensor: each needs what the one before reduces."""
    centered = grad - grad.mean()
    length = centered.square().sum().sqrt()
    spread = 0.5 * spread + centered.abs() / (1 + length)
    return param - lr * centered / spread.amax(), spread


REDUCED = (*(shape for shape in SHAPES if 0 not in shape), (130, 101), (4096,))
REDUCING = [
    (opwright.optim.LAMB, torch.bfloat16, ((7, 5), (1, 9), (64, 64), (130, 101), (50, 100))),
    (Centered, torch.float32, REDUCED),
    (Centered, torch.bfloat16, REDUCED),
    (opwright.optim.LAMB, torch.float32, REDUCED),
    (opwright.optim.LAMB, torch.bfloat16, REDUCED),
]


@pytest.mark.parametrize(("cls", "dtype", "shapes"), mostly_at_night(REDUCING, by_day=2))
def test_reductions_are_those_of_the_processor(
    cls: type[DerivedOptimizer], dtype: torch.dtype, shapes: Any, no_definition: None
) -> None:
    """In double precision, so that another order of the same summands seldom changes a bit of the sum."""
    hyper = {"weight_decay": 0.1} if cls is opwright.optim.LAMB else {}
    ours, right = (train(each(groups(parameters(shapes, dtype)), **hyper), 4) for each in (on_host(cls), cls))
    torch.testing.assert_close(ours, right, rtol=1e-6 if dtype is torch.float32 else 2**-8, atol=0)


class OnAGpu(torch.Tensor):
    """Says that it is on a GPU."""

    is_cuda = True


@pytest.mark.parametrize("steps", [0, 2])
def test_a_step_in_the_capture_of_a_graph_is_refused(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it is the first one or not, and before anything has changed."""
    capturing = []
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: bool(capturing))
    param = torch.ones(5).as_subclass(OnAGpu).requires_grad_()
    optimizer = opwright.optim.AdamW([param])
    train(optimizer, steps)
    before = param.detach().clone()
    capturing.append(1)
    param.grad = torch.ones(5).as_subclass(OnAGpu)
    with pytest.raises(CaptureRefused, match=r"AdamW.step\(\) cannot be captured in a CUDA graph") as refusal:
        optimizer.step()
    assert isinstance(refusal.value, RuntimeError)  # as that of torch.optim
    assert torch.equal(param, before)
    assert [int(state[STEP]) for state in optimizer.state.values()] == ([steps] if steps else [])


def test_a_step_on_the_processor_may_run_while_a_graph_is_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", None)  # which is not called
    train(opwright.optim.SGD(parameters([(5,)])), 2)


def test_a_number_in_the_memory_of_a_gpu_is_refused() -> None:
    (param,) = parameters([(5, 4)])
    param.grad = torch.ones_like(param)
    optimizer = opwright.optim.ASGD([param])
    (entry,) = optimizer._new_plan([param], [0], Manner(scaled=False, written=False, at_random=False)).entries
    distant = tuple(state and replace(state, is_distant=state.is_number) for state in entry.kind.states)
    hyper = {name: optimizer.defaults[name] for name in optimizer.definition.hyper}
    numbers = {**split_numbers(optimizer.definition, hyper)[0], STEP: 1.0}
    wanted = Wanted(replace(entry.kind, states=distant), hyper, entry.tensors, numbers)
    with pytest.raises(NotElementwise, match="the state 'eta' is a number in the memory of the GPU"):
        derive(optimizer.definition, optimizer.variants.state(), wanted, for_gpus=True)


@pytest.mark.parametrize(("name", "dtype", "options"), mostly_at_night([
    ("LAMB", torch.float32, {}), ("AdamW", torch.float32, {}), ("LAMB", torch.bfloat16, {}),
    ("AdamW", torch.bfloat16, {"rounding": "stochastic"}),
    ("AdamW", torch.float16, {"rounding": "stochastic", "max_grad_norm": 1.0}),
    *((name, dtype, {}) for name in NAMES[1:] for dtype in (torch.float32, torch.bfloat16)),
    ("Adafactor", torch.float32, {}), ("Adafactor", torch.bfloat16, {}),
], by_day=1))  # fmt: skip
def test_nvrtc_takes_the_kernels(name: str, dtype: torch.dtype, options: dict[str, Any]) -> None:
    try:
        find_nvrtc()
    except CudaCompilerMissing as missing:
        pytest.skip(missing.fact)
    cls = on_host(getattr(opwright.optim, name))
    train(cls(parameters(SHAPES[:1], dtype), **HYPER.get(name, {}), **options), 1)
    devices = {variant.device for _, of_kind in cls.variants.all() for variant in of_kind}
    assert devices
    for device in devices:
        kernel = b"_update" if "_update(" in device else b"_new_param"
        assert kernel in compile_cuda(device, "sm_90", INCLUDE_DIRECTORY)
