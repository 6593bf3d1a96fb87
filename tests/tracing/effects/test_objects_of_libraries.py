"""Objects of Python's library that a function changes: as often as it is called, also where a trace cannot undo it."""

from __future__ import annotations

import array
import collections
import configparser
import contextlib
import contextvars
import ctypes
import email.message
import graphlib
import queue
import textwrap
import threading
import types
import unittest.mock
import weakref
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from typing import Any

import pytest
import torch

import opwright


class Key:
    """What can be referred to weakly."""


KEYS = [Key() for _ in range(9)]
BY_KEY, BY_VALUE, KEPT = weakref.WeakKeyDictionary(), weakref.WeakValueDictionary(), weakref.WeakSet()
VARIABLE = contextvars.ContextVar("VARIABLE", default=0)
CONFIG, MESSAGE, TREE = configparser.ConfigParser(), email.message.Message(), ElementTree.Element("tree")
NUMBER, NUMBERS, BYTES, VIEW = ctypes.c_int(), array.array("i"), bytearray(), memoryview(bytearray(1))
ORDER, CALLS, STACK = graphlib.TopologicalSorter(), unittest.mock.Mock(), contextlib.ExitStack()
FIRST_IN, LAST_IN, FREE = queue.SimpleQueue(), queue.LifoQueue(), threading.Semaphore(100)
READ_ONLY, WRAPPING = types.MappingProxyType({"listed": []}), textwrap.TextWrapper(width=0)
USER_DICT, CHAIN, SPACE, LOCAL = (
    collections.UserDict(n=0),
    collections.ChainMap({"n": 0}),
    types.SimpleNamespace(n=0),
    threading.local(),
)
LOCAL.n = 0
CONFIG["here"] = {"n": "0"}

Case = tuple[Callable[[], Any], Callable[[], Any]]
CASES: dict[str, Case] = {
    "weak keys": (lambda: BY_KEY.__setitem__(KEYS[0], BY_KEY.get(KEYS[0], 0) + 1), lambda: BY_KEY.get(KEYS[0], 0)),
    "weak values": (lambda: BY_VALUE.__setitem__(len(BY_VALUE), KEYS[0]), lambda: len(BY_VALUE)),
    "weak set": (lambda: KEPT.add(KEYS[len(KEPT)]), lambda: len(KEPT)),
    "context variable": (lambda: VARIABLE.set(VARIABLE.get() + 1), lambda: VARIABLE.get()),
    "configuration": (lambda: CONFIG.set("here", "n", str(int(CONFIG["here"]["n"]) + 1)), lambda: CONFIG["here"]["n"]),
    "message": (lambda: MESSAGE.add_header("a", "b"), lambda: len(MESSAGE)),
    "element": (lambda: ElementTree.SubElement(TREE, "leaf"), lambda: len(TREE)),
    "number in C": (lambda: setattr(NUMBER, "value", NUMBER.value + 1), lambda: NUMBER.value),
    "array": (lambda: NUMBERS.append(1), lambda: len(NUMBERS)),
    "bytes": (lambda: BYTES.append(1), lambda: len(BYTES)),
    "memory view": (lambda: VIEW.__setitem__(0, VIEW[0] + 1), lambda: VIEW[0]),
    "sorter": (lambda: ORDER.add(object()), lambda: len(ORDER._node2info)),
    "mock": (lambda: CALLS(), lambda: CALLS.call_count),
    "exit stack": (lambda: STACK.callback(int), lambda: len(STACK._exit_callbacks)),
    "simple queue": (lambda: FIRST_IN.put(1), lambda: FIRST_IN.qsize()),
    "queue": (lambda: LAST_IN.put(1), lambda: LAST_IN.qsize()),
    "semaphore": (lambda: FREE.acquire(), lambda: 100 - FREE._value),
    "view of a dict": (lambda: READ_ONLY["listed"].append(1), lambda: len(READ_ONLY["listed"])),
    "attribute": (lambda: setattr(WRAPPING, "width", WRAPPING.width + 1), lambda: WRAPPING.width),
    "user's dict": (lambda: USER_DICT.__setitem__("n", USER_DICT["n"] + 1), lambda: USER_DICT["n"]),
    "chain": (lambda: CHAIN.__setitem__("n", CHAIN["n"] + 1), lambda: CHAIN["n"]),
    "name space": (lambda: setattr(SPACE, "n", SPACE.n + 1), lambda: SPACE.n),
    "of a thread": (lambda: setattr(LOCAL, "n", LOCAL.n + 1), lambda: LOCAL.n),
}


@pytest.mark.falls_back
@pytest.mark.parametrize("case", CASES)
def test_they_change_once_for_each_call(case: str) -> None:
    change, count = CASES[case]
    before = int(count())

    def changes(x: torch.Tensor) -> torch.Tensor:
        change()
        return x * 2

    operator = opwright.operator(changes)
    for calls in range(1, 4):
        torch.testing.assert_close(operator(torch.ones(2)), torch.full((2,), 2.0))
        assert int(count()) == before + calls
    assert operator.last_rung == "composed"


@pytest.mark.falls_back
def test_a_function_that_catches_the_refusal() -> None:
    def changes(x: torch.Tensor) -> torch.Tensor:
        with contextlib.suppress(Exception):
            CALLS.more()
        return x * 2

    operator = opwright.operator(changes)
    for calls in range(1, 4):
        operator(torch.ones(2))
        assert CALLS.more.call_count == calls
    assert operator.last_rung == "composed"
