"""Functions that use tensors from outside: kernels take them as arguments, follow them, and give them gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import opwright
from tests.suite.nights import mostly_at_night

Tensor = torch.Tensor
x = torch.linspace(-1, 1, 12).reshape(3, 4)


class World:
    """Where functions find tensors; each is put there anew by `fill`."""

    def __init__(self) -> None:
        self.fill(0)

    def fill(self, seed: int, width: int = 4) -> None:
        torch.manual_seed(seed)
        self.weight = torch.randn(4, width, requires_grad=True)
        self.table = torch.randn(width)
        self.inside = {"bias": [torch.randn(width, requires_grad=True)]}
        self.layer = nn.Linear(4, width)
        self.tied = self.weight

    def tensors(self) -> list[Tensor]:
        return [self.weight, *self.inside["bias"], *self.layer.parameters()]


here = World()


def global_function(x: Tensor) -> Tensor:
    """A function whose module leads to tensors."""
    return torch.tanh(x @ here.weight + here.table)


def of_a_global(world: World) -> Callable[..., Any]:
    """That, in a world."""
    global here
    here = world
    return global_function


def of_a_closure(world: World) -> Callable[..., Any]:
    """A function without annotations, of a container and numbers, with a tensor in a container."""

    def f(pair, power=2.0):  # type: ignore[no-untyped-def]
        return {"y": torch.sigmoid(pair[0] @ world.weight) ** power + world.inside["bias"][0].exp() * pair[1]}

    return f


def of_a_module(world: World) -> Callable[..., Any]:
    """A function that calls a module, beside a tensor that is there twice."""

    def f(x: Tensor) -> tuple[Tensor, Tensor]:
        y = torch.tanh(world.layer(x)) * world.table
        return y, (y * world.tied.sum() + world.weight.mean()).exp()

    return f


FUNCTIONS: dict[str, tuple[Callable[[World], Callable[..., Any]], tuple[Any, ...]]] = {
    "a global": (of_a_global, (x,)),
    "a closure": (of_a_closure, ((x, 0.5),)),
    "a module": (of_a_module, (x,)),
}


def compare(operator: Any, function: Callable[..., Any], args: tuple[Any, ...], tensors: list[Tensor]) -> None:
    """Results and gradients of all tensors, by kernels and by the function."""
    made = []
    for each in (operator, function):
        result = torch.utils._pytree.tree_leaves(each(*args))
        loss = sum(y.square().sum() for y in result)
        gradients = torch.autograd.grad(loss, tensors, allow_unused=True) if loss.requires_grad else ()
        made.append((result, [y.requires_grad for y in result], gradients))
    torch.testing.assert_close(*made, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", mostly_at_night(FUNCTIONS, by_day=["a closure"]))
def test_tensors_from_outside_are_followed_with_their_gradients(name: str) -> None:
    make, args = FUNCTIONS[name]
    world = World()
    function = make(world)
    operator = opwright.operator(function)
    for change in (
        lambda: None,
        lambda: world.fill(1),  # other tensors
        lambda: world.fill(2, width=1),  # which broadcast
        lambda: world.weight.data.mul_(2.0),
        lambda: world.weight.requires_grad_(False),
    ):
        change()
        for _ in range(2):
            compare(operator, function, args, [t for t in world.tensors() if t.requires_grad])
            assert operator.last_rung == "cpp"
            with torch.no_grad():
                torch.testing.assert_close(operator(*args), function(*args), rtol=1e-4, atol=1e-4)
            assert operator.last_rung == "cpp"


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # by torch's own forward mode
def test_transforms_take_tensors_from_outside() -> None:
    world = World()
    function = of_a_global(world)
    operator = opwright.operator(function)
    batch = torch.randn(2, 3, 4)
    torch.testing.assert_close(torch.vmap(operator)(batch), torch.vmap(function)(batch))
    assert operator.last_rung == "cpp"
    moved = torch.func.jvp(operator, (x,), (x,))
    torch.testing.assert_close(moved, torch.func.jvp(function, (x,), (x,)))
    gradients = []
    for each in (operator, function):
        given = x.clone().requires_grad_()
        (first,) = torch.autograd.grad(each(given).square().sum(), world.weight, create_graph=True)
        gradients.append(torch.autograd.grad(first.square().sum(), [given, world.weight]))
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-4)


def test_rungs_and_sources_know_of_tensors_from_outside() -> None:
    world = World()
    operator = opwright.operator(samples=opwright.shapes("3 4"))(of_a_global(world))
    assert "weight" in operator.source("cpp")
    pinned = operator.on("cpp")(x)
    assert operator.last_rung == "cpp"
    torch.testing.assert_close(pinned, operator.reference(x))
    assert "weight" in operator.explain()


def test_compilers_see_the_operations_of_such_a_function() -> None:
    world = World()
    function = of_a_global(world)
    operator = opwright.operator(function)
    operator(x)
    compiled = torch.compile(operator, backend="eager", fullgraph=True)
    compare(compiled, function, (x,), [world.weight])


class Doubled(torch.autograd.Function):
    """Gets the tensor itself, for which no argument can stand."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        """Add twice the weight."""
        return x + 2 * weight.sum()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """Pass both gradients."""
        return gradient, 2 * gradient.sum() * torch.ones(4, 4)


@pytest.mark.falls_back
def test_a_gradient_is_not_lost_in_a_function_with_its_own_backward() -> None:
    world = World()

    def doubled(x: Tensor) -> Tensor:
        return torch.tanh(Doubled.apply(x, world.weight))  # type: ignore[no-any-return]

    operator = opwright.operator(doubled)
    with pytest.warns(opwright.FallbackWarning):
        operator(x)
    compare(operator, doubled, (x,), [world.weight])


@pytest.mark.falls_back
@pytest.mark.parametrize("kind", ["written", "hooked", "many", "returned"])
def test_what_cannot_be_an_argument_is_left_to_the_function(kind: str) -> None:
    layer, seen = nn.BatchNorm1d(4), list[Any]()
    many = [torch.ones(4) for _ in range(65)]
    table = torch.ones(4)
    if kind == "hooked":
        layer.eval().register_forward_hook(lambda *_: seen.append(1))

    def of_several(x: Tensor) -> Any:
        if kind == "many":
            return torch.tanh(x) + sum(many)
        if kind == "returned":
            return torch.tanh(x) * table, table
        return torch.tanh(layer(x))

    operator = opwright.operator(of_several)
    with pytest.warns(opwright.FallbackWarning):
        found = operator(x)
    expected = of_several(x)
    torch.testing.assert_close(found, expected)
    if kind == "returned":
        assert found[1] is table
    if kind == "written":
        assert layer.num_batches_tracked == 2
    if kind == "hooked":
        assert seen == [1, 1]


def test_an_operator_inside_of_another_shares_its_tensors() -> None:
    world = World()
    inner = opwright.operator(of_a_global(world))
    inner(x)

    def outer(x: Tensor) -> Tensor:
        return torch.sigmoid(inner(x * 2)) + world.table

    operator = opwright.operator(outer)
    for _ in range(2):
        compare(operator, lambda x: torch.sigmoid(global_function(x * 2)) + world.table, (x,), [world.weight])
        assert operator.last_rung == "cpp"
