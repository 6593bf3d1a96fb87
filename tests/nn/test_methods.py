"""Methods that a forward calls which runs as written: each is served, unless it may do more than compute."""

from __future__ import annotations

import collections
import copy
import functools
import gc
import itertools
import random
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import opwright
from opwright.nn.parts.methods import methods_of
from tests.nn.against_plain import compare

pytestmark = pytest.mark.falls_back


class Autoencoder(nn.Module):
    """Methods around a forward that looks at values, one of which calls two others."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer, self.scale = nn.Linear(8, 8), nn.Linear(8, 8), 0.5
        self.drop = nn.Dropout(0.25)

    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 1e9:
            return x
        mean, spread = self.encode(x)
        return self.decode(mean + spread) * 2.0

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.drop(self.inner(x).tanh() * self.scale + x)
        return y, y.exp().log1p()

    def decode(self, x: Tensor) -> Tensor:
        return self.squashed(self.outer(x)) + self.bias

    def squashed(self, x: Tensor) -> Tensor:
        return torch.sigmoid(x) * x.sin()

    @property
    def bias(self) -> float:
        return self.scale * 3.0


class Others(nn.Module):
    """Methods that may do more than compute, which run as written."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.calls, self.seen = nn.Linear(8, 8), 0, list[int]()

    def forward(self, x: Tensor, depth: int = 0) -> Tensor:
        if depth or x.sum() > 1e9:
            return self.inner(x).cos()
        y = self.counts(x) + self.calls_itself(x) + self.calls_forward(x) + self.hands_itself_on(x)
        y = y + self.calls_super(x) + sum(self.yields(x)) + self.keeps(x) * len(self.seen)
        return y + self.static(x) + self.of_class(x) + self.closes(x) + self.renamed(x) + self.prints(x)

    def counts(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x * self.calls

    def calls_itself(self, x: Tensor) -> Tensor:
        return self(x, 1).exp()

    def calls_forward(self, x: Tensor) -> Tensor:
        return self.forward(x, 1).exp()

    def hands_itself_on(self, x: Tensor) -> Tensor:
        return _call(self, x).exp()

    def calls_super(self, x: Tensor) -> Tensor:
        return super().requires_grad_(True).inner(x).exp()  # type: ignore[no-any-return]

    def yields(self, x: Tensor) -> Iterator[Tensor]:
        yield self.inner(x).exp()

    def keeps(self, x: Tensor) -> Tensor:
        self.seen.append(1)
        return self.inner(x).exp()

    @staticmethod
    def static(x: Tensor) -> Tensor:
        return x.exp() * 2.0

    @classmethod
    def of_class(cls, x: Tensor) -> Tensor:
        return x.exp() * len(cls.__name__)

    def closes(self, x: Tensor) -> Tensor:
        return (lambda: self(x, 1) * 2.0)()  # type: ignore[no-any-return]

    def renamed(self, x: Tensor) -> Tensor:
        this = self
        return this(x, 1) * 2.0  # type: ignore[no-any-return]

    def prints(self, x: Tensor) -> Tensor:
        print(end="")
        return x.exp() * 3.0


def _call(module: nn.Module, x: Tensor) -> Any:
    return module(x, 1)


class Early(Autoencoder):
    """A base's methods, one of them replaced."""

    def squashed(self, x: Tensor) -> Tensor:
        return x.cos() * 4.0


def told(served: Any) -> dict[str, str]:
    lines = [line.split(None, 1) for line in str(served.explain()).splitlines()]
    return {line[0]: line[-1] for line in lines}


@pytest.mark.parametrize("kind", [Autoencoder, Early, Others])
def test_steps_are_those_of_the_module(kind: type[nn.Module]) -> None:
    torch.manual_seed(0)
    compare(kind(), [torch.randn(6, 8, requires_grad=True)], steps=3)


def test_the_tree_tells_what_serves_methods() -> None:
    served, x = opwright.module(Autoencoder()), torch.randn(6, 8, requires_grad=True)
    served(x).sum().backward()
    lines = told(served)
    assert lines["encode()"].startswith("kernels: ")
    assert lines["decode()"].startswith("kernels: ")
    assert "squashed()" not in lines  # it is a part of another one


def test_methods_that_may_do_more_than_compute_are_not_served() -> None:
    assert set(methods_of(Autoencoder)) == {"encode", "decode", "squashed"}
    assert set(methods_of(Others)) == {"keeps", "prints"}
    served, x = opwright.module(Others()), torch.randn(6, 8, requires_grad=True)
    served(x)
    assert not any(line.startswith("kernels: ") for name, line in told(served).items() if name.endswith("()"))


def test_what_a_method_reads_is_followed() -> None:
    plain = Autoencoder().eval()
    served, x = opwright.module(plain), torch.randn(6, 8)
    for change in (
        lambda: None,
        lambda: setattr(plain, "scale", 2.0),
        lambda: setattr(plain, "inner", nn.Linear(8, 8)),
        lambda: plain.train(),
        lambda: setattr(plain, "squashed", lambda x: x * 5.0),
        lambda: setattr(plain, "encode", lambda x: (x, x * 2.0)),
        lambda: setattr(Autoencoder, "decode", lambda self, x: self.outer(x) * 7.0),
    ):
        before = Autoencoder.decode
        try:
            change()
            for _ in range(2):
                torch.manual_seed(0)
                expected = plain(x)
                torch.manual_seed(0)
                torch.testing.assert_close(served(x), expected)
        finally:
            Autoencoder.decode = before  # type: ignore[method-assign]


def test_the_user_s_choice_of_parts_leaves_methods_as_written() -> None:
    served = opwright.module(Autoencoder(), depth=1)
    served(torch.randn(6, 8))
    assert "encode()" not in told(served)


def test_served_methods_keep_nothing_alive() -> None:
    served = opwright.module(Autoencoder())
    served(torch.randn(6, 8))
    inner = weakref.ref(served.inner)
    copy.deepcopy(served)
    del served
    gc.collect()
    assert inner() is None


class Filling(nn.Module):
    """Methods that change what they are given, or give it back."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.inner, self.way, self.table = nn.Linear(8, 8), way, dict[str, Tensor]()

    def forward(self, x: Tensor) -> Any:
        print(end="")
        outputs: list[Tensor] = [x]
        named: dict[str, Tensor] = {"x": x}
        match self.way:
            case "fills":
                y = self.fills(x, outputs, named)
            case "empties":
                y = self.empties(x, outputs, named)
            case "gives back":
                y, given = self.gives_back(x, outputs)
                assert given is outputs
            case _:
                y = self.fills_its_own(x, self.table)
        return y, len(outputs), len(named), len(self.table)

    def fills(self, x: Tensor, outputs: list[Tensor], named: dict[str, Tensor]) -> Tensor:
        named["k"] = x * 2
        outputs.append(x)
        return self.inner(x).tanh()

    def empties(self, x: Tensor, outputs: list[Tensor], named: dict[str, Tensor]) -> Tensor:
        return self.inner(outputs.pop() * named.pop("x")).tanh()

    def gives_back(self, x: Tensor, outputs: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        return self.inner(x).tanh(), outputs

    def fills_its_own(self, x: Tensor, table: dict[str, Tensor]) -> Tensor:
        table["last"] = x
        return self.inner(x).tanh()


@pytest.mark.parametrize("way", ["fills", "empties", "gives back", "fills its own"])
def test_containers_that_a_method_is_given_are_the_caller_s(way: str) -> None:
    compare(Filling(way), [torch.randn(6, 8, requires_grad=True)], steps=3)


class Handing:
    """A decorator that is a class: its function gets `self` past what the code of a method shows."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __get__(self, held: Any, kind: Any = None) -> Any:
        return self if held is None else lambda *args: self.function(held, *args)


class Escaping(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.helper = nn.Linear(8, 8), self.plain

    def forward(self, x: Tensor, again: bool = False) -> Tensor:
        if again:
            return self.inner(x)
        print(end="")
        return self.by_descriptor(x) + self.by_bound(x) + self.by_names(x)

    def by_descriptor(self, x: Tensor, again: bool = False) -> Tensor:
        return x.cos() if again else self.handed(x).exp()  # type: ignore[no-any-return]

    def by_bound(self, x: Tensor, again: bool = False) -> Tensor:
        return x.cos() if again else self.helper.__self__(x, True).exp()  # type: ignore[no-any-return]

    def by_names(self, x: Tensor, again: bool = False) -> Tensor:
        return x.cos() if again else vars()["self"](x, True).exp()  # type: ignore[no-any-return]

    def plain(self, x: Tensor) -> Tensor:
        return x

    @Handing
    def handed(self, x: Tensor) -> Tensor:
        return self(x, True)  # type: ignore[no-any-return]


class Renaming(nn.Module):
    """A forward that exchanges itself while it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        print(end="")
        self.forward = lambda x: x * 3.0  # type: ignore[method-assign]
        return self.encode(x)

    def encode(self, x: Tensor) -> Tensor:
        return self.inner(x).tanh()


@pytest.mark.parametrize("kind", [Escaping, Renaming])
def test_another_self_does_not_reach_the_forward(kind: type[nn.Module]) -> None:
    compare(kind(), [torch.randn(6, 8, requires_grad=True)], steps=3)


COUNTING: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "an iterator": (lambda: itertools.count(1), lambda held: next(held)),
    "a counter": (lambda: collections.Counter(), lambda held: held.update(["a"]) or held["a"]),
    "an array": (lambda: np.zeros(2), lambda held: held.__setitem__(0, held[0] + 1.0) or float(held[0])),
    "a generator of numbers": (lambda: random.Random(0), lambda held: held.random()),
    "a namespace": (lambda: types.SimpleNamespace(n=0), lambda held: setattr(held, "n", held.n + 1) or held.n),
    "a partial": (lambda: functools.partial(len), lambda held: held.__dict__.update(n=1) or len(held.__dict__)),
    "a list of arrays": (lambda: [np.zeros(2)], lambda held: held[0].__iadd__(1.0) is None or float(held[0][0])),
}


@pytest.mark.parametrize("in_method", [False, True], ids=["forward", "method"])
@pytest.mark.parametrize("name", COUNTING)
def test_objects_of_libraries_in_attributes_change_once_at_each_call(name: str, in_method: bool) -> None:
    make, change = COUNTING[name]

    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.held, self.inner = make(), nn.Linear(8, 8)

        def forward(self, x: Tensor) -> Tensor:
            if in_method:
                print(end="")
                return self.counted(x)
            return self.inner(x) * change(self.held)

        def counted(self, x: Tensor) -> Tensor:
            return self.inner(x) * change(self.held)

    plain, x = Counting(), torch.randn(6, 8)
    served, state = opwright.module(Counting()), copy.deepcopy(plain.state_dict())
    served.load_state_dict(state)
    for _ in range(3):
        torch.testing.assert_close(served(x), plain(x))


def test_attributes_and_hooks_of_parameters_are_the_module_s() -> None:
    class Noting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.calls = nn.Linear(8, 8), nn.Parameter(torch.ones(8))

        def forward(self, x: Tensor) -> Tensor:
            self.calls.n = getattr(self.calls, "n", 0) + 1  # type: ignore[attr-defined]
            self.calls.register_hook(lambda gradient: gradient * 2.0)
            return self.inner(x) * self.calls * self.calls.n  # type: ignore[attr-defined]

    torch.manual_seed(0)
    compare(Noting(), [torch.randn(6, 8, requires_grad=True)], steps=3)
