"""Effects that no line of the function shows: they are done once at each call, and never by a trace.

Each is a statement, what it needs, and an expression for what it has changed.
"""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest
import torch

from opwright.api.operator import Operator
from tests.quiet_settings import quiet_settings

pytestmark = pytest.mark.falls_back

EFFECTS = {
    "an attribute of sys": ("sys.opwright_tests = 0", "sys.opwright_tests += 1", "sys.opwright_tests"),
    "an attribute of math": ("math.opwright_tests = 0", "math.opwright_tests += 1", "math.opwright_tests"),
    "an attribute of torch": ("torch.opwright_tests = 0", "torch.opwright_tests += 1", "torch.opwright_tests"),
    "setattr of torch": (
        "torch.opwright_tests = 0",
        "setattr(torch, 'opwright_tests', torch.opwright_tests + 1)",
        "torch.opwright_tests",
    ),
    "an attribute of a module below torch": (
        "torch.nn.functional.opwright_tests = 0",
        "torch.nn.functional.opwright_tests += 1",
        "torch.nn.functional.opwright_tests",
    ),
    "an attribute of a class of torch's": (
        "torch.nn.Linear.opwright_tests = 0",
        "torch.nn.Linear.opwright_tests += 1",
        "torch.nn.Linear.opwright_tests",
    ),
    "an attribute of a function of Python's": (
        "textwrap.dedent.opwright_tests = 0",
        "textwrap.dedent.opwright_tests += 1",
        "textwrap.dedent.opwright_tests",
    ),
    "an item of vars(torch)": (
        "torch.opwright_tests = 0",
        "vars(torch)['opwright_tests'] += 1",
        "torch.opwright_tests",
    ),
    "sys.path": ("", "sys.path.append('opwright tests')", "sys.path.count('opwright tests')"),
    "the environment": (
        "os.environ['OPWRIGHT_TESTS'] = ''",
        "os.environ['OPWRIGHT_TESTS'] += '1'",
        "os.environ['OPWRIGHT_TESTS']",
    ),
    "object.__setattr__": ("class C: n = 0\nc = C()", "object.__setattr__(c, 'n', c.n + 1)", "c.n"),
    "type.__setattr__": ("class C: n = 0", "type.__setattr__(C, 'n', C.n + 1)", "C.n"),
    "a chain of dicts": ("m = collections.ChainMap({'a': 0})", "m['a'] = m['a'] + 1", "m['a']"),
    "a dict of the user's": ("m = collections.UserDict(a=0)", "m['a'] += 1", "m['a']"),
    "a list of the user's": ("m = collections.UserList()", "m.append(1)", "len(m)"),
    "a queue": ("q = queue.Queue()", "q.put(1)", "q.qsize()"),
    "a simple queue": ("q = queue.SimpleQueue()", "q.put(1)", "q.qsize()"),
    "a method by another name": ("held = [0]\nput = held.__setitem__", "put(0, held[0] + 1)", "held[0]"),
    "operator.setitem": ("held = [0]", "operator.setitem(held, 0, held[0] + 1)", "held[0]"),
    "a hook on a tensor": (
        "t = torch.ones(3, requires_grad=True)",
        "t.register_hook(lambda gradient: None)",
        "len(t._backward_hooks or ())",
    ),
    "a hook on a module": (
        "m = torch.nn.Linear(3, 3)",
        "m.register_forward_hook(lambda *given: None)",
        "len(m._forward_hooks)",
    ),
    "a mode of a module": ("m = torch.nn.Dropout()\nn = [0]", "m.train(not m.training)", "m.training"),
    "numpy.copyto": ("held = numpy.zeros(1)", "numpy.copyto(held, held + 1)", "held[0]"),
    "numpy.add.at": ("held = numpy.zeros(1)", "numpy.add.at(held, [0], 1)", "held[0]"),
    "a ufunc's out": ("held = numpy.zeros(1)", "numpy.add(held, 1, out=held)", "held[0]"),
    "how numpy prints": (
        "numpy.set_printoptions(precision=3)",
        "numpy.set_printoptions(precision=numpy.get_printoptions()['precision'] + 1)",
        "numpy.get_printoptions()['precision']",
    ),
    "the limit of recursion": (
        "sys.setrecursionlimit(1000)",
        "sys.setrecursionlimit(sys.getrecursionlimit() + 1)",
        "sys.getrecursionlimit()",
    ),
    "the collector": (
        "gc.set_threshold(700)",
        "gc.set_threshold(gc.get_threshold()[0] + 1)",
        "gc.get_threshold()[0]",
    ),
    "a number of C": ("c = ctypes.c_int(0)", "c.value = c.value + 1", "c.value"),
    "an attribute of a logger": ("lg = logging.getLogger('tests')\nlg.n = 0", "lg.n += 1", "lg.n"),
    "a weak set": ("class C: pass\nkept = []\nw = weakref.WeakSet()", "kept.append(C()); w.add(kept[-1])", "len(w)"),
    "weak keys": ("class C: pass\nk = C()\nw = weakref.WeakKeyDictionary()", "w[k] = w.get(k, 0) + 1", "w[k]"),
    "weak values": ("class C: pass\nk = C()\nw = weakref.WeakValueDictionary()", "w[len(w)] = k", "len(w)"),
    "a context variable": ("v = contextvars.ContextVar('v', default=0)", "v.set(v.get() + 1)", "v.get()"),
    "a configuration": (
        "c = configparser.ConfigParser()\nc['here'] = {'n': '0'}",
        "c.set('here', 'n', str(int(c['here']['n']) + 1))",
        "int(c['here']['n'])",
    ),
    "a message": ("m = email.message.Message()", "m.add_header('a', 'b')", "len(m)"),
    "an array": ("a = array.array('i')", "a.append(1)", "len(a)"),
    "a memory view": ("v = memoryview(bytearray(1))", "v[0] += 1", "v[0]"),
    "an array of C": ("a = (ctypes.c_int * 3)()", "a[0] += 1", "a[0]"),
    "a sorter": ("s = graphlib.TopologicalSorter()", "s.add(object())", "len(s._node2info)"),
    "a mock": ("m = unittest.mock.Mock()", "m()", "m.call_count"),
    "a refusal that is caught": (
        "m = unittest.mock.Mock()",
        "with contextlib.suppress(Exception): m()",
        "m.call_count",
    ),
    "a stack of exits": ("s = contextlib.ExitStack()", "s.callback(int)", "len(s._exit_callbacks)"),
    "a semaphore": ("s = threading.Semaphore(100)", "s.acquire()", "100 - s._value"),
    "a view of a dict": ("v = types.MappingProxyType({'a': []})", "v['a'].append(1)", "len(v['a'])"),
    "a setting of an object": ("w = textwrap.TextWrapper()", "w.width += 1", "w.width"),
}
IMPORTS = (
    "array, collections, configparser, contextlib, contextvars, ctypes, email.message, gc, graphlib, logging, math, "
    "numpy, operator, os, queue, sys, textwrap, threading, torch, types, unittest.mock, weakref"
)


@pytest.fixture
def restored(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What functions change of Python and of libraries is put back."""
    import gc

    import numpy

    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("OPWRIGHT_TESTS", "")
    limit, thresholds = sys.getrecursionlimit(), gc.get_threshold()
    with numpy.printoptions():
        yield
    sys.setrecursionlimit(limit)
    gc.set_threshold(*thresholds)
    import textwrap

    for holder in (sys, torch, sys.modules["math"], torch.nn.functional, torch.nn.Linear, textwrap.dedent):
        if "opwright_tests" in vars(holder):
            del holder.opwright_tests


def written(before: str, statement: str) -> types.ModuleType:
    """A module with a function that has an effect."""
    module = types.ModuleType("hidden_effects")
    exec(f"import {IMPORTS}\n{before}\ndef f(x):\n    {statement}\n    return x.sin() * 2\n", vars(module))
    return module


@pytest.mark.parametrize("effect", EFFECTS)
def test_it_is_done_once_at_each_call(effect: str, restored: Any) -> None:
    before, statement, changed = EFFECTS[effect]
    found: list[list[Any]] = []
    for kind in ("plain", "operator"):
        module = written(before, statement)
        call = module.f
        if kind == "operator":
            name = "hidden_" + "".join(filter(str.isidentifier, effect))
            call = Operator(module.f, name=name, settings=quiet_settings(optimized=False))
        states = []
        for _ in range(4):
            call(torch.ones(3))
            states.append(eval(changed, vars(module)))
        if kind == "operator":
            assert call.last_rung == "composed"
        found.append(states)
    plain, ours = found
    if effect == "sys.path":
        ours = [state - ours[0] + plain[0] for state in ours]
    assert ours == plain


CACHES = {
    "unlimited": ("@functools.cache\ndef table(n):\n    calls.append(n)\n    return 2.0**n", "table(3)"),
    "limited": (
        "@functools.lru_cache(maxsize=2)\ndef table(n):\n    calls.append(n)\n    return {0: n}",
        "table(3)[0]",
    ),
    "filled before": (
        "@functools.lru_cache\ndef table(n):\n    calls.append(n)\n    return [n]\ntable(1)",
        "table(1)[0] + table(2)[0]",
    ),
    "of a method": (
        "class T:\n    @functools.cache\n    def get(self, n):\n        calls.append(n)\n        return n\nt = T()",
        "t.get(3)",
    ),
}


@pytest.mark.parametrize("cache", CACHES)
def test_a_refused_trace_leaves_caches_as_they_were(cache: str) -> None:
    """Or what a function does when it is called for the first time would never be done."""
    before, expression = CACHES[cache]
    found = []
    for kind in ("plain", "operator"):
        module = types.ModuleType("cached_effects")
        source = f"import functools\ncalls = []\n{before}\ndef f(x):\n    return x * ({expression})\n"
        exec(source, vars(module))
        settings = quiet_settings(optimized=False)
        call = module.f if kind == "plain" else Operator(module.f, name="tests::cached", settings=settings)
        results = [call(torch.ones(3)).tolist() for _ in range(4)]
        found.append((results, module.calls))
        assert module.f(torch.ones(3)).tolist() == results[0]
    assert found[0] == found[1]
