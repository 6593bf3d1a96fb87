"""References are carried as they were written, with what they reach; what cannot be carried is refused by name."""

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn, sigmoid

import opwright
from opwright.deployment.faithful import refuse_unfaithful
from opwright.deployment.reference_source import reference_module
from opwright.errors import WheelUnsupported

SCALE = 1 / 3
BOUNDS = (0, (math.inf, "a"), torch.float16)
TABLE = {"a": 1}
SWITCH = [2.0]
Pair = tuple[torch.Tensor, torch.Tensor]


def inner(x):
    return x * SCALE


@opwright.operator(samples=opwright.shapes("A", A=3))
def decorated(x: torch.Tensor) -> torch.Tensor:
    # A comment of the user's.
    return inner(x) + BOUNDS[0]


def everything(x: Tensor, y: Tensor | None = None, scale: float = SCALE) -> Pair:
    def local(z):
        return F.relu(z) * math.pi

    return decorated(sigmoid(x)) + local(x) * torch.ones(2).sum() * scale, nn.functional.elu(x)


def calls_itself(x: torch.Tensor, n: int = 2) -> torch.Tensor:
    return x if n == 0 else calls_itself(x, n - 1)


def closing(scale):
    def closed(x: torch.Tensor) -> torch.Tensor:
        return x * scale

    return closed


def with_table(x: torch.Tensor) -> torch.Tensor:
    return x * TABLE["a"]


def with_object(x: torch.Tensor) -> torch.Tensor:
    return MODULE(x)


def with_unknown(x: torch.Tensor) -> torch.Tensor:
    return x * nothing_like_it  # noqa: F821


def switched(x: torch.Tensor) -> torch.Tensor:
    return x * _switch()


def _switch(values=SWITCH):
    return values.pop()


MODULE = nn.Linear(2, 2)
renamed = inner
unnamed: Callable[[Tensor], Tensor] = lambda x: x  # noqa: E731


def with_renamed(x: torch.Tensor) -> torch.Tensor:
    return renamed(x)


def run(text, name):
    namespace = {}
    exec(text, namespace)
    return namespace[name]


def test_a_function_is_carried_with_all_it_reaches():
    text = reference_module([everything])
    x = torch.randn(2)
    first = sigmoid(x) / 3 + F.relu(x) * math.pi * 2 / 3
    torch.testing.assert_close(run(text, "everything")(x), (first, F.elu(x)))
    assert "opwright" not in text
    assert "    # A comment of the user's.\n" in text
    assert "from torch import Tensor\n" in text
    assert "Pair" in text.partition("def everything")[2]  # in an annotation, which is text
    assert text == reference_module([everything])


@pytest.mark.parametrize("function", [decorated.reference, calls_itself, closing(2.5)], ids=lambda f: f.__name__)
def test_it_computes_what_it_computed(function):
    x = torch.randn(3)
    assert torch.equal(run(reference_module([function]), function.__name__)(x), function(x))


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (with_table, "with_table uses TABLE, a value of type dict"),
        (with_object, "with_object uses MODULE, a value of type Linear"),
        (with_unknown, "with_unknown uses nothing_like_it, which is not defined"),
        (with_renamed, "with_renamed calls inner by another name, renamed"),
        (unnamed, "<lambda> is not defined by a statement of its own"),
        (MODULE, "Linear is no function that is written in Python"),
        (closing(torch.ones(2)), "closed uses scale, a value of type Tensor"),
    ],
)
def test_what_cannot_be_carried_is_refused_by_name(function, words):
    with pytest.raises(WheelUnsupported) as refused:
        reference_module([function])
    assert words in str(refused.value)
    assert "so it cannot be carried in a wheel\nhint: use numbers" in str(refused.value)


def test_one_name_for_two_things_is_refused():
    with pytest.raises(WheelUnsupported, match="mean different things by scale"):
        reference_module([closing(2.0), everything_by_another_scale()])


def everything_by_another_scale():
    scale = 3.0

    def another(x: torch.Tensor) -> torch.Tensor:
        return x * scale

    return another


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def decorated(x):\n    return x * 2", "gives other results"),
        ("def decorated(x):\n    return (x / 3).double()", "gives other results"),
        ("def decorated(x):\n    return x.nothing", "raises AttributeError"),
    ],
)
def test_a_text_that_computes_something_else_is_refused(text, words):
    refuse_unfaithful(reference_module([decorated.reference]), decorated, [torch.float32])
    with pytest.raises(WheelUnsupported, match=words):
        refuse_unfaithful(text, decorated, [torch.float32])
