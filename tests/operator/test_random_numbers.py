"""Functions that draw random numbers: eager's stream for a seed, drawn once, also when differentiated twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from opwright.api.operator import Operator
from opwright.ir.call_traits import RANDOM
from opwright.tracing.interface.signature import Kind, Parameter, Signature

pytestmark = pytest.mark.built_together

SIGNATURE = Signature((Parameter("x", Kind.TENSOR, False),), 1)


def several_draws(x: Tensor) -> Tensor:
    return torch.rand_like(x) + torch.randn(x.shape) * functional.dropout(x.sin() * x, 0.3)


def unused_draw(x: Tensor) -> Tensor:
    torch.rand(3)
    return x * torch.bernoulli(x.sigmoid())


def drawn_in_place(x: Tensor) -> Tensor:
    return x * x * torch.empty_like(x).uniform_(1, 2) + torch.empty(5).normal_() * x.exp()


def drawn_along_memory(x: Tensor) -> Tensor:
    y = x.t().exp()
    noise = torch.randn_like(y) + torch.empty_like(y).normal_(1, 2) + torch.rand_like(y)
    return functional.dropout(y * y, 0.3) * noise + torch.empty_like(y).exponential_(0.5)


def seeded(x: Tensor) -> Tensor:
    torch.manual_seed(3)
    return x * x * torch.rand_like(x)


def seeded_by_a_table(x: Tensor) -> Tensor:
    SEEDS["here"](3)
    return x * x * torch.rand_like(x)


def seeded_at_the_generator(x: Tensor) -> Tensor:
    torch.default_generator.manual_seed(3)
    return x * x * torch.rand_like(x)


def seeded_by_a_state(x: Tensor) -> Tensor:
    torch.set_rng_state(STATE)
    return x * x * torch.rand_like(x)


def seeded_in_a_fork(x: Tensor) -> Tensor:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return x * x * torch.rand_like(x)


SEEDS = {"here": torch.manual_seed}
STATE = torch.Generator().manual_seed(3).get_state()
SEEDED = (seeded, seeded_by_a_table, seeded_at_the_generator, seeded_by_a_state, seeded_in_a_fork)


def operator_of(function: Callable[[Tensor], Tensor]) -> Operator:
    return Operator(function, signature=SIGNATURE)


def everything(function: Callable[[Tensor], Tensor], x: Tensor) -> list[Tensor]:
    """Output, gradient, second derivative, and what is drawn afterwards."""
    torch.manual_seed(11)
    leaf = x.detach().requires_grad_()
    output = function(leaf)
    torch.rand(2)
    (gradient,) = torch.autograd.grad(output.sum(), leaf, create_graph=True)
    (second,) = torch.autograd.grad((gradient * gradient).sum(), leaf)
    (without_graph,) = torch.autograd.grad(function(leaf).sum(), leaf)
    return [output.detach(), gradient.detach(), second, without_graph, torch.rand(2)]


@pytest.mark.falls_back
@pytest.mark.parametrize("function", [several_draws, unused_draw, drawn_in_place, drawn_along_memory, seeded])
def test_the_stream_is_that_of_eager(function: Callable[[Tensor], Tensor]) -> None:
    operator = operator_of(function)
    x = torch.randn(4, 5, generator=torch.Generator().manual_seed(0))
    for _ in range(2):  # derived, then found
        torch.testing.assert_close(everything(operator, x), everything(function, x))
        assert operator.last_rung == ("composed" if function is seeded else "cpp")


@pytest.mark.falls_back
@pytest.mark.parametrize("function", SEEDED, ids=lambda function: function.__name__)
def test_a_function_that_sets_the_generator_to_the_state_it_has_runs_as_written(
    function: Callable[[Tensor], Tensor],
) -> None:
    operator, x = operator_of(function), torch.ones(4, 5)
    for seed in (3, 9):
        results = []
        for each in (operator, function):
            torch.manual_seed(seed)
            results.append((each(x), torch.rand(2)))
        torch.testing.assert_close(*results, rtol=0, atol=0)
    assert operator.last_rung == "composed"


def test_a_checkpoint_which_sets_the_generator_itself_has_kernels() -> None:
    def checkpointed(x: Tensor) -> Tensor:
        return checkpoint(lambda y: torch.tanh(y) * y.exp(), x, use_reentrant=False) * 2

    operator, x = operator_of(checkpointed), torch.linspace(-1, 1, 12, requires_grad=True)
    gradients = [torch.autograd.grad(each(x).sum(), x) for each in (operator, checkpointed)]
    torch.testing.assert_close(*gradients)
    assert operator.last_rung == "cpp"


@pytest.mark.falls_back
def test_another_layout_is_the_references() -> None:
    operator = operator_of(unused_draw)
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(0)).t()
    torch.testing.assert_close(everything(operator, x), everything(unused_draw, x))
    assert operator.last_rung == "composed"


def test_random_operations_are_those_of_torch() -> None:
    for name in RANDOM:
        packet = getattr(torch.ops.aten, name.removeprefix("aten::"))
        tags = [getattr(packet, overload).tags for overload in packet.overloads()]
        assert any(torch.Tag.nondeterministic_seeded in found for found in tags), name


@pytest.mark.falls_back  # the gradient of a sum is expanded, and draws are in the order of rows
def test_gradients_of_transforms_require_none() -> None:
    """The backward pass of `torch.func.grad` records gradients, of which nobody asks for one."""
    operator, x = operator_of(several_draws), torch.linspace(-1, 1, 6)
    found = []
    for each in (operator, several_draws):
        torch.manual_seed(1)
        found.append(torch.func.grad(lambda x, each=each: each(x).sum())(x))
    torch.testing.assert_close(*found)
    assert [gradient.requires_grad for gradient in found] == [False, False]
