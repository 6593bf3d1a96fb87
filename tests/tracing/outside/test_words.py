"""Guards as words of memory say what guards in Python say, after changes of whatever a guard leads to.

`test_versions.py` changes one world with great depth; here each object that is met on the way of any guard is changed,
in random programs: also in place, behind the back of its class, and so that another comes to lie at its address.
"""

from __future__ import annotations

import contextlib
import copyreg
import gc
import logging
import sys
import types
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy
import pytest
import torch

from opwright.tracing.outside.guard import _FETCHES, Guard, first_failing
from opwright.tracing.outside.plain import are_same, is_plain
from opwright.tracing.outside.reach import reads_of
from opwright.tracing.outside.unasked import ABSENT
from tests.outside_program import random_outside_program, undone

OWN = ("words_", "outside_", "builtins", "types", "collections", "functools", "numpy", "torch")
NUMBERS = (0.5, 1.5, 2.0, -3.0, 0.25, -0.0, 1, True, None, "a")


class World:
    """A random program, and the objects of its own that its guards lead to."""

    def __init__(self, seed: int) -> None:
        self.module = types.ModuleType(f"words_{seed}")
        sys.modules[self.module.__name__] = self.module
        program = random_outside_program(seed)
        exec(program.text, vars(self.module))
        self.function: Callable[..., Any] = vars(self.module)["program"]
        self.reads = program.reads
        self.read()

    def read(self) -> None:
        """Take what it reads now for what is expected."""
        self.guard: Guard = reads_of(self.function).guard
        self.spec = self.guard.spec

    def close(self) -> None:
        for name in [name for name in sys.modules if name.startswith(("outside_", "words_"))]:
            del sys.modules[name]
        torch.set_grad_enabled(True)

    def is_own(self, value: Any) -> bool:
        """Whether a change of it is a change of this world alone."""
        if isinstance(value, dict):
            return value.get("__name__", self.module.__name__) == self.module.__name__ and value is not sys.modules
        if isinstance(value, types.ModuleType):
            return value.__name__.startswith(("outside_", "words_"))
        if isinstance(value, (type, types.FunctionType)):
            return value.__module__ == self.module.__name__
        return not is_plain(value) and type(value).__module__.startswith(OWN)

    def met(self) -> list[Any]:
        """Everything on the way of a guard, with the classes of what classes hold, each once."""
        found: dict[int, Any] = {}

        def walk(guard: Guard, parent: Any) -> None:
            with contextlib.suppress(Exception):
                value = _FETCHES[guard.fetch](parent, guard.key)
                is_of_others = isinstance(value, type | logging.Logger) and not self.is_own(value)
                for each in (value, *(() if is_of_others else _behind(value))):
                    if self.is_own(each) or each is torch.Tensor:
                        found.setdefault(id(each), each)
                for inner in guard.guards:
                    walk(inner, value)

        walk(self.guard, self.function)
        return list(found.values())


def _behind(value: Any) -> Iterator[Any]:
    """What the guards pass by: the members of classes as they are stored, their classes, and keyword defaults."""
    if value is torch.Tensor:  # what it holds is not this world's
        return
    if isinstance(value, type):
        for member in list(vars(value).values()):
            yield member
            yield type(member)
    elif isinstance(value, types.FunctionType):
        yield from (value.__kwdefaults__, vars(value), *(value.__closure__ or ()))
    elif type(value).__module__.startswith(OWN):
        yield from (type(value), getattr(value, "__dict__", None))


class Describing:
    """A descriptor that hides what an object itself has."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __get__(self, *_: Any) -> Any:
        return self.value

    def __set__(self, *_: Any) -> None:
        pass


def changes_of(value: Any, random: Random) -> list[Callable[[], Any]]:
    """Ways to change an object."""
    new = random.choice(NUMBERS)
    if isinstance(value, dict):
        return _of_dict(value, new, random)
    if isinstance(value, (list, deque)):
        return _of_sequence(value, new, random)
    if isinstance(value, set):
        return [lambda: value.add(new), lambda: value.discard(next(iter(value), 0)), value.clear]
    if isinstance(value, types.FunctionType):
        return _of_function(value, new)
    if isinstance(value, types.CellType):
        return [lambda: setattr(value, "cell_contents", random.choice([new, value.cell_contents]))]
    if isinstance(value, (property, staticmethod, classmethod)):
        inner = value.fget if isinstance(value, property) else value.__func__
        return [lambda: value.__init__(random.choice([lambda *_: new, inner]))]  # type: ignore[misc]
    if isinstance(value, numpy.ndarray):
        return [lambda: value.__setitem__(0, random.choice([0.5, 7.0])), lambda: setattr(value, "shape", (1, -1))]
    if value is torch.Tensor:  # which everything else here needs
        return _of_tensors(new)
    if isinstance(value, type):
        return _of_class(value, new, random)
    return _of_object(value, new, random)


def _of_dict(value: dict[Any, Any], new: Any, random: Random) -> list[Callable[[], Any]]:
    key = random.choice([each for each in value if not str(each).startswith("__")] or ["a"])

    def exchanged() -> None:
        held = value.pop(key)
        made = _another(held)
        del held
        value[key] = made

    return [
        lambda: value.update({key: new}),
        lambda: value.update({key: value[key]}),
        lambda: value.pop(key),
        lambda: value.__setitem__(key, value.pop(key)),
        lambda: value.setdefault("other", new),
        lambda: value.__ior__({key: new}),
        lambda: value.move_to_end(key) if isinstance(value, OrderedDict) else None,
        exchanged,
    ]


def _of_sequence(value: Any, new: Any, random: Random) -> list[Callable[[], Any]]:
    place = random.randrange(max(len(value), 1))

    def exchanged() -> None:
        value[place] = _another(value[place])

    def moved() -> None:
        held = list(value)
        value.clear()
        value.extend(held)

    return [
        lambda: value.__setitem__(place, new),
        lambda: value.append(new),
        lambda: value.pop(),
        value.reverse,
        exchanged,
        moved,
    ]


def _of_function(value: types.FunctionType, new: Any) -> list[Callable[[], Any]]:
    return [
        lambda: setattr(value, "__defaults__", (new,)),
        lambda: setattr(value, "__kwdefaults__", {"v": new}),
        lambda: setattr(value, "__code__", value.__code__.replace(co_name="renamed")),
        lambda: setattr(value, "v", new),
        lambda: setattr(value, "__dict__", {"v": new}),
        lambda: value.__closure__ and setattr(value.__closure__[0], "cell_contents", new),
    ]


def _of_class(value: type, new: Any, random: Random) -> list[Callable[[], Any]]:
    name = random.choice(["scale", "v", *(each for each in vars(value) if not each.startswith("__"))])
    hidden = random.choice([new, Describing(new), property(lambda _: new), lambda *_: new])
    return [
        lambda: setattr(value, name, hidden),
        lambda: type.__setattr__(value, name, hidden),
        lambda: delattr(value, name),
        lambda: setattr(value, "__get__", lambda *_: new),
        lambda: setattr(value, "__set__", lambda *_: None),
        lambda: setattr(value, "__getattr__", lambda *_: new),
        lambda: setattr(value, "__bases__", (type("Between", value.__bases__, {name: hidden}),)),
        lambda: setattr(value, "__module__", random.choice([value.__module__, "elsewhere"])),
        sys._clear_type_cache,
    ]


def _of_tensors(new: Any) -> list[Callable[[], Any]]:
    return [
        lambda: setattr(torch.Tensor, "sinc", lambda *_: new),
        lambda: delattr(torch.Tensor, "sinc"),
        lambda: setattr(torch.Tensor, "scale", new),
        lambda: delattr(torch.Tensor, "scale"),
        lambda: setattr(torch.Tensor, "__matmul__", lambda *_: new),
        lambda: copyreg._slotnames(torch.Tensor),  # type: ignore[attr-defined]  # what pickling notes in a class
        sys._clear_type_cache,
    ]


def _of_object(value: Any, new: Any, random: Random) -> list[Callable[[], Any]]:
    held = getattr(value, "__dict__", {})
    own = [each for each in held if not each.startswith("__")] if isinstance(held, dict) else []
    name = random.choice(["scale", "v", *own])
    cls = type(value)

    def exchanged() -> None:
        inside = vars(value)
        before = inside.pop(name)
        made = _another(before)
        del before
        inside[name] = made

    return [
        lambda: setattr(value, name, new),
        lambda: object.__setattr__(value, name, new),
        lambda: object.__delattr__(value, name),
        lambda: setattr(value, "__dict__", dict(vars(value))),
        lambda: setattr(value, "__dict__", {**vars(value), name: new}),
        lambda: setattr(value, "__class__", type("Other", (cls,), {"__slots__": ()})),
        lambda: setattr(value, "__class__", type("Other", (cls,), {"__slots__": (), name: Describing(new)})),
        exchanged,
    ]


def _another(value: Any) -> Any:
    """An equal object, which often comes to lie where a like one did."""
    if isinstance(value, types.FunctionType):
        return types.FunctionType(
            value.__code__, value.__globals__, value.__name__, value.__defaults__, value.__closure__
        )
    if isinstance(value, (list, set, dict, deque)):
        return value.copy()
    if isinstance(value, float):
        return value * 1.0
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple([_another(each) for each in value])
    if type(value).__module__.startswith("words_") and hasattr(value, "__dict__"):
        made = object.__new__(type(value))
        vars(made).update(vars(value))
        return made
    return value


def walk_through(extension: Any, seed: int, steps: int, counts: dict[bool, int]) -> None:
    """Change a world step by step, and hold the words of memory against Python."""
    with undone():
        _walk_through(extension, seed, steps, counts)


def _walk_through(extension: Any, seed: int, steps: int, counts: dict[bool, int]) -> None:
    random = Random(seed)
    world = World(seed)
    try:
        guards = extension.Guards(world.spec, world.function, ABSENT, are_same)
        told = []
        for _ in range(steps):
            holds = first_failing(world.guard, world.function) is None
            counts[holds] += 1
            for _ in range(3):
                assert guards.hold() is holds, (
                    f"{seed} {world.reads} {told}: {first_failing(world.guard, world.function)}"
                )
            if not holds:
                try:
                    world.read()
                except Exception:  # nobody could call what is left of it
                    return
                guards = extension.Guards(world.spec, world.function, ABSENT, are_same)
                told = []
                continue
            value = random.choice(world.met())
            changes = changes_of(value, random)
            place = random.randrange(len(changes))
            told.append(f"{place} of {type(value).__name__}")
            with contextlib.suppress(Exception):
                changes[place]()
            del value, changes
            if random.random() < 0.1:
                gc.collect()
    finally:
        world.close()


def test_words_say_what_python_says_whatever_changes(extension: Any) -> None:
    counts = {True: 0, False: 0}
    for seed in range(4):
        walk_through(extension, seed, 30, counts)
    assert min(counts.values()) > 10


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(1000, 3000, 50))
def test_words_say_what_python_says_in_many_programs(first: int, extension: Any) -> None:
    counts = {True: 0, False: 0}
    for seed in range(first, first + 50):
        walk_through(extension, seed, 60, counts)
    assert min(counts.values()) > 100
