"""Guards see every change of what subclasses of containers hold, whatever the methods of these classes say of it.

Random subclasses, some methods of which lie, are changed step by step by the methods of their builtin bases. A
function reads them in several ways; where it reads something else than before, neither Python's guards nor those in
C++ may hold.
"""

from __future__ import annotations

import collections
import types
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from opwright.tracing.outside.guard import first_failing
from opwright.tracing.outside.plain import are_same
from opwright.tracing.outside.reach import reads_of
from opwright.tracing.outside.unasked import ABSENT
from tests.suite.nights import mostly_at_night

NUMBERS = (0.5, 1.5, 2.0, -3.0, 1, 7)
LIES: dict[str, Callable[..., Any]] = {
    "__iter__": lambda self: iter(()),
    "__len__": lambda self: 1,
    "__contains__": lambda self, value: False,
    "__eq__": lambda self, other: True,
    "__hash__": lambda self: 1,
    "keys": lambda self: ["a"],
    "values": lambda self: [1.0],
    "items": lambda self: [("a", 1.0)],
    "get": lambda self, key, default=None: 1.0,
}
SEQUENCE = """
def program():
    held = HELD
    first = held[0] if base.__len__(held) else None
    return [base.__len__(held), list(base.__iter__(held)), len(held), first, list(held)]
"""
MAPPING = """
def program():
    held = HELD
    return [base.__len__(held), list(base.items(held)), len(held), list(held), base.get(held, "a"), "b" in held]
"""
BAG = """
def program():
    held = HELD
    return [base.__len__(held), sorted(base.__iter__(held)), len(held), 2.0 in held, base.__contains__(held, 7)]
"""
Change = Callable[[Any, Random], object]


def _add_item(held: dict[str, float], random: Random) -> None:
    dict.__setitem__(held, random.choice("abcd"), random.choice(NUMBERS))


def _drop_item(held: dict[str, float], random: Random) -> None:
    dict.pop(held, random.choice("abcd"), None)


CASES: dict[type, tuple[str, tuple[Change, ...]]] = {
    list: (
        SEQUENCE,
        (
            lambda held, random: list.append(held, random.choice(NUMBERS)),
            lambda held, random: list.pop(held),
            lambda held, random: list.__setitem__(held, 0, random.choice(NUMBERS)),
            lambda held, random: list.reverse(held),
        ),
    ),
    collections.deque: (
        SEQUENCE,
        (
            lambda held, random: collections.deque.append(held, random.choice(NUMBERS)),
            lambda held, random: collections.deque.popleft(held),
            lambda held, random: collections.deque.rotate(held, 1),
        ),
    ),
    dict: (MAPPING, (_add_item, _drop_item)),
    collections.OrderedDict: (
        MAPPING,
        (
            lambda held, random: collections.OrderedDict.__setitem__(
                held, random.choice("abcd"), random.choice(NUMBERS)
            ),
            lambda held, random: collections.OrderedDict.move_to_end(held, "a", last=random.random() < 0.5),
            lambda held, random: collections.OrderedDict.pop(held, random.choice("abcd")),
        ),
    ),
    set: (
        BAG,
        (
            lambda held, random: set.add(held, random.choice(NUMBERS)),
            lambda held, random: set.discard(held, random.choice(NUMBERS)),
        ),
    ),
}


def _world(base: Any, text: str, random: Random) -> tuple[Any, Callable[[], Any]]:
    lies = {name: lie for name, lie in LIES.items() if hasattr(base, name) and random.random() < 0.3}
    kind = type("Held", (base,), {**lies, "__module__": "world"})
    given = [("a", 1.5), ("b", 2.0)] if issubclass(base, dict) else [1.5, 2.0, 0.5]
    module = types.ModuleType("world")
    vars(module).update(HELD=kind(given), base=base)
    exec(text, vars(module))
    return vars(module)["HELD"], vars(module)["program"]


def walk_through(base: Any, extension: Any, seed: int) -> int:
    """Change what one object holds, step by step.

    Returns:
        How often the function read something else.
    """
    random, noticed = Random(seed), 0
    text, changes = CASES[base]
    held, program = _world(base, text, random)
    guard = reads_of(program).guard
    guards = extension.Guards(guard.spec, program, ABSENT, are_same)
    before = repr(program())
    for _ in range(12):
        try:
            random.choice(changes)(held, random)
        except (IndexError, KeyError):  # nothing is left
            continue
        is_other = repr(program()) != before
        fails = first_failing(guard, program) is not None
        assert fails or not is_other, f"seed {seed}: {before} became {program()!r}"
        assert guards.hold() is not fails, f"seed {seed}"
        if fails:
            noticed += is_other
            guard = reads_of(program).guard
            guards = extension.Guards(guard.spec, program, ABSENT, are_same)
            before = repr(program())
            assert first_failing(guard, program) is None
            assert guards.hold()
    return noticed


@pytest.mark.parametrize("seeds", mostly_at_night([range(20), range(60)], by_day=1), ids=len)
@pytest.mark.parametrize("base", CASES, ids=lambda base: base.__name__)
def test_no_change_of_a_subclass_goes_unseen(base: type, seeds: range, extension: Any) -> None:
    assert sum(walk_through(base, extension, seed) for seed in seeds) > len(seeds)


@pytest.mark.parametrize("longer", [(1.5, 2.0, 0.5), (1.5,)])
def test_another_tuple_of_a_subclass_is_of_another_length(longer: tuple[float, ...], extension: Any) -> None:
    held, program = _world(tuple, SEQUENCE, Random(1))
    program.__globals__["HELD"] = type(held)((1.5, 2.0))
    guard = reads_of(program).guard
    guards = extension.Guards(guard.spec, program, ABSENT, are_same)
    assert guards.hold()
    program.__globals__["HELD"] = type(held)(longer)
    assert first_failing(guard, program) is not None
    assert not guards.hold()
