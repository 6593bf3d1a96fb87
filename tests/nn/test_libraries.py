"""Modules of installed libraries: much code around them, of which a forward runs little."""

from __future__ import annotations

import functools
import importlib
import itertools
import os
import random
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._pytree import _deregister_pytree_node, register_pytree_node

import opwright
from opwright.api.operator import Operator
from opwright.binding.variants import states
from opwright.operators import stages
from opwright.tracing.effects import owners
from opwright.tracing.outside import ran
from opwright.tracing.outside.ran import Codes, RanMore
from tests.suite.nights import mostly_at_night

_LIBRARY = '''
import dataclasses, io, itertools, random, time
import torch
from torch import nn

SCALE, NAMES, LOG, REGISTERED, SUBCLASSES = 2.0, ["scale"], io.StringIO(), set(), []
ACTIVATIONS = {
    "tanh": lambda x: torch.tanh(x),
    "log": lambda x: x * time.time(),
}

@dataclasses.dataclass
class Output:
    value: torch.Tensor
    def __post_init__(self):
        if type(self) not in REGISTERED:
            REGISTERED.add(type(self))
        if not str(type(self.value)).startswith("<class 'torch."):
            raise TypeError("not a tensor")

class Layer(nn.Module):
    """Checks, and calls its forward."""
    checks = True
    def __init_subclass__(cls, **kwargs):
        SUBCLASSES.append(cls.__name__)
        super().__init_subclass__(**kwargs)
    def __call__(self, *args, **kwargs):
        if self.checks and len(args) != 1:
            raise ValueError("one argument")
        return super().__call__(*args, **kwargs)
    def save(self, scale):
        LOG.write(f"{time.time()} {scale} {open(self.name)}")
    def again(self):
        return type(self)(self.inner.in_features)

def scaled(gradient):
    return gradient * FACTORS[0]

FACTORS = [3.0]

class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.sin(x)
    @staticmethod
    def backward(ctx, gradient):
        return scaled(gradient)

class OwnBackward(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))
    def forward(self, x):
        return Scale.apply(x * self.weight)

class Hooked(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))
    def forward(self, x):
        y = x * self.weight
        y.register_hook(scaled)
        return torch.sin(y)

class Catching(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
    def forward(self, x):
        try:
            x.sum().item()
            scale = 2.0
        except Exception:
            scale = 100.0
        return torch.tanh(self.inner(x)) * scale

class Outputs(dict):
    """As models of transformers return, among them such as a loss does not use."""

def taken_apart(outputs):
    return list(outputs.values()), list(outputs)

class WithOutputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
    def forward(self, x):
        y = self.inner(x)
        return Outputs(value=y.tanh(), square=y.square())

class OfWhichNothingIsNoted(WithOutputs):
    pass

class Block(Layer):
    def __init__(self, size=4):
        super().__init__()
        self.inner, self.activation, self.offset = nn.Linear(size, size), "tanh", 0.5
    def forward(self, x):
        name = NAMES[0]
        scale = getattr(self, name, SCALE)
        return ACTIVATIONS[self.activation](self.inner(x)) * scale + self.offset

class Model(Layer):
    def __init__(self, prints=False):
        super().__init__()
        self.blocks, self.prints, self.kinds = nn.ModuleList([Block(), Block()]), prints, {Block: 3.0}
    def forward(self, x):
        for block in self.blocks:
            assert type(block) == Block and type(block) in self.kinds and type(block).__name__ == "Block"
            x = block(x) * self.kinds[type(block)]
        if self.prints:
            print("prints", end="")
        return Output(x).value

class Doing(nn.Module):
    """Does something that is seen outside, which kernels would not do."""
    def __init__(self, effect):
        super().__init__()
        self.weight, self.effect = nn.Parameter(torch.ones(4)), effect
    def forward(self, x):
        factor = getattr(self, self.effect)()
        return torch.tanh(x * self.weight) * (1.0 if factor is None else factor)
    def counts(self):
        global COUNT
        COUNT += 1
    def keeps(self):
        KEPT.append(len(KEPT))
    def takes(self):
        return next(TAKEN)
    def prints(self):
        print("printed")
    def draws(self):
        return random.random()
    def seeds(self):
        torch.manual_seed(3)
        return torch.rand(4)

def told():
    return COUNT, list(KEPT), next(TAKEN)

COUNT, KEPT, TAKEN = 0, [], itertools.count()

class LearnedOnce(Model):
    pass
'''


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    folder = tmp_path / "lib" / "site-packages"
    monkeypatch.setattr(owners, "FOLDERS", (*owners.FOLDERS, f"{folder}{os.sep}"))
    folder.mkdir(parents=True)
    (folder / "library_of_layers.py").write_text(textwrap.dedent(_LIBRARY))
    sys.path.insert(0, str(folder))
    try:
        torch.manual_seed(0)
        yield importlib.import_module("library_of_layers")
    finally:
        sys.path.remove(str(folder))
        del sys.modules["library_of_layers"]


def _agree(model: nn.Module, served: nn.Module) -> None:
    """Results and gradients of both, which share everything."""
    x, parameters = torch.randn(3, 4), list(model.parameters())
    results = [each(x) for each in (model, served)]
    torch.testing.assert_close(results[1], results[0], rtol=1e-5, atol=1e-5)
    gradients = [torch.autograd.grad((result / 100).sin().sum(), parameters) for result in results]
    torch.testing.assert_close(gradients[1], gradients[0], rtol=1e-5, atol=1e-5)


def _second_derivatives(model: nn.Module) -> tuple[torch.Tensor, ...]:
    parameters = list(model.parameters())
    first = torch.autograd.grad(model(torch.ones(3, 4)).square().sum(), parameters, create_graph=True)
    return torch.autograd.grad(sum(each.square().sum() for each in first), parameters)


def test_a_model_is_served_as_a_whole_and_its_subclasses_are_not_told(library: ModuleType) -> None:
    model = library.Model()
    library.Output(torch.ones(1))  # which registers it: a call that does is no trace's
    known = list(library.SUBCLASSES)
    served = opwright.module(model)
    _agree(model, served)
    assert served.last_rung == "cpp"
    assert known == library.SUBCLASSES


def test_what_a_model_runs_is_learned_without_a_trace(library: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    traced, trace_joint = [], stages.trace_joint

    def counted(reference: Callable[..., Any], specs: Any) -> Any:
        traced.append(reference.__name__)
        return trace_joint(reference, specs)

    monkeypatch.setattr(stages, "trace_joint", counted)
    library.Output(torch.ones(1))
    served = opwright.module(library.LearnedOnce())
    served(torch.randn(3, 4)).sum().backward()
    assert traced == ["learnedonce"]
    assert served.last_rung == "cpp"


def _changed(name: str, value: Any) -> Callable[[ModuleType, nn.Module], None]:
    return lambda library, model: setattr(library, name, value)


CHANGES: dict[str, Callable[[ModuleType, Any], object]] = {
    "a global": _changed("SCALE", 5.0),
    "what a computed name leads to": lambda library, model: setattr(model.blocks[1], "scale", 7.0),
    "the computed name": lambda library, model: library.NAMES.__setitem__(0, "offset"),
    "a function in a table": lambda library, model: library.ACTIVATIONS.update(tanh=torch.sigmoid),
    "an attribute": lambda library, model: setattr(model.blocks[0], "offset", -1.0),
    "a class": lambda library, model: setattr(library.Block, "scale", 11.0),
    "a default in a class": lambda library, model: setattr(library.Layer, "checks", False),
    "what the forward runs": lambda library, model: setattr(library.Block, "forward", lambda self, x: self.inner(x)),
}


@pytest.mark.parametrize("change", mostly_at_night(CHANGES, by_day=[*CHANGES][::4]))
def test_what_the_code_that_runs_reads_is_compared(library: ModuleType, change: str) -> None:
    model = library.Model()
    library.Output(torch.ones(1))
    served = opwright.module(model)
    _agree(model, served)
    CHANGES[change](library, model)
    _agree(model, served)
    assert served.last_rung == "cpp"


def test_code_that_a_change_makes_run_is_searched(library: ModuleType) -> None:
    model = library.Block()
    served = opwright.module(model)
    _agree(model, served)
    library.ACTIVATIONS["other"] = lambda x: torch.sin(x) * library.SCALE
    model.activation = "other"
    _agree(model, served)
    library.SCALE = 9.0
    _agree(model, served)
    assert served.last_rung == "cpp"


@pytest.mark.falls_back
@pytest.mark.parametrize("kind", mostly_at_night(["Hooked", "OwnBackward"], by_day=1))
def test_what_runs_in_the_backward_pass_is_searched_too(library: ModuleType, kind: str) -> None:
    model = getattr(library, kind)()
    served = opwright.module(model)
    for factor in (3.0, 5.0):
        library.FACTORS[0] = factor
        for _ in range(2):
            _agree(model, served)
            assert served.last_rung == "cpp"
        first, second = (_second_derivatives(each) for each in (model, served))
        torch.testing.assert_close(first, second)


@pytest.mark.falls_back
def test_what_a_trace_cannot_do_is_not_caught(library: ModuleType) -> None:
    served = opwright.module(library.Catching())
    for _ in range(2):
        _agree(served._written(), served)
    assert served.last_rung == "composed"


@pytest.fixture
def outputs(library: ModuleType) -> Iterator[type]:
    together = lambda values, names: library.Outputs(zip(names, values, strict=True))  # noqa: E731
    register_pytree_node(library.Outputs, library.taken_apart, together)
    yield library.Outputs
    _deregister_pytree_node(library.Outputs)


def test_the_gradients_of_some_outputs_in_a_container_are_kernels(
    library: ModuleType, outputs: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = library.WithOutputs()
    served = opwright.module(model)
    for name in ("value", "square", "value"):
        x = torch.randn(3, 4)
        found, right = (torch.autograd.grad(each(x)[name].sum(), list(model.parameters())) for each in (served, model))
        torch.testing.assert_close(found, right)
        assert served.last_rung == "cpp"
    monkeypatch.setattr(Operator, "_derive", None)  # nothing is derived again
    for name in ("value", "square"):
        torch.autograd.grad(served(torch.randn(3, 4))[name].sum(), list(model.parameters()))


@pytest.mark.falls_back
def test_a_backward_pass_that_runs_other_functions_is_not_derived_at_each_step(
    library: ModuleType, outputs: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def keeping_to(codes: Codes, searched: Codes, number: int, function: Callable[..., Any]) -> Callable[..., Any]:
        if not function.__name__.endswith("_backward"):
            return ran.keeping_to(codes, searched, number, function)
        tried.append(function.__name__)

        @functools.wraps(function)
        def running_more(*arguments: Any) -> Any:
            raise RanMore(codes)

        return running_more

    monkeypatch.setattr(states, "keeping_to", keeping_to)
    model = library.OfWhichNothingIsNoted()
    served = opwright.module(model)
    for _ in range(3):
        x = torch.randn(3, 4)
        found, right = (
            torch.autograd.grad(each(x)["value"].sum(), list(model.parameters())) for each in (served, model)
        )
        torch.testing.assert_close(found, right)
    assert tried == ["ofwhichnothingisnoted_backward"]


@pytest.mark.falls_back
def test_what_cannot_be_compared_is_refused_where_it_runs(library: ModuleType) -> None:
    model = library.Block()
    served = opwright.module(model)
    served(torch.randn(3, 4))
    assert served.last_rung == "cpp"
    model.activation = "log"
    served(torch.randn(3, 4))
    assert served.last_rung == "composed"


@pytest.mark.falls_back
def test_parts_of_classes_with_calls_of_their_own(library: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    model = library.Model(prints=True)
    known = list(library.SUBCLASSES)
    served = opwright.module(model)
    for _ in range(3):
        _agree(model, served)
    assert known == library.SUBCLASSES
    told = str(served.explain()).splitlines()
    assert [line.split()[1] for line in told if "kernels: 1 forward" in line] == ["Block", "Block"], "\n".join(told)
    assert "prints" in capsys.readouterr().out


@pytest.mark.falls_back
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("effect", ["counts", "keeps", "takes", "draws", "prints", "seeds"])
def test_what_happens_outside_happens_once_a_call(
    library: ModuleType, effect: str, inside: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    def happened(make: Callable[[nn.Module], Any]) -> Any:
        library.COUNT, library.TAKEN, library.KEPT[:] = 0, itertools.count(), []
        doing = library.Doing(effect)
        module = make(nn.Sequential(Holding(doing), nn.Tanh()) if inside else doing)
        torch.manual_seed(1)
        random.seed(1)
        results = [module(torch.ones(4)) for _ in range(3)]
        return results, library.told(), random.random(), torch.rand(1), capsys.readouterr().out

    expected, found = happened(lambda module: module), happened(opwright.module)
    torch.testing.assert_close(found[0], expected[0])
    assert found[1:] == expected[1:]


class Holding(nn.Module):
    """A module of the user's around one of a library."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> Any:
        return self.inner(x) * 2


@pytest.mark.falls_back
def test_a_part_makes_and_asks_like_its_module(library: ModuleType) -> None:
    class Asking(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block, self.told = library.Block(), []

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            kind: Any = type(self.block)
            self.told.append((kind == library.Block, hash(kind) == hash(library.Block), kind in {library.Block}))
            self.told.append((type(self.block.again()).__mro__, repr(kind), kind != nn.Linear))
            with pytest.raises(ValueError, match="one argument"):
                self.block(x, x)
            return self.block(x)

    asking = Asking()
    served = opwright.module(asking)
    served(torch.randn(3, 4))
    by_parts = served.told[-2:]
    asking.told.clear()
    asking(torch.randn(3, 4))
    assert asking.told == by_parts


@pytest.mark.falls_back
@pytest.mark.parametrize(("line", "opens"), [("type(x) is Foo", False), ("type(x) == Foo or x is None", True)])
def test_only_comparing_types_by_identity_closes_a_module(line: str, opens: bool) -> None:
    space: dict[str, Any] = {"Foo": nn.Linear, "nn": nn, "__name__": "written_here"}
    exec(
        textwrap.dedent(f"""
            class Comparing(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.inner, self.seen = nn.Sequential(nn.Linear(4, 4), nn.Tanh()), []
                def forward(self, inp):
                    x = self.inner[0]
                    self.seen.append({line})
                    return self.inner(inp)
        """),
        space,
    )
    served = opwright.module(space["Comparing"]())
    served(torch.randn(3, 4))
    assert ("its parts" in str(served.explain()).splitlines()[0]) is opens
    assert served.seen == [True]
