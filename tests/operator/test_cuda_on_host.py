"""Whole operators whose CUDA kernels run on the processor."""

from __future__ import annotations

import pytest
import torch

import opwright
from opwright import Operator
from opwright.errors import RungMissing
from opwright.settings import Settings
from tests.quick_compiler import OPTIMIZING_NOTHING, quick_compiler
from tests.suite.kept_libraries import another_cache


def gate(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x) * y


@pytest.fixture(scope="module")
def settings() -> Settings:
    compiler = quick_compiler(OPTIMIZING_NOTHING)
    return Settings(another_cache(), compiler, notify=False, tape="off", cuda_on_host=True)


@pytest.fixture(scope="module")
def operator(settings: Settings) -> Operator:
    return Operator(gate, name="gate_on_host", samples=opwright.shapes("N", "N", N=300), settings=settings)


def test_forward_and_backward_are_served_by_cuda(operator: Operator) -> None:
    x, y = (torch.randn(3, 300, requires_grad=True) for _ in range(2))
    result, expected = operator(x, y), gate(x, y)

    assert operator.last_rung == "cuda"
    torch.testing.assert_close(result, expected)
    gradients = (torch.autograd.grad(made.sum(), [x, y]) for made in (result, expected))
    for found, right in zip(*gradients, strict=True):
        torch.testing.assert_close(found, right)


def test_the_rungs_say_so(operator: Operator) -> None:
    operator(torch.randn(5, 300), torch.randn(5, 300))
    rungs = {rung.name: rung for rung in operator.rungs()}

    assert rungs["cuda"].available
    assert rungs["cuda"].variants > 0
    assert rungs["cpp"].reason.startswith("OPWRIGHT_CUDA_ON_HOST has CUDA kernels serve tensors on the processor")
    with pytest.raises(RungMissing, match="no rung 'cpp' here"):
        operator.on("cpp")


def test_a_pinned_call_is_served_and_an_empty_one_by_the_reference(operator: Operator) -> None:
    x = torch.randn(5, 300)

    torch.testing.assert_close(operator.on("cuda")(x, x), gate(x, x))
    assert operator.on("cuda")(x[:0], x[:0]).shape == (0, 300)
    assert operator.last_rung == "composed"


def test_another_process_finds_it(operator: Operator, settings: Settings) -> None:
    x = torch.randn(3, 300)
    operator(x, x)
    derivations = []
    again = Operator(gate, name="gate_on_host", samples=operator.samples, settings=settings)
    derive = again._derive
    again._derive = lambda *given: derivations.append(given) or derive(*given)

    torch.testing.assert_close(again(x, x), gate(x, x))
    assert (again.last_rung, derivations) == ("cuda", [])


def test_without_a_gpu_the_rung_is_missing_with_a_reason(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", None)
    usual = Settings(settings.cache_directory, settings.compiler, notify=False)
    operator = Operator(gate, name="gate_usual", settings=usual)

    assert {rung.name: rung.reason for rung in operator.rungs()}["cuda"] == "this PyTorch is built without CUDA"
