"""Guards in C++ skip what versions of dictionaries and classes settle: after any change they say what Python says."""

from __future__ import annotations

import contextlib
import functools
import gc
import sys
import types
from collections import OrderedDict
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
import torch

from opwright.tracing.outside.guard import Guard, count, first_failing
from opwright.tracing.outside.plain import are_same
from opwright.tracing.outside.reach import reads_of
from opwright.tracing.outside.unasked import ABSENT
from tests.suite.nights import mostly_at_night

WORLD = """
import enum, torch

class Above:
    inherited = 1.0

class Kinds(enum.Enum):
    one, two = 1.0, 2.0

class Late:
    def __get__(self, owner, kind):
        return 31.0

class Meta(type):
    held = Late()

class OfMeta(metaclass=Meta):
    held = 19.0

class Wrapping:
    def __init__(self):
        self.own = 20.0
    @property
    def doubled(self):
        return 2.0 * self.own
    @classmethod
    def made(cls, x):
        return x * 21.0
    @staticmethod
    def plain(x):
        return x * 22.0

def adding(number):
    def add(x):
        return x + number
    return add

chain, wrapping, chosen = [adding(23.0), adding(24.0)], Wrapping(), {"a", "b", 25.0}
part = functools.partial(adding(26.0))
bound = wrapping.made

class Holder(Above):
    shared = 2.0
    def method(self, x):
        return x * self.own
    def __init__(self):
        self.own, self.name = 4.0, "a"

class Slotted:
    __slots__ = ("held",)

class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 4.0
    def forward(self, x):
        return x * self.scale

number, text, pair = 5.0, "text", (6.0, ("b", 7.0))
numbers, names, ordered = [8.0, 9.0], {"a": 10.0, "b": [11.0]}, OrderedDict(a=12.0, b=13.0)
holder, slotted, layer, box = Holder(), Slotted(), Layer(), types.SimpleNamespace(inside=14.0)
slotted.held = 15.0

def helper(x, k=16.0, *, more=17.0):
    return x * k * more * number

def f(x):
    y = helper(layer(holder.method(x))) * number + len(text) + pair[1][1] + max(numbers[0], len(numbers))
    y = y + names["a"] + names["b"][0] + sum(ordered.values()) + len(list(ordered)) + slotted.held
    y = chain[0](chain[1](part(bound(wrapping.made(wrapping.plain(y)))))) * wrapping.doubled
    if "a" in chosen and len(chosen) == 3 and OfMeta.held and Kinds.one.value:
        y = y + 1.0
    return y * settings.rate * box.inside + holder.shared + holder.inherited
"""
VALUES = (1.0, 2.0, -0.0, 0.0, 1, True, "a", None)


class World:
    """A function and all that it reads."""

    def __init__(self) -> None:
        module = types.ModuleType("a_world")
        self.names: dict[str, Any] = vars(module)
        self.settings = types.ModuleType("some_settings")
        self.settings.rate = 18.0  # type: ignore[attr-defined]
        self.names.update(OrderedDict=OrderedDict, types=types, functools=functools, settings=self.settings)
        exec(WORLD, self.names)
        self.made = dict(self.names)
        self.answer = 4.0
        self.answering = property(lambda _: self.answer)  # which comes before what an object itself has
        self.function: Callable[..., Any] = self.names["f"]


def places(world: World) -> list[tuple[Callable[[], Any], Callable[[Any], None], Callable[[], None]]]:
    """Where something can be put: how it is asked for, how it is put there, and how it is taken away."""
    found = []

    def items(mapping: dict[Any, Any], *keys: Any) -> None:
        for key in keys:
            found.append(
                (
                    lambda key=key: mapping[key],
                    lambda value, key=key: mapping.__setitem__(key, value),
                    lambda key=key: mapping.__delitem__(key),
                )
            )

    def attributes(owner: Any, *names: str) -> None:
        for name in names:
            found.append(
                (
                    lambda name=name: getattr(owner, name),
                    lambda value, name=name: setattr(owner, name, value),
                    lambda name=name: delattr(owner, name),
                )
            )

    names = world.made
    items(
        world.names, "number", "text", "pair", "numbers", "names", "ordered", "holder", "layer", "box", "max", "unread",
        "chain", "wrapping", "chosen", "part", "bound", "OfMeta", "Kinds",
    )  # fmt: skip
    items(names["names"], "a", "b", "c")
    items(names["ordered"], "a", "b", "c")
    attributes(world.settings, "rate", "unread")
    attributes(names["holder"], "own", "name", "shared", "inherited", "method")
    attributes(names["Holder"], "shared", "own", "method")
    attributes(names["Above"], "inherited", "shared")
    attributes(names["slotted"], "held")
    attributes(names["layer"], "scale", "training", "forward")
    attributes(names["Layer"], "scale", "forward")
    attributes(names["box"], "inside", "other")
    attributes(names["Wrapping"], "doubled", "made", "plain", "own")
    attributes(names["wrapping"], "own", "made")
    attributes(names["OfMeta"], "held", "other")
    attributes(names["Meta"], "held", "other")
    attributes(names["Kinds"], "other")
    return found


def change(world: World, random: Random, undo: list[Callable[[], None]]) -> None:
    """Change something, by one of many ways; remember how to have it back."""
    names = world.made
    kind = random.randrange(17)
    if kind == 16:  # what a metaclass has comes before what its class has, from now on
        late = names["Late"]
        late.__set__ = lambda *_: None
        undo.append(lambda: take_or_leave(lambda: delattr(late, "__set__")))
    elif kind >= 11:
        change_wrapped(names, kind, random, undo)
    elif kind < 5:
        ask, put, take = random.choice(places(world))
        try:
            before = ask()
        except (KeyError, AttributeError):
            before = ABSENT
        if before is not ABSENT and random.random() < 0.3:
            take_or_leave(take)
            undo.append(lambda: take_or_leave(lambda: put(before)))
        else:
            take_or_leave(lambda: put(random.choice([*VALUES, before, world.answering])))
            undo.append(lambda: take_or_leave(take if before is ABSENT else lambda: put(before)))
    elif kind == 5:
        numbers, before = names["numbers"], list(names["numbers"])
        random.choice([lambda: numbers.append(1.0), numbers.reverse, lambda: numbers.__setitem__(0, 1.0)])()
        undo.append(lambda: numbers.__setitem__(slice(None), before))
    elif kind == 6:
        ordered, order = names["ordered"], list(names["ordered"])
        if order:
            ordered.move_to_end(order[0])
            undo.append(lambda: [ordered.move_to_end(key) for key in order if key in ordered])  # type: ignore[arg-type]
    elif kind == 7:
        helper, before = names["helper"], (names["helper"].__defaults__, names["helper"].__code__)
        helper.__defaults__ = (random.choice(VALUES),)
        undo.append(lambda: setattr(helper, "__defaults__", before[0]))
    elif kind == 8:
        holder, cls, base = names["holder"], names["Holder"], names["Above"]
        other = type("Other", (base,), {"shared": 2.0, "own": world.answering, "method": getattr(cls, "method", None)})
        if isinstance(holder, cls):
            holder.__class__ = other
            undo.append(lambda: setattr(holder, "__class__", cls))
    elif kind == 9:
        cls, name = random.choice([(names["Holder"], "own"), (names["Layer"], "scale")])
        if name not in vars(cls):
            setattr(cls, name, world.answering)
            undo.append(lambda: take_or_leave(lambda: delattr(cls, name)))
    else:
        before = world.answer
        world.answer = random.choice((4.0, *VALUES))
        undo.append(lambda: setattr(world, "answer", before))


def change_wrapped(names: dict[str, Any], kind: int, random: Random, undo: list[Callable[[], None]]) -> None:
    """Change what leads to functions: closures, lists of them, properties, methods, sets of values."""
    chain, adding, wrapping = names["chain"], names["adding"], names["Wrapping"]
    if kind == 11:
        cell = random.choice([*chain, names["part"].func]).__closure__[0]
        before = cell.cell_contents
        cell.cell_contents = random.choice([23.0, 27.0, before])
        undo.append(lambda: setattr(cell, "cell_contents", before))
    elif kind == 12:
        place = random.randrange(2)
        before_number = chain[place].__closure__[0].cell_contents
        chain[place] = None  # so that another function comes to lie at the same address
        chain[place] = adding(random.choice([before_number, 28.0]))
        undo.append(lambda: chain.__setitem__(place, adding(before_number)))
    elif kind == 13:
        member = vars(wrapping).get(random.choice(["doubled", "made", "plain"]))
        before = getattr(member, "__func__", None) or getattr(member, "fget", None)
        if before is not None:
            member.__init__(random.choice([before, lambda *_: 1.0]))  # in place: the class does not hear of it
            undo.append(lambda: member.__init__(before))
    elif kind == 14:
        chosen, before = names["chosen"], sorted(names["chosen"], key=str)
        change = random.choice([lambda: chosen.discard("a"), lambda: chosen.add(29.0), chosen.clear, lambda: None])
        change()
        undo.append(lambda: (chosen.clear(), chosen.update(before)))  # type: ignore[arg-type]
    else:
        part, before = names["part"], names["part"].func
        part.__setstate__((random.choice([before, adding(26.0), adding(30.0)]), (), {}, None))
        undo.append(lambda: part.__setstate__((before, (), {}, None)))
    if random.random() < 0.2:
        gc.collect()


def take_or_leave(work: Callable[[], Any]) -> None:
    with contextlib.suppress(KeyError, AttributeError, TypeError):
        work()


def run(extension: Any, seed: int, steps: int) -> tuple[int, int]:
    """Change a world step by step; count how often its guards did not hold, and how often they did."""
    random, counts = Random(seed), [0, 0]
    world, guard, guards = new_world(extension)
    undo: list[Callable[[], None]] = []
    for step in range(steps):
        if undo and random.random() < 0.6:
            undo.pop()()
        else:
            change(world, random, undo)
        holds = first_failing(guard, world.function) is None
        counts[holds] += 1
        for _ in range(2):
            assert guards.hold() is holds, f"seed {seed}, step {step}: {first_failing(guard, world.function)}"
        if not holds and not undo:  # what was put back may stand in another order
            world, guard, guards = new_world(extension)
    return counts[0], counts[1]


def new_world(extension: Any) -> tuple[World, Guard, Any]:
    world = World()
    reads = reads_of(world.function)
    assert not reads.hazards
    world.made["spec"] = reads.guard.spec  # which guards do not own
    return world, reads.guard, extension.Guards(world.made["spec"], world.function, ABSENT, are_same)


@pytest.mark.parametrize("seed", mostly_at_night(range(8), by_day=1))
def test_versions_settle_nothing_else(seed: int, extension: Any) -> None:
    failing, holding = run(extension, seed, 200)
    assert failing > 25
    assert holding > 25


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(1000, 1200))
def test_versions_settle_nothing_else_in_long_walks(seed: int, extension: Any) -> None:
    failing, holding = run(extension, seed, 2000)
    assert min(failing, holding) > 100


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="dictionaries have no versions")
def test_words_of_memory_stand_for_nearly_all_guards(extension: Any) -> None:
    """The rest is asked of functions: whether gradients are recorded, say."""
    _, guard, guards = new_world(extension)
    assert guards.hold()
    words, live = guards.counts()
    assert 10 * live < count(guard) < 3 * words


BESIDE = """
import enum, torch
class Kinds(enum.Enum):
    one = 1.0
def tanh(x): return torch.tanh(x) * 2
def kinds(x): return x * Kinds.one.value
"""


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="dictionaries have no versions")
@pytest.mark.parametrize("name", ["tanh", "kinds"])
def test_a_name_that_is_bound_beside_what_is_read_lets_python_run_seldom(name: str, extension: Any) -> None:
    """In a script or a notebook, every line that binds a name changes the version of what functions read from."""
    names: dict[str, Any] = {"__name__": "names_beside"}
    exec(BESIDE, names)
    spec = reads_of(names[name]).guard.spec
    guards = extension.Guards(spec, names[name], ABSENT, are_same)
    ran: set[int] = set()

    def note(frame: types.FrameType, event: str, argument: object) -> None:
        if event == "call":
            ran.add(step)

    sys.setprofile(note)
    try:
        for step in range(200):
            names["beside"] = step
            assert guards.hold()
            assert guards.hold()  # as for captured tensors
    finally:
        sys.setprofile(None)
    assert 0 < len(ran) < 15
    names["torch"], names["Kinds"] = None, None
    assert not guards.hold()


def test_what_runs_while_guards_are_compared_may_change_what_they_compare(extension: Any) -> None:
    """A version counts only for what was compared at it."""
    names: dict[str, Any] = {"torch": torch}
    exec("K, L = b'ab', 1.0\ndef f(x): return x * len(K) * L", names)

    def exchanging(value: Any, expected: Any) -> bool:
        names["L"] = 2.0  # after its guard has been compared, or before
        return are_same(value, expected)

    spec = reads_of(names["f"]).guard.spec
    guards = extension.Guards(spec, names["f"], ABSENT, exchanging)
    assert guards.hold()
    names["K"] = bytes(bytearray(b"ab"))
    guards.hold()
    assert not guards.hold()
