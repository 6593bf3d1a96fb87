"""Parameters whose annotations do not tell what they hold: each call shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import pytest
import torch
from torch import Tensor

from opwright.api.operator import Operator
from tests.operator.against_eager import assert_as_eager
from tests.quiet_settings import quiet_settings
from tests.suite.nights import mostly_at_night

if TYPE_CHECKING:
    from nowhere import Image

pytestmark = [
    pytest.mark.built_together,
    pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning"),  # torch.func.jvp's own
]
Item = TypeVar("Item")
ONES = torch.ones(2, 3)


def bare(x, y):
    return torch.sin(x) * y + 1


def anything(x: Any, y: Any) -> Any:
    return torch.sin(x) * y + 1


def unresolvable(x: Image, y: Image) -> Image:
    return torch.sin(x) * y + 1


def of_a_type(x: Item, y: Item) -> Item:
    return torch.sin(x) * y + 1


def of_numpy(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return torch.sin(x) * y + 1


def mixed(x: Tensor, y) -> Tensor:
    return torch.sin(x) * y + 1


def wrongly(x: set[Tensor], y: dict) -> set[Tensor]:
    return torch.sin(x) * y + 1


def random(*shape, gradient=True):
    return torch.randn(shape, generator=torch.Generator().manual_seed(len(shape))).requires_grad_(gradient)


REFERENCES = mostly_at_night([bare, unresolvable, mixed, anything, of_a_type, of_numpy, wrongly], by_day=1)


@pytest.mark.parametrize("order", mostly_at_night([1, 2], by_day=1))
@pytest.mark.parametrize("reference", REFERENCES)
def test_a_parameter_is_what_each_call_shows(reference, order):
    operator = Operator(reference, name="shown", settings=quiet_settings(optimized=False))
    x = random(2, 3)
    for y in (random(3), 2.0, 3, True, random(2, 3, gradient=False), -0.5, random(3), 7):
        assert_as_eager(operator, x, y, order=order)


@pytest.mark.parametrize("reference", mostly_at_night([bare, unresolvable], by_day=1))
def test_transforms(reference):
    operator = Operator(reference, name="shown", settings=quiet_settings(optimized=False))
    x, y = random(2, 3, gradient=False), random(3, gradient=False)
    for transformed in (
        lambda f: torch.func.jvp(f, (x, y), (x, y)),
        lambda f: torch.vmap(f, (0, None))(x, y),
        lambda f: torch.func.grad(lambda x, y: f(x, y).sum(), (0, 1))(x, y),
        lambda f: f(x, y=y),
    ):
        torch.testing.assert_close(transformed(operator), transformed(reference))


def chosen(x, mode: Literal["double", "halve"] = "double", dtype=None, weights=(1.0, ONES), *rest, shift=0.0, **named):
    y = x * (2 if mode == "double" else 0.5) * weights[0] + weights[1]
    for other in (*rest, *named.values()):
        y = y * other
    return {"y": y + shift, "sizes": len(rest), "named": dict.fromkeys(named, y * 1)} | (
        {} if dtype is None else {"z": y.to(dtype)}
    )


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((), {}),
        (("halve",), {}),
        (("halve", torch.float64), {"shift": 3.0}),
        ((), {"weights": [2, random(3)]}),
        (("double", None, (1.0, ONES), random(3), 2.0), {"a": random(2, 1), "b": True}),
        ((), {"c": 2.5}),
    ],
)
def test_defaults_and_arguments_of_any_number(args, kwargs):
    operator = Operator(chosen, settings=quiet_settings(optimized=False))
    x = random(2, 3)
    for _ in range(2):
        result, expected = operator(x, *args, **kwargs), chosen(x, *args, **kwargs)
        torch.testing.assert_close(result, expected)
        (gradient,) = torch.autograd.grad(result["y"].sum(), x)
        torch.testing.assert_close(gradient, torch.autograd.grad(expected["y"].sum(), x)[0])


def sum_of_many(*tensors, scale=1.0):
    return sum(tensors) * scale


def test_the_number_of_arguments_may_differ_from_call_to_call():
    operator = Operator(sum_of_many, settings=quiet_settings(optimized=False))
    for count in (1, 3, 2, 3):
        given = [random(3) for _ in range(count)]
        torch.testing.assert_close(operator(*given, scale=2.0), sum_of_many(*given, scale=2.0))
        assert operator.last_rung == "cpp"


def changes(x, by, scale: float = 1.0) -> None:
    x.mul_(by * scale)


@pytest.mark.parametrize("by", [2.0, torch.full((3,), 3.0)])
def test_what_changes_need_not_be_annotated(by):
    operator = Operator(changes, mutates=("x",), settings=quiet_settings(optimized=False))
    x, y = torch.ones(3), torch.ones(3)
    for _ in range(2):
        assert operator(x, by, scale=0.5) is changes(y, by, scale=0.5) is None
        assert operator.last_rung == "cpp"
    torch.testing.assert_close(x, y)


def with_an_object(x, size, device):
    return torch.ones(size, device=device) * x


def test_what_kernels_are_not_specialised_to_is_given_to_the_function():
    operator = Operator(with_an_object, settings=quiet_settings(optimized=False))
    for size in (torch.Size([2, 3]), torch.Size([4, 3])):
        arguments = torch.ones(3), size, torch.device("cpu")
        torch.testing.assert_close(operator(*arguments), with_an_object(*arguments))
