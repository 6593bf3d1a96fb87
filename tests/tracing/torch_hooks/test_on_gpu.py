"""References traced for tensors on a GPU, on machines that have none."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from opwright.errors import NoKernel, UntraceableReference
from opwright.operators import refusals
from opwright.tracing.graph import Graph
from opwright.tracing.interface.specs import TensorSpec
from opwright.tracing.trace import trace


def traced(reference: Callable[..., torch.Tensor], device: str = "cuda") -> Graph:
    return trace(reference, [TensorSpec("x", torch.float32, (4, 3), device=device)])[0]


def branching(x: torch.Tensor) -> torch.Tensor:
    return x.exp() if x.is_cuda and not x.is_cpu and x.device.type == "cuda" else x.sin()


def test_questions_about_the_device_are_answered_for_a_gpu() -> None:
    assert "exp" in str(traced(branching).fx)
    assert "sin" in str(traced(branching, "cpu").fx)


ALLOWED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "made where x is": lambda x: x + torch.arange(3, device=x.device),
    "made on the GPU by name": lambda x: x + torch.ones(3, device="cuda"),
    "made like x": lambda x: x + x.new_ones(3) + torch.zeros_like(x),
    "moved to where it is": lambda x: x.to("cuda") + x.to(x.device, torch.float32) + x.cuda(),
    "converted": lambda x: x.to(torch.float64),
    "a number": lambda x: x * torch.tensor(2.0),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_what_stays_on_the_gpu_is_traced_as_on_the_processor(name: str) -> None:
    graph = traced(ALLOWED[name])

    assert len(graph.outputs) == 1


REFUSED: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], type[Exception], str]] = {
    "cpu()": (lambda x: x.cpu() + 1, NoKernel, "puts a tensor on 'cpu'"),
    "to": (lambda x: x.to("cpu") + 1, NoKernel, "puts a tensor on 'cpu'"),
    "another GPU": (lambda x: x.to(torch.device("cuda", 1)) + 1, NoKernel, "puts a tensor on 'cuda:1'"),
    "made on the processor": (lambda x: torch.ones(3, device="cpu") + x, NoKernel, "puts a tensor on 'cpu'"),
    "made without a device": (lambda x: torch.ones(3) + x, NoKernel, "makes a tensor on the processor where"),
    "which GPU": (lambda x: x + x.get_device(), UntraceableReference, "asks which GPU a tensor is on"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_leave_the_gpu_is_refused(name: str) -> None:
    reference, error, sentence = REFUSED[name]
    with pytest.raises(error, match=sentence):
        traced(reference)


def test_on_the_processor_nothing_is_refused() -> None:
    assert len(traced(REFUSED["made without a device"][0], "cpu").outputs) == 1


def attended(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.scaled_dot_product_attention(x, x, x).tanh()


@pytest.fixture
def built_for_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch as it tells of itself where it is built for CUDA: it has all kernels, but those for the processor."""

    def has_kernel(operation: str, key: str) -> bool:
        return key == "CUDA" and not operation.endswith("for_cpu")

    monkeypatch.setattr(refusals, "_is_built_for_cuda", lambda: True)
    monkeypatch.setattr(refusals, "_has_kernel", has_kernel)


def test_operations_for_the_processor_alone_are_refused(built_for_cuda: None) -> None:
    specs = [TensorSpec("x", torch.float32, (2, 4, 5, 8), device="cuda")]
    with pytest.raises(NoKernel, match="_scaled_dot_product_flash_attention_for_cpu for GPUs"):
        refusals.refuse_here(trace(attended, specs)[0], specs)
    refusals.refuse_here(trace(torch.tanh, specs)[0], specs)


def test_on_the_processor_they_serve(built_for_cuda: None) -> None:
    specs = [TensorSpec("x", torch.float32, (2, 4, 5, 8))]
    refusals.refuse_here(trace(attended, specs)[0], specs)
