"""Classes that say of themselves that they are of a module of Python's are the user's: what is read of them changes."""

from __future__ import annotations

import abc
import dataclasses
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch

from opwright.api.operator import Operator
from opwright.tracing.outside.guard import first_failing
from opwright.tracing.outside.purity import is_installed, module_of
from opwright.tracing.outside.reach import reads_of
from tests.quiet_settings import quiet_settings

PROGRAM = """
class C:
    gain = 2.0
def reads(x): return x * C.gain
def reads_of_one(x): return x * ONE.gain
def counts(x):
    C.gain = C.gain + 1.0
    return x.sin()
"""


def executed() -> type:
    namespace: dict[str, Any] = {}
    exec("class C: pass", namespace)
    made: type = namespace["C"]
    return made


MAKERS: dict[str, Callable[[], type]] = {
    "exec without a name": executed,
    "new_class": lambda: types.new_class("C"),
    "make_dataclass": lambda: dataclasses.make_dataclass("C", ["held"], namespace={"held": 0}),
    "a metaclass": lambda: abc.ABCMeta("C", (), {}),
}


@pytest.fixture(params=MAKERS)
def program(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Functions that read a class and an object of it."""
    names: dict[str, Any] = {"torch": torch}
    exec(PROGRAM, names)
    if request.param != "exec without a name":
        names["C"] = MAKERS[request.param]()
        names["C"].gain = 2.0
    names["ONE"] = object.__new__(names["C"])
    return names


@pytest.mark.parametrize("function", ["reads", "reads_of_one"])
def test_what_is_read_of_it_is_compared(function: str, program: dict[str, Any]) -> None:
    operator = Operator(program[function], name=f"made_class_{function}", settings=quiet_settings(optimized=False))
    x = torch.ones(3)
    for gain in (2.0, 5.0):
        program["C"].gain = gain
        assert torch.equal(operator(x), x * gain)
        assert operator.last_rung == "cpp"


@pytest.mark.falls_back
def test_it_is_changed_once_at_each_call(program: dict[str, Any]) -> None:
    operator = Operator(program["counts"], name="made_class_counts", settings=quiet_settings(optimized=False))
    gains = []
    for _ in range(3):
        operator(torch.ones(3))
        gains.append(program["C"].gain)
    assert gains == [3.0, 4.0, 5.0]


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_it_is_of_no_module_of_python(make: Callable[[], type]) -> None:
    assert not is_installed(module_of(make()))


@pytest.mark.parametrize("kind", [int, list[int], types.SimpleNamespace, abc.ABCMeta, dataclasses.Field, torch.Tensor])
def test_classes_of_python_and_torch_are_theirs(kind: Any) -> None:
    assert is_installed(module_of(kind))


def test_guards_of_what_python_has_for_types_hold() -> None:
    """Of classes that are made in C, some have no name in the module that they say they are of."""
    kinds = [kind for kind in vars(types).values() if isinstance(kind, type)]
    assert all(module_of(kind) is not None for kind in kinds)
    names = {name for kind in kinds for name in vars(kind) if name.isidentifier()}
    function = "\n    ".join(
        (
            "def asks(x):",
            *(f"if x is None: {name}" for name, kind in vars(types).items() if isinstance(kind, type)),
            *(f"if x is None: x.{name}" for name in sorted(names)),
            "return x.sin()",
        )
    )
    space = dict(vars(types))
    exec(function, space)
    reads = reads_of(space["asks"])
    assert first_failing(reads.guard, space["asks"]) is None
