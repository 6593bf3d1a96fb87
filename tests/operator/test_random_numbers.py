"""Functions that draw random numbers: eager's stream for a seed, drawn once, also when differentiated twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from opwright.api.operator import Operator
from opwright.ir.call_traits import RANDOM
from opwright.tracing.interface.signature import Kind, Parameter, Signature
from tests.suite.nights import mostly_at_night

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
@pytest.mark.parametrize(
    "function", mostly_at_night([several_draws, drawn_along_memory, seeded, drawn_in_place, unused_draw], by_day=3)
)
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


class Noisy(torch.autograd.Function):
    """Rounds its gradient at random, as some do."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.sin()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # type: ignore[override]
        return gradient + torch.rand(4, 5)


def noisy_gradient(x: Tensor) -> Tensor:
    return Noisy.apply(x) * 2.0  # type: ignore[no-any-return]


def noisy_hook(x: Tensor) -> Tensor:
    y = x.sin()
    if y.requires_grad:
        y.register_hook(lambda gradient: gradient * torch.rand_like(gradient))
    return y * 2.0


def checkpointed(x: Tensor, **options: bool) -> Tensor:
    return checkpoint(lambda y: functional.dropout(y.sin(), 0.5) + y, x, **options) * 2.0  # type: ignore[no-any-return]


def anew(x: Tensor) -> Tensor:
    return checkpointed(x, use_reentrant=False, preserve_rng_state=False)


def again(x: Tensor) -> Tensor:
    return checkpointed(x, use_reentrant=False)


def again_reentrant(x: Tensor) -> Tensor:
    return checkpointed(x, use_reentrant=True)


@pytest.mark.falls_back
@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")
@pytest.mark.parametrize("function", [noisy_gradient, noisy_hook, anew, again, again_reentrant])
def test_a_backward_pass_draws_when_and_what_eager_draws(function: Callable[[Tensor], Tensor]) -> None:
    """A checkpoint's runs drop the same elements; others draw after what is drawn between the passes."""
    operator, found = operator_of(function), list[list[Tensor]]()
    for each in (operator, function):
        torch.manual_seed(0)
        x = torch.linspace(0.5, 1, 20).reshape(4, 5).requires_grad_()
        y, between = each(x), torch.rand(2)
        y.sum().backward(retain_graph=True)
        y.sum().backward()  # accumulates
        assert x.grad is not None
        found.append([y.detach(), between, x.grad, torch.rand(2), each(x).detach()])
        if function is not again_reentrant:  # which refuses a second derivative
            (gradient,) = torch.autograd.grad(each(x).square().sum(), x, create_graph=True)
            found[-1] += [torch.rand(2), gradient.detach(), *torch.autograd.grad(gradient.square().sum(), x)]
        found[-1].append(torch.rand(2))
    torch.testing.assert_close(*found)


def its_own_layer(x: Tensor) -> Tensor:
    return nn.Linear(5, 3)(x)


def its_own_layer_in_double(x: Tensor) -> Tensor:
    return nn.Linear(5, 3).double()(x.double()) * 2.0


@pytest.mark.falls_back
@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("function", [its_own_layer, its_own_layer_in_double])
def test_a_function_that_makes_a_layer_gives_what_requires_a_gradient(
    function: Callable[[Tensor], Tensor], gradient: bool
) -> None:
    """Also where no argument does; a conversion of the layer draws no other numbers."""
    operator, x = operator_of(function), torch.linspace(0, 1, 20).reshape(4, 5).requires_grad_(gradient)
    for seed in range(2):
        found = []
        for each in (operator, function):
            torch.manual_seed(seed)
            y = each(x)
            found.append((y.detach(), torch.rand(2), torch.tensor(y.requires_grad)))
        torch.testing.assert_close(*found)


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


def scaled_noise(x: Tensor) -> Tensor:
    return x.sin() * torch.randn(3, 4) + torch.rand(x.shape)


LAYOUTS: dict[str, Callable[[], Tensor]] = {
    "transposed": lambda: torch.randn(4, 3).t(),
    "expanded": lambda: torch.randn(1, 4).expand(3, 4),
    "gapped": lambda: torch.randn(3, 8)[:, ::2],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_draws_of_given_sizes_have_kernels_for_any_layout(layout: str) -> None:
    operator, x = operator_of(scaled_noise), LAYOUTS[layout]().requires_grad_()
    found = []
    for function in (operator, scaled_noise):
        torch.manual_seed(3)
        result = function(x)
        found.append((result, *torch.autograd.grad(result.sum(), x), torch.rand(2)))
    torch.testing.assert_close(*found)
    assert found[0][0].stride() == found[1][0].stride()
    assert operator.last_rung == "cpp"
