"""Every change of what a forward reads gives another state, or other tensors, in Python and in C++."""

from __future__ import annotations

import enum
import functools
import logging
import pathlib
import sys
import types
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parametrizations

from opwright.binding.variants.states import Outside
from opwright.tracing.outside.reach import reads_of_module


class Kind(enum.Enum):
    """Which activation is used."""

    OWN = "own"
    PARTIAL = "partial"


@dataclass
class Scaling:
    """An object inside of a configuration."""

    factor: float = 2.0


class Configuration:
    """An object with attributes, a property and a method that asks by name, such as libraries of models have."""

    def __init__(self) -> None:
        self.eps = 0.5
        self.rope = {"theta": 3.0}
        self.scaling = Scaling()

    @property
    def doubled(self) -> float:
        """A value that is computed."""
        return self.eps * 2

    def get(self, name: str) -> Any:
        """An attribute by its name."""
        return self.eps if name == "eps" else None


class Helper:
    """Leads to the module that owns it, and to one of its parameters."""

    def __init__(self, owner: Gated) -> None:
        self.owner = weakref.ref(owner)
        self.weight = owner.weight
        self.times = 3

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Scale."""
        return x * self.weight * self.times


class Scale(nn.Module):
    """A module inside."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scale."""
        return x * self.weight


class Gated(nn.Module):
    """Reads its state in all the ways that models of others do."""

    def __init__(self) -> None:
        super().__init__()
        self.config = Configuration()
        self.weight = nn.Parameter(torch.randn(4))
        self.weight.gain = 1.0  # type: ignore[attr-defined]
        self.register_buffer("shift", torch.randn(4))
        self.kind = Kind.OWN
        self.own, self.partial = nn.Tanh(), functools.partial(functional.gelu, approximate="tanh")
        self.inner = Scale()
        self.run = self.inner.forward
        self.helper = Helper(self)
        self.more = [Scale()]
        self.named = {"in": self.inner}
        self.plain = torch.ones(4)
        self.logger, self.path, self.stream = logging.getLogger(__name__), pathlib.Path("/"), sys.stdout

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute."""
        y = self.run(x) + self.helper(x) * self.config.eps + self.config.doubled
        y = self.own(y) if self.kind is Kind.OWN else self.partial(y)
        y = self.more[0](y) + self.plain + self.shift + self.named["in"](x) * self.config.scaling.factor
        y = functional.dropout(y, 0.0, self.training) if self.training else y * 2
        y = y * self.weight.gain
        return y * self.config.get("eps") * self.config.rope["theta"]


Change = Callable[[Gated], Any]


def _set(path: str, value: Any) -> Change:
    """A change of an attribute, by its dotted name; a function makes the value from the module."""
    *way, name = path.split(".")

    def change(module: Gated) -> None:
        holder = functools.reduce(getattr, way, module)
        setattr(holder, name, value(module) if isinstance(value, types.LambdaType) else value)

    return change


SEEN: dict[str, Change] = {
    "a number of a configuration": _set("config.eps", 0.25),
    "a number of an object inside of it": _set("config.scaling.factor", 7.0),
    "a member of a dict inside of it": lambda m: m.config.rope.update(theta=5.0),
    "another configuration": lambda m: setattr(m, "config", Configuration()) or _set("config.eps", 0.125)(m),
    "a method of its class": lambda m: setattr(m.config, "get", lambda name: 9.0),
    "a member of an enum": _set("kind", Kind.PARTIAL),
    "another partial function": lambda m: (_set("kind", Kind.PARTIAL)(m), setattr(m, "partial", torch.relu)),
    "another child": _set("own", lambda m: nn.Sigmoid()),
    "a parameter": _set("weight", lambda m: nn.Parameter(torch.randn(4))),
    "a parameter inside": _set("inner.weight", lambda m: nn.Parameter(torch.randn(4))),
    "a parameter that two modules share from now on": lambda m: setattr(m.more[0], "weight", m.inner.weight),
    "a parameter that is gone": _set("inner.weight", None),
    "an attribute of a parameter": _set("weight.gain", 3.0),
    "what calls a child": _set("own._call_impl", torch.relu),
    "a buffer": _set("shift", lambda m: torch.randn(4)),
    "a buffer in the dict": lambda m: m._buffers.update(shift=torch.zeros(4)),
    "another buffer": lambda m: m.register_buffer("mask", torch.ones(4)),
    "a plain tensor": _set("plain", lambda m: torch.randn(4)),
    "a loaded state": lambda m: m.load_state_dict({k: v + 1 for k, v in m.state_dict().items()}, assign=True),
    "a module in a list": lambda m: m.more.__setitem__(0, Scale()),
    "a module in a dict": lambda m: m.named.update({"in": Scale()}),
    "a bound method of another module": lambda m: setattr(m, "run", m.more[0].forward),
    "a forward of an instance": lambda m: setattr(m.own, "forward", torch.relu),
    "a helper's number": _set("helper.times", 5),
    "a helper's tensor": _set("helper.weight", lambda m: nn.Parameter(torch.randn(4))),
    "evaluation": lambda m: m.eval(),
    "evaluation of a child": lambda m: m.own.eval(),
    "a hook inside": lambda m: m.inner.register_forward_hook(lambda *_: None),
    "a parametrization": lambda m: parametrizations.weight_norm(m.inner, dim=None),
    "the class of a child": lambda m: setattr(m.own, "__class__", nn.Sigmoid),
}
UNSEEN: dict[str, Change] = {
    "an attribute that nothing names": _set("remark", "made today"),
    "the memory of a parameter": lambda m: setattr(m.inner.weight, "data", torch.randn(4)),
}


def _made() -> Gated:
    torch.manual_seed(0)
    return Gated()


@pytest.mark.parametrize("change", [*SEEN, *UNSEEN])
def test_a_change_is_seen_or_does_not_matter(change: str, extension: Any) -> None:
    module = _made()
    outside = Outside(weakref.ref(module), read=reads_of_module)
    in_python = outside.now()
    before = in_python.found()
    outside.equip(extension)
    assert outside.now() is in_python
    assert before is not None
    assert all(x is y for x, y in zip(before, in_python.found() or (), strict=True))
    {**SEEN, **UNSEEN}[change](module)
    in_cpp = outside.now()
    same = in_cpp is in_python and all(x is y for x, y in zip(before, in_cpp.found() or (), strict=True))
    assert same is (change in UNSEEN)
    again = Outside(weakref.ref(module), read=reads_of_module)
    assert (in_python.failing() is None) is (in_cpp is in_python)
    assert [id(x) for x in again.now().found() or ()] == [id(x) for x in in_cpp.found() or ()]


class Loaded(nn.Module):
    """A model with an attribute that is read by a computed name."""

    one = 1.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Read it."""
        return x * getattr(self, "".join(["o", "ne"]))


class Naming(Loaded):
    """One whose forward reads the names that it is loaded by."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Read them."""
        return x * next(iter(self._no_split_modules)) * super().forward(x)


@pytest.mark.parametrize(("kind", "is_same"), [(Loaded, True), (Naming, False)])
def test_what_a_model_is_loaded_by_counts_where_code_names_it(kind: type[Loaded], is_same: bool) -> None:
    identities, last = [], kind()
    assert [*{0, 8}] != [*{8, 0}]  # as sets of names are in another order in another process
    for names in ({0, 8}, {8, 0}, {8, 1}):
        last = kind()
        last._no_split_modules = names  # as transformers' models have
        outside = Outside(weakref.ref(last), read=reads_of_module)
        identities.append(outside.now().identity)
    assert identities[0] is not None
    assert (identities[0] == identities[1]) == is_same
    assert identities[0] != identities[2]
    state = outside.now()
    last._no_split_modules.add(2)
    assert not state.holds()
