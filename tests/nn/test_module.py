"""Served modules against plain ones: values, gradients, state and the rung that serves."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

import opwright
from opwright.errors import ModuleUnsupported
from tests.nn.against_plain import compare
from tests.suite.nights import mostly_at_night


def _perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Dropout(0.3), nn.Linear(16, 4))


def _block() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())


def _images() -> torch.Tensor:
    return torch.randn(2, 3, 7, 6, requires_grad=True)


def _rows(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, requires_grad=True)


class Tied(nn.Module):
    """One weight under two names."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)
        self.second.weight = self.first.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.tanh(self.first(x)))


class Nested(nn.Module):
    """Containers, None and keywords in; a dict and a tuple out."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.randn(8))

    def forward(self, parts, *, mask=None, options=None):
        total = (parts[0] + parts[1]["x"]) * self.scale
        total = total if mask is None else total * mask
        return {"total": total, "pair": (total.sin(), options["power"] if options else 1)}


KERNELS = {
    "linear": (lambda: nn.Linear(8, 5), lambda: [_rows(6, 8)]),
    "perceptron": (_perceptron, lambda: [_rows(6, 8)]),
    "layer norm": (lambda: nn.LayerNorm(8), lambda: [_rows(6, 8)]),
    "conv, batch norm, relu": (_block, lambda: [_images()]),
    "batch norm": (lambda: nn.BatchNorm1d(8, affine=False, momentum=0.4), lambda: [_rows(6, 8)]),
    "batch norm, untracked": (lambda: nn.BatchNorm1d(3, track_running_stats=False), lambda: [_rows(6, 3, 5)]),
    "gru cell": (lambda: nn.GRUCell(8, 5), lambda: [_rows(6, 8), _rows(6, 5)]),
    "attention": (lambda: nn.MultiheadAttention(8, 2), lambda: [_rows(3, 2, 8) for _ in range(3)]),
    "tied": (Tied, lambda: [_rows(6, 8)]),
    "weight norm": (lambda: parametrizations.weight_norm(nn.Linear(8, 5)), lambda: [_rows(6, 8)]),
    "without parameters": (lambda: nn.Softplus(), lambda: [_rows(6, 8)]),
    "attributes before the module's own": (nn.PReLU, lambda: [_rows(6, 8)]),
    "frozen": (lambda: nn.Sequential(nn.Linear(8, 5), nn.Tanh()).requires_grad_(False), lambda: [_rows(6, 8)]),
}


MODES = [*((name, "train") for name in KERNELS), *((name, "eval") for name in KERNELS)]
LIKE_OTHERS = [
    (name, "train") for name in ("linear", "layer norm", "gru cell", "frozen", "batch norm, untracked", "weight norm")
]
OTHERWISE_IN_EVAL = [(name, "eval") for name in ("perceptron", "batch norm")]
BY_DAY = {*MODES[: len(KERNELS)], *OTHERWISE_IN_EVAL} - {*LIKE_OTHERS}


@pytest.mark.parametrize(("name", "mode"), mostly_at_night(MODES, BY_DAY))
def test_kernels_serve(name: str, mode: str) -> None:
    torch.manual_seed(0)
    make, arguments = KERNELS[name]
    assert compare(make().train(mode == "train"), arguments(), steps=3).last_rung == "cpp"


LEFT_TO_THEMSELVES = {
    "identity": (nn.Identity, lambda: [_rows(6, 8)]),
    "embedding": (lambda: nn.Embedding(6, 5), lambda: [torch.tensor([1, 5, 0, 1])]),
    "1-dimensional pooling": (lambda: nn.MaxPool1d(2), lambda: [_rows(2, 3, 8)]),
    "convolution": (lambda: nn.Conv1d(3, 4, 3), lambda: [_rows(2, 3, 8)]),
    "padding": (lambda: nn.ReflectionPad1d(2), lambda: [_rows(2, 3, 8)]),
}


@pytest.mark.parametrize("name", LEFT_TO_THEMSELVES)
def test_one_operation_of_torch_is_left_to_the_module_without_a_warning(name: str) -> None:
    torch.manual_seed(0)
    make, arguments = LEFT_TO_THEMSELVES[name]
    assert compare(make(), arguments(), steps=3).last_rung == "composed"


def test_what_is_left_to_the_module_has_its_layout_and_its_hooks() -> None:
    layer = nn.Conv2d(3, 4, 3)
    served = opwright.module(layer)
    x = torch.randn(2, 3, 8, 8).contiguous(memory_format=torch.channels_last)
    for _ in range(2):
        assert served(x).stride() == layer(x).stride()
    assert served.last_rung == "composed"
    seen: list[str] = []
    served.register_forward_hook(lambda *_: seen.append("hook"))
    served(x)
    assert seen == ["hook"]


REFERENCES = {
    "cumulative average": (lambda: nn.BatchNorm1d(8, momentum=None), lambda: [_rows(6, 8)]),
}


@pytest.mark.falls_back
@pytest.mark.parametrize("name", REFERENCES)
def test_what_has_no_kernel_runs_as_written(name: str) -> None:
    torch.manual_seed(0)
    make, arguments = REFERENCES[name]
    assert compare(make(), arguments(), steps=3).last_rung == "composed"


@pytest.mark.falls_back
def test_weight_norm_by_hooks() -> None:
    with pytest.warns(FutureWarning, match="deprecated"):
        served = opwright.module(nn.utils.weight_norm(nn.Linear(8, 5)))
    x = torch.randn(6, 8)
    for _ in range(2):
        served(x).sum().backward()
        direction = served.weight_v / served.weight_v.norm(dim=1, keepdim=True)
        expected = nn.functional.linear(x, served.weight_g * direction, served.bias)
        torch.testing.assert_close(served(x), expected)
        with torch.no_grad():
            served.weight_g.mul_(1.5)
    assert served.weight_v.grad is not None


@pytest.mark.parametrize("mask", [None, True])
def test_structures_and_keywords(mask: bool | None) -> None:
    torch.manual_seed(0)
    given = {"mask": _rows(6, 8) if mask else None, "options": {"power": 2}}
    served = compare(Nested(), [[_rows(6, 8), {"x": _rows(6, 8)}]], given)
    assert served.last_rung == "cpp"


def test_training_gives_the_same_losses() -> None:
    torch.manual_seed(0)
    plain = nn.Sequential(_block(), nn.Flatten(), nn.Dropout(0.2), nn.Linear(80, 1))
    served = opwright.module(copy.deepcopy(plain))
    torch.testing.assert_close(_losses(served), _losses(plain), rtol=1e-4, atol=1e-5)
    assert served.last_rung == "cpp"
    torch.testing.assert_close(served.state_dict(), plain.state_dict(), rtol=1e-3, atol=1e-4)


def _losses(module: nn.Module) -> list[float]:
    torch.manual_seed(7)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.05)
    losses = []
    for _ in range(20):
        images = torch.randn(8, 3, 7, 6)
        optimizer.zero_grad()
        loss = (module(images).squeeze(1) - images.mean((1, 2, 3))).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_changed_attributes_are_seen() -> None:
    module = opwright.module(nn.Sequential(nn.LeakyReLU(0.1), nn.Tanh()))
    x = torch.randn(4, 5)
    torch.testing.assert_close(module(x), torch.tanh(nn.functional.leaky_relu(x, 0.1)))
    module[0].negative_slope = 0.7
    torch.testing.assert_close(module(x), torch.tanh(nn.functional.leaky_relu(x, 0.7)))
    module[1] = nn.Sigmoid()
    torch.testing.assert_close(module(x), torch.sigmoid(nn.functional.leaky_relu(x, 0.7)))
    assert module.last_rung == "cpp"


class Counting(nn.Module):
    """A forward that changes a plain attribute, and a list."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.seen: list[int] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.seen.append(self.calls)
        return x * self.calls


@pytest.mark.falls_back
def test_a_forward_that_changes_attributes_runs_as_written(told: Callable[[], list[str]]) -> None:
    module = opwright.module(Counting())
    x = torch.randn(4)
    for call in (1, 2, 3):
        torch.testing.assert_close(module(x), x * call)
    assert (module.calls, module.seen, module.last_rung) == (3, [1, 2, 3], "composed")
    assert "its forward changes attributes of the module" in told()[0]


class Averaging(nn.Module):
    """A buffer that is changed in place, and read afterwards."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("average", torch.zeros(5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            self.average.mul_(0.5).add_(x.mean(0))
        return (x - self.average).square()


class Rebinding(nn.Module):
    """A buffer that is exchanged for another."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("average", torch.zeros(5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.average = self.average * 0.5 + x.detach().mean(0)
        return x * self.average


@pytest.mark.falls_back
def test_exchanged_buffers_run_as_written() -> None:
    torch.manual_seed(0)
    assert compare(Rebinding(), [_rows(6, 5)], steps=3).last_rung == "composed"


@pytest.mark.falls_back
def test_arguments_are_changed_in_place() -> None:
    x = torch.randn(4, 3)
    given = x.clone()
    assert opwright.module(nn.ReLU(inplace=True))(given) is given
    torch.testing.assert_close(given, x.relu())


@pytest.mark.falls_back
def test_parameters_are_changed_in_place() -> None:
    torch.manual_seed(0)
    served = compare(nn.Embedding(5, 3, max_norm=0.5), [torch.tensor([1, 2, 2])])
    assert served.last_rung == "composed"


def test_buffers_of_ones_own() -> None:
    torch.manual_seed(0)
    assert compare(Averaging(), [_rows(6, 5)], steps=3).last_rung == "cpp"


def test_modes_and_compilers_run_it_as_written() -> None:
    module = opwright.module(nn.Sequential(nn.Linear(8, 5), nn.Tanh()))
    x = torch.randn(6, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert module(x).dtype is torch.bfloat16
    assert module.last_rung != "cpp"
    with torch.no_grad():
        assert not module(x).requires_grad
    assert module.last_rung == "cpp"
    torch.testing.assert_close(torch.func.vmap(module)(x), module(x))


@pytest.mark.parametrize("given", [torch.sin, nn.LazyLinear(3)], ids=["function", "lazy"])
def test_refusals(given: object) -> None:
    with pytest.raises(ModuleUnsupported):
        opwright.module(given)


def test_served_modules_of_one_class_are_of_one_class() -> None:
    """Ensembles ask for it; options that are equal and not the same, as 1 and True, do not count as one."""
    torch.manual_seed(0)
    models = [nn.Sequential(nn.Linear(4, 3), nn.Tanh()) for _ in range(3)]
    x, found = torch.randn(5, 4), []
    for each in (models, [opwright.module(model) for model in models]):
        parameters, buffers = torch.func.stack_module_state(each)
        base = each[0]

        def call(parameters: Any, buffers: Any, x: torch.Tensor, base: nn.Module = base) -> Any:
            return torch.func.functional_call(base, (parameters, buffers), (x,))

        found.append(torch.vmap(call, (0, 0, None))(parameters, buffers, x))
    torch.testing.assert_close(*found)
    assert type(opwright.module(models[0])) is type(opwright.module(models[1]))
    assert type(opwright.module(models[0], save=1)) is not type(opwright.module(models[0], save=1.0))
    assert type(opwright.module(models[0], depth=1)) is not type(opwright.module(models[1]))
