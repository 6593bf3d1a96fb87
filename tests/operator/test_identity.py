"""Functions that ask which tensors are one: `a is b`, `id(a)`, sets and dicts of tensors; given a tensor twice."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import opwright

pytestmark = [pytest.mark.falls_back]

EMPTY = torch.zeros(4)


def tensor(seed: int = 0) -> Tensor:
    return torch.randn(4, generator=torch.Generator().manual_seed(seed), requires_grad=True)


def is_same(a: Tensor, b: Tensor) -> Tensor:
    return a.exp() * b.sin() if a is b else (a * b.cos()).exp()


def is_not_same(a: Tensor, b: Tensor) -> Tensor:
    return (a * b.cos()).exp() if a is not b else a.exp() * b.sin()


def any_is_same(a: Tensor, b: Tensor) -> Tensor:
    others = [b]
    return a.exp() * b.sin() if any(a is other for other in others) else (a * b.cos()).exp()


def same_address(a: Tensor, b: Tensor) -> Tensor:
    return a.exp() * b.sin() if id(a) == id(b) else (a * b.cos()).exp()


def same_hash(a: Tensor, b: Tensor) -> Tensor:
    return a.exp() * b.sin() if hash(a) == hash(b) else (a * b.cos()).exp()


def same_by_operator(a: Tensor, b: Tensor) -> Tensor:
    return a.exp() * b.sin() if operator.is_(a, b) else (a * b.cos()).exp()


def in_a_dict(a: Tensor, b: Tensor) -> Tensor:
    return sum((each.sin().exp() for each in {a: 1, b: 2}), torch.zeros(4))


def remembers(a: Tensor, b: Tensor) -> Tensor:
    known: dict[int, Tensor] = {}
    for each in (a, b):
        known.setdefault(id(each), each.sin().exp())
    return torch.stack(list(known.values())).sum(0)


def is_outside(a: Tensor, b: Tensor) -> Tensor:
    return a.exp() * b.sin() if a is EMPTY else (a * b.cos()).exp()


def does_not_ask(a: Tensor, b: Tensor) -> Tensor:
    return a.exp() * b.sin()


FUNCTIONS = {
    function: rungs
    for rungs, functions in {
        ("cpp", "composed"): (is_same, is_not_same, any_is_same, is_outside),
        ("composed", "composed"): (same_address, same_hash, same_by_operator, in_a_dict, remembers),
        ("cpp", "cpp"): (does_not_ask,),
    }.items()
    for function in functions
}


def value_and_gradients(function: Callable[..., Tensor], a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    value = function(a, b)
    if not value.requires_grad:
        return (value,)
    return (value, *torch.autograd.grad(value.sum(), [t for t in (a, b) if t.requires_grad], allow_unused=True))


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("first", [False, True], ids=["distinct first", "twice first"])
def test_one_tensor_that_is_given_twice(function: Callable[..., Tensor], first: bool) -> None:
    served = opwright.operator(function)
    x, y = tensor(), tensor(1)
    same = (EMPTY, y) if function is is_outside else (x, x)
    for twice in (first, not first, first, not first):
        given = same if twice else (x, y)
        torch.testing.assert_close(value_and_gradients(served, *given), value_and_gradients(function, *given))
        assert served.last_rung == FUNCTIONS[function][twice]


TRANSFORMS: dict[str, Callable[[Callable[..., Tensor], Tensor], Any]] = {
    "grad": lambda f, x: torch.func.grad(lambda x: f(x, x).sum())(x),
    "grad of two": lambda f, x: torch.func.grad(lambda x, y: f(x, y).sum(), argnums=(0, 1))(x, x),
    "vmap": lambda f, x: torch.vmap(lambda x: f(x, x))(x.expand(3, 4)),
    "vmap of two": lambda f, x: torch.vmap(f)(x.expand(3, 4), x.expand(3, 4)),
    "vmap of one twice": lambda f, x: torch.vmap(f)(*[x.expand(3, 4)] * 2),
    "jvp": lambda f, x: torch.func.jvp(lambda x: f(x, x), (x,), (x,)),
    "jvp of one twice": lambda f, x: torch.func.jvp(f, (x, x), (x, x)),
    "hessian": lambda f, x: torch.func.hessian(lambda x: f(x, x).sum())(x),
}


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # by torch's own forward mode
@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_transforms_of_a_function_that_asks(transform: Callable[[Callable[..., Tensor], Tensor], Any]) -> None:
    served, x = opwright.operator(is_same), tensor().detach()
    torch.testing.assert_close(transform(served, x), transform(is_same, x))


class Asks(nn.Module):
    """Asks whether its arguments are one tensor, or its weight, or a weight that it knows."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((4,), 3.0))
        self.known: set[int] = set()

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        if id(self.weight) in self.known:
            return query.tanh().exp()
        if query is key:
            return query.sin().exp() * self.weight
        return (query + key).cos().exp() * (self.weight if query is self.weight else self.weight.sin())


@pytest.mark.parametrize("knows", [False, True])
def test_modules_ask_too(knows: bool) -> None:
    plain = Asks()
    plain.known |= {id(plain.weight)} if knows else set()
    served = opwright.module(plain)
    x, y = tensor().detach(), tensor(1).detach()
    for given in ((x, y), (x, x), (served.weight, y), (y, x)):
        torch.testing.assert_close(served(*given), Asks.forward(served, *given))


def test_a_tensor_from_outside_may_be_an_argument() -> None:
    weight = tensor()

    def captures(x: Tensor) -> Tensor:
        return x * 2 + weight.sin() if x is weight else x * 3 + weight.sin()

    served = opwright.operator(captures)
    for given in (tensor(1), weight, tensor(2), weight):
        torch.testing.assert_close(served(given), captures(given))


def test_what_is_contiguous_already_is_the_same() -> None:
    def copied_or_not(x: Tensor) -> Tensor:
        y = x.contiguous()
        return x.exp() * 2 if y is x else x.cos().exp()

    served = opwright.operator(copied_or_not)
    for given in (torch.randn(4, 3), torch.randn(3, 4).t(), torch.randn(3, 4)[:, :3]):
        torch.testing.assert_close(served(given), copied_or_not(given))


def test_a_record_of_two_tensors_is_not_for_one_given_twice() -> None:
    def same_in_a_record(a: Tensor, b: Tensor) -> Tensor:
        return a.exp() * b.sin() if a is b else (a * b.cos()).exp()

    first, again = (opwright.Operator(same_in_a_record, name="opwright::same_in_a_record") for _ in range(2))
    torch.testing.assert_close(first(tensor(1), tensor(2)), same_in_a_record(tensor(1), tensor(2)))
    x = tensor(3)
    for each in (again, first):
        torch.testing.assert_close(each(x, x), same_in_a_record(x, x))
    torch.testing.assert_close(again(tensor(1), x), same_in_a_record(tensor(1), x))
    assert again.last_rung == "cpp"


def test_other_objects_may_be_compared() -> None:
    """Only tensors are told apart by what a call gives."""
    default = torch.sigmoid

    def with_default(x: Tensor, options: Any = {"by": default}) -> Tensor:  # noqa: B006
        return x.sin().exp() if options["by"] is default and (x.dtype is torch.float32) is True else x

    served, x = opwright.operator(lambda a, b: with_default(a) + b.sin()), tensor()
    torch.testing.assert_close(served(x, x), x.sin().exp() + x.sin())
    assert served.last_rung == "cpp"
