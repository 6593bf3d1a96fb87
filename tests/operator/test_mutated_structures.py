"""Operators that change tensors in lists, tuples and dicts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

import opwright
from opwright.errors import UnsupportedParameter


class State(NamedTuple):
    """Two tensors."""

    average: Tensor
    square: Tensor


@opwright.operator(mutates=("parameters",))
def step_(parameters: list[Tensor], gradients: list[Tensor], rate: float = 0.1) -> Tensor:
    """A step of many tensors at once."""
    total = torch.zeros(())
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.sub_(rate * torch.tanh(gradient))
        total = total + parameter.square().sum()
    return total


@opwright.operator(mutates=("state", "x"))
def update_(state: dict[str, Tensor], x: Tensor, more: State) -> tuple[Tensor, Tensor]:
    """Changes a dict beside a tensor, and returns one that it changed."""
    state["a"].mul_(2).add_(more.average)
    x.copy_(torch.sigmoid(x) * state["a"] + more.square)
    return state["a"], x * 2


@opwright.operator(mutates=("state",))
def moved_(state: State, x: Tensor) -> None:
    """Changes one member of a named tuple, and returns nothing."""
    state.average.lerp_(torch.tanh(x), 0.25)


def tensors(*shapes: tuple[int, ...], seed: int = 0, gradient: bool = False) -> list[Tensor]:
    torch.manual_seed(seed)
    return [torch.randn(shape, requires_grad=gradient) for shape in shapes]


CALLS: dict[str, tuple[Any, Callable[[], tuple[Any, ...]]]] = {
    "two": (step_, lambda: (tensors((3,), (2, 4)), tensors((3,), (2, 4), seed=1))),
    "three, and another rate": (step_, lambda: (tensors((3,), (4,), (2,)), tensors((3,), (4,), (2,), seed=1), 0.5)),
    "none": (step_, lambda: ([], [])),
    "a dict": (update_, lambda: ({"a": tensors((3,))[0]}, tensors((3,), seed=2)[0], State(*tensors((3,), (3,))))),
    "a named tuple": (moved_, lambda: (State(*tensors((3,), (3,))), tensors((3,), seed=2)[0])),
}


@pytest.mark.falls_back
@pytest.mark.parametrize("name", CALLS)
def test_tensors_in_containers_change_as_in_eager(name: str) -> None:
    operator, make = CALLS[name]
    for _ in range(3):
        ours, eager = make(), make()
        held = tree_leaves(ours)
        found, expected = operator(*ours), operator.reference(*eager)
        torch.testing.assert_close((found, ours), (expected, eager))
        assert all(one is other for one, other in zip(tree_leaves(ours), held, strict=True))
    assert operator.last_rung == ("composed" if name == "none" else "cpp")


def test_a_returned_tensor_is_the_one_that_was_changed() -> None:
    _, make = CALLS["a dict"]
    state, x, more = make()
    found, _ = update_(state, x, more)
    assert found is state["a"]


def test_gradients_pass_through_changed_tensors() -> None:
    made = []
    for function in (step_, step_.reference):
        leaves = tensors((3,), (2, 4), gradient=True)
        gradients = tensors((3,), (2, 4), seed=1, gradient=True)
        parameters = [leaf * 2 for leaf in leaves]
        total = function(parameters, gradients)
        loss = total * parameters[0].exp().sum()
        made.append([total, *torch.autograd.grad(loss, [*leaves, *gradients])])
    torch.testing.assert_close(*made)


@pytest.mark.parametrize("kind", ["shared", "leaf", "twice"])
def test_what_torch_and_copies_do_not_allow_is_the_function_s(kind: str) -> None:
    made = []
    for function in (step_, step_.reference):
        parameters, gradients = tensors((3,), (3,)), tensors((3,), (3,), seed=1)
        if kind == "shared":
            parameters[1] = parameters[0][:]
        elif kind == "twice":
            parameters[1] = parameters[0]
        else:
            parameters[0].requires_grad_()
        try:
            result: Any = function(parameters, gradients)
        except RuntimeError as error:
            result = str(error)
        made.append((result, [each.detach() for each in parameters]))
    if kind == "leaf":
        assert made[0][0] == made[1][0]
    else:
        assert step_.last_rung == "composed"
    torch.testing.assert_close(made[0][1], made[1][1])


@pytest.mark.falls_back
def test_a_list_that_is_changed_itself_is_the_function_s() -> None:
    def appending(parameters: list[Tensor], x: Tensor) -> Tensor:
        parameters.append(x)
        parameters[0].add_(1)
        return x * 2

    operator, ours = opwright.operator(appending, mutates=("parameters",)), tensors((3,))
    with pytest.warns(opwright.FallbackWarning):
        operator(ours, torch.ones(3))
    assert len(ours) == 2
    torch.testing.assert_close(ours[0], tensors((3,))[0] + 1)


def test_what_holds_no_tensors_cannot_be_changed() -> None:
    with pytest.raises(UnsupportedParameter, match="mutates= names 'rate'"):
        opwright.operator(step_.reference, mutates=("rate",))


def grown_(state, x):  # no annotation says that these are tensors, and in what
    members = state.values() if isinstance(state, dict) else state
    for member in members:
        member.mul_(0.9).add_(x.mean(0))
    return x - sum(members)


@pytest.mark.parametrize("container", [dict, list, tuple])
def test_containers_without_annotations_have_kernels(container: Any) -> None:
    operator = opwright.operator(mutates=("state",))(grown_)
    states = [[torch.ones(4), torch.zeros(4)] for _ in range(2)]
    given = [dict(enumerate(state)) if container is dict else container(state) for state in states]
    for _ in range(3):
        x = tensors((3, 4))[0]
        torch.testing.assert_close(operator(given[0], x), grown_(given[1], x))
        torch.testing.assert_close(*states)
        assert operator.last_rung == "cpp"
    assert operator.on("cpp")(given[0], x).shape == (3, 4)
    torch.testing.assert_close(operator(torch.ones(2, 4), x), grown_(torch.ones(2, 4), x))
