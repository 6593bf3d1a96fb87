"""What PyTorch does around operators on a GPU: autocast, graphs of whole steps, transforms, compilers, draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional

import opwright
from tests.on_gpu.device import DEVICE, RUNG

ON_A_GPU = pytest.mark.skipif(DEVICE == "cpu", reason="the processor does not do it")


def gate(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x * weight + bias).softmax(-1)


def projected(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return functional.gelu(x @ weight.mT + bias) * 0.5


def dropped(x: torch.Tensor) -> torch.Tensor:
    return functional.dropout(torch.tanh(x), 0.3) * 2


def made(function: Callable[..., Any], name: str) -> Any:
    return opwright.Operator(function, name=f"on_gpu_{name}")


def normal(*sizes: int, requires_grad: bool = True) -> torch.Tensor:
    return torch.randn(*sizes, device=DEVICE).requires_grad_(requires_grad)


def results(function: Callable[..., Any], *given: torch.Tensor) -> list[torch.Tensor]:
    output = function(*given)
    wanted = [each for each in given if each.requires_grad]
    return [output, *torch.autograd.grad(output.float().square().sum(), wanted)]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast(dtype: torch.dtype) -> None:
    operator, given = made(projected, f"autocast_{str(dtype)[6:]}"), (normal(32, 48), normal(64, 48), normal(64))
    with torch.autocast(DEVICE, dtype):
        ours, eager = results(operator, *given), results(projected, *given)
    for mine, theirs in zip(ours, eager, strict=True):
        assert mine.dtype is theirs.dtype
        torch.testing.assert_close(mine, theirs, rtol=2e-2, atol=2e-2)


@ON_A_GPU
@pytest.mark.filterwarnings("ignore:The AccumulateGrad node's stream")  # which the arguments were made on
def test_a_training_step_is_captured_and_replayed() -> None:
    operator, given = made(gate, "captured"), [normal(64, 33), normal(33), normal(33)]
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            results(operator, *given)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = results(operator, *given)
    with torch.no_grad():
        for tensor in given:
            tensor.copy_(torch.randn_like(tensor))
    graph.replay()
    torch.testing.assert_close(captured, results(gate, *given))


@ON_A_GPU
def test_graphed_callables() -> None:
    layer = opwright.module(
        torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.LayerNorm(32)).to(DEVICE)
    )
    x = normal(8, 16)
    expected = layer(x).detach()
    graphed = torch.cuda.make_graphed_callables(layer, (x.detach().clone().requires_grad_(),))
    torch.testing.assert_close(graphed(x).detach(), expected)


def test_transforms() -> None:
    operator, x, weight, bias = made(gate, "transforms"), normal(6, 33), normal(33), normal(33)
    ways = {
        "vmap": lambda f: torch.func.vmap(f, (0, None, None))(x, weight, bias),
        "jvp": lambda f: torch.func.jvp(f, (x, weight, bias), (x * 2, weight + 1, bias - 1))[1],
        "vmap of grad": lambda f: torch.func.vmap(torch.func.grad(lambda r: f(r, weight, bias).square().sum()))(x),
        "hessian": lambda f: torch.func.hessian(lambda b: f(x, weight, b).square().sum())(bias),
    }
    for name, way in ways.items():
        torch.testing.assert_close(
            way(operator), way(gate), rtol=1e-4, atol=1e-5, msg=lambda text, name=name: f"{name}: {text}"
        )


@ON_A_GPU
@pytest.mark.falls_back
def test_random_numbers_are_those_of_eager() -> None:
    operator, x = made(dropped, "dropped"), normal(64, 65)
    torch.manual_seed(3)
    ours = results(operator, x)
    torch.manual_seed(3)
    torch.testing.assert_close(ours, results(dropped, x))
    assert operator.last_rung == "composed"  # on a GPU only the function draws as eager does


@ON_A_GPU
@pytest.mark.seconds(200)
def test_compiled() -> None:
    operator, given = made(gate, "compiled"), [normal(64, 33), normal(33), normal(33)]

    def around(*given: torch.Tensor) -> torch.Tensor:
        return operator(*given) * 2 + given[0].sin()

    compiled = torch.compile(around, fullgraph=True)
    torch.testing.assert_close(
        results(compiled, *given), results(lambda *g: gate(*g) * 2 + g[0].sin(), *given), rtol=1e-4, atol=1e-5
    )


@ON_A_GPU
def test_tensors_made_in_the_function_are_on_the_gpu() -> None:
    def masked(x: torch.Tensor) -> torch.Tensor:
        n = x.shape[-1]
        below = torch.ones(n, n, device=x.device).tril()
        return (x + below.log()).softmax(-1) * torch.arange(n, device=x.device)

    operator, x = made(masked, "made_inside"), normal(3, 17, 17)
    torch.testing.assert_close(results(operator, x), results(masked, x))
    assert operator.last_rung == RUNG


def test_numbers_flags_and_half_types() -> None:
    def scaled(x: torch.Tensor, scale: float, is_on: bool = True) -> torch.Tensor:
        return torch.sigmoid(x * scale) if is_on else x

    operator = made(scaled, "scaled")
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        x = normal(5, 65).detach().to(dtype)
        for scale in (0.5, 2.0, 1e-3):
            torch.testing.assert_close(operator(x, scale), scaled(x, scale))
        assert operator.last_rung == RUNG
        torch.testing.assert_close(operator(x, 2.0, False), x)


@pytest.mark.falls_back  # attention on a GPU is a part of its own
def test_a_module_trains_as_in_eager() -> None:
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True).to(DEVICE)
    state = {name: value.clone() for name, value in layer.state_dict().items()}
    x = normal(4, 9, 32, requires_grad=False)

    def trained(module: torch.nn.Module) -> list[torch.Tensor]:
        layer.load_state_dict(state)
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
        losses = []
        for _ in range(3):
            loss = module(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        return [*losses, *(value.clone() for value in layer.state_dict().values())]

    eager = trained(layer)
    torch.testing.assert_close(trained(opwright.module(layer)), eager, rtol=1e-4, atol=1e-5)
