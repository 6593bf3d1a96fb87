"""Arguments that `mutates=` names, in calls that leave them as they are: nothing is written."""

from __future__ import annotations

import mmap
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import opwright

TIMES = 3  # the last calls go by C++ alone


def averaged(x: Tensor, average: Tensor, training: bool) -> Tensor:
    if training:
        average.mul_(0.9).add_(x.detach().mean(0), alpha=0.1)
    return x - average


def returned(x: Tensor, average: Tensor, training: bool) -> tuple[Tensor, Tensor]:
    if training:
        average.add_(x.detach().sum(0))
    return average, x * average


def either(x: Tensor, first: Tensor, second: Tensor, training: bool) -> Tensor:
    (first if training else second).add_(1)
    return x * first * second


def counted(x: Tensor, average: Tensor, training: bool) -> None:
    if training:
        average.add_(x.sum(0))


@pytest.fixture(params=[torch.enable_grad, torch.no_grad, torch.inference_mode])
def mode(request: pytest.FixtureRequest) -> Any:
    return request.param


def made(function: Callable[..., Any], *names: str) -> Callable[..., Any]:
    return opwright.operator(mutates=names or ("average",))(function)


def test_memory_that_cannot_be_written_is_read(mode: Any) -> None:
    operator, x = made(averaged), torch.ones(3, 1024)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # PyTorch has no tensors that cannot be written
        average = torch.frombuffer(mmap.mmap(-1, 4096, prot=mmap.PROT_READ), dtype=torch.float32)
    for _ in range(TIMES):
        with mode():
            assert torch.equal(operator(x, average, False), x)
        assert operator.last_rung == "cpp"


def test_versions_count_changes_alone(mode: Any) -> None:
    operator, average = made(averaged), torch.zeros(4)
    for _ in range(TIMES):
        for training in (False, True, False):
            before = average._version
            with mode():
                operator(torch.ones(3, 4), average, training)
            assert (average._version > before) is training
            assert operator.last_rung == "cpp"


def test_one_of_two_is_changed(mode: Any) -> None:
    operator = made(either, "first", "second")
    for _ in range(TIMES):
        for training in (True, False):
            theirs, ours = [[torch.ones(4), torch.ones(4)] for _ in range(2)]
            with mode():
                torch.testing.assert_close(
                    operator(torch.ones(4), *ours, training), either(torch.ones(4), *theirs, training)
                )
            torch.testing.assert_close(ours, theirs)
            assert [each._version > 0 for each in ours] == [training, not training]


def test_a_graph_that_saved_it_stays_valid() -> None:
    operator = made(averaged)
    for _ in range(TIMES):
        average, weight = torch.full((4,), 2.0), torch.ones(4, requires_grad=True)
        saved = (weight * average).sum()
        out = operator(weight.expand(3, 4), average, False)
        (out.sum() + saved).backward()
        torch.testing.assert_close(weight.grad, torch.full((4,), 5.0))
        assert operator.last_rung == "cpp"


def test_it_keeps_its_history_and_gets_its_gradient() -> None:
    operator = made(averaged)
    for _ in range(TIMES):
        leaf = torch.ones(4, requires_grad=True)
        average = leaf * 2
        history = average.grad_fn
        operator(torch.ones(3, 4), average, False).sum().backward()
        assert average.grad_fn is history
        torch.testing.assert_close(leaf.grad, torch.full((4,), -6.0))


def test_it_is_returned_itself(mode: Any) -> None:
    operator = made(returned)
    for training in (False, True, False) * TIMES:
        average = torch.ones(4)
        with mode():
            found, _ = operator(torch.ones(3, 4), average, training)
        assert found is average
        assert average.tolist() == ([4.0] * 4 if training else [1.0] * 4)


def test_tensors_of_inference_mode_are_read_outside_of_it() -> None:
    operator = made(averaged)
    with torch.inference_mode():
        average = torch.zeros(4)
    for _ in range(TIMES):
        assert torch.equal(operator(torch.ones(3, 4), average, False), torch.ones(3, 4))


def test_a_call_that_does_nothing_is_silent() -> None:
    operator, average = made(counted), torch.zeros(4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(TIMES):
            assert operator(torch.ones(3, 4), average, False) is None
            operator(torch.ones(3, 4), average, True)
    assert average.tolist() == [3.0 * TIMES] * 4


def test_transforms() -> None:
    operator, x, t = made(averaged), torch.randn(2, 3, 4), torch.randn(2, 3, 4)
    average = torch.ones(2, 4)
    for function in (averaged, operator):
        batched = torch.vmap(lambda x, a: function(x, a, False))(x, average)  # noqa: B023
        torch.testing.assert_close(batched, x - 1)
        value, tangent = torch.func.jvp(lambda x: function(x, average[0], False), (x,), (t,))  # noqa: B023
        torch.testing.assert_close((value, tangent), (x - 1, t))
    assert average._version == 0


@pytest.mark.parametrize("lies", [lambda x: x.mT, lambda x: x.to(memory_format=torch.channels_last)])
def test_results_lie_as_those_of_eager(lies: Callable[[Tensor], Tensor]) -> None:
    operator, average = made(averaged), torch.zeros(3, 4, 4)
    for training in (False, True, False) * TIMES:
        x = lies(torch.randn(2, 3, 4, 4)).requires_grad_()
        found, expected = operator(x, average, training), averaged(x, average.clone(), training)
        assert found.stride() == expected.stride()
        assert gradient_of(found, x).stride() == gradient_of(expected, x).stride()
        assert operator.last_rung == "cpp"


def gradient_of(out: Tensor, x: Tensor) -> Tensor:
    return torch.autograd.grad(out.square().sum(), x)[0]
