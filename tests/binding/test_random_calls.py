"""Random calls of random signatures give the same in C++ and in Python: values, types, identities, errors."""

import functools
from dataclasses import replace
from random import Random

import pytest

from opwright.binding import tape
from opwright.binding.serving import hot_path, numbers
from opwright.binding.serving.server import Server
from opwright.settings import Settings
from tests.binding.random_call import RandomCall, RandomFunction, outcome, random_call, random_function
from tests.suite.nights import mostly_at_night

pytestmark = pytest.mark.falls_back

CALLS = 10


def operators(function):
    """The same function on the hot path in C++, and on the one in Python."""
    settings = replace(Settings.from_environment(), notify=False, strict=False)
    return [function.operator(replace(settings, tape=tape)) for tape in ("now", "off")]


@pytest.fixture
def slow(monkeypatch):
    """The servers of the calls that have left the hot path."""
    servers = []
    serve = Server._serve_slowly

    def remembering(server, *args, **kwargs):
        servers.append(server)
        return serve(server, *args, **kwargs)

    monkeypatch.setattr(Server, "_serve_slowly", remembering)
    return servers


def assert_same(function, calls, slow):
    native, python = operators(function)
    for call in calls:
        for _ in range(3):
            slow.clear()
            found = outcome(native, call)
            left = bool(slow)
            assert found == outcome(python, call), f"{call} of\n{function.text}"
        if not call.is_odd and native.last_rung == "cpp":
            assert not left, f"{call} leaves the hot path of\n{function.text}"


@pytest.mark.parametrize("seed", mostly_at_night(range(80), by_day=2))
def test_random_calls(seed, slow):
    function, random = random_function(seed), Random(seed)
    assert_same(function, [random_call(function, random) for _ in range(CALLS)], slow)


def planted(text, *constants, mutates=()):
    """A function of two tensors and constants, and calls of it with these constants."""
    function = RandomFunction("planted", f"def planted{text}\n", (), mutates)
    calls = [
        RandomCall((lambda t: t(), lambda t: t(), *[lambda _, v=v: v for v in values]), (), gradients, 1, False)
        for values in constants
        for gradients in (False, True)
    ]
    return function, calls


FLAG = planted("(x: Tensor, y: Tensor, flag: bool) -> Tensor: return x.sin() if flag else y.cos()", (True,), (False,))
ZERO = planted("(x: Tensor, y: Tensor, k: float) -> Tensor: return x / k + y", (0.0,), (-0.0,))
FLOAT = planted("(x: Tensor, y: Tensor, k: float) -> Tensor: return x / k + y", (0.5,), (2.0,), (0.25,))
SIGN = planted("(x: Tensor, y: Tensor, k: float) -> Tensor: return x * k if k > 0 else y + k", (1.0,), (2.0,), (3.0,))
DEFAULT = planted("(x: Tensor, y: Tensor, k: float = 3.0) -> Tensor: return (x - y) * k", (4.0,), ())
DICT = planted("(x: Tensor, y: Tensor) -> dict[str, Tensor]: return {'a': x.sin(), 'b': y.cos()}", ())
PAIR = planted("(x: Tensor, y: Tensor) -> Pair: return Pair(x.sin(), y.cos())", ())
GIVEN = planted("(x: Tensor, y: Tensor) -> dict[str, object]: return {'a': x, 'b': y * x, 'c': 1}", ())
RECORD = planted("(x: Tensor, y: Tensor): return torch.aminmax(x * y)", ())
NONE = planted("(x: Tensor, y: Tensor) -> None: x.mul_(y)", (), mutates=["x"])
CHANGED = planted("(x: Tensor, y: Tensor) -> Tensor: return x.mul_(y).mul_(y)", (), mutates=["x"])


class NoResults:
    """An entry that takes None for a call that it has not taken."""

    def __init__(self, entry):
        self.flats, self._entry = entry.flats, entry

    def play(self, *args):
        return self._entry.play(*args) or NotImplemented


# Each makes something that C++ is given wrong: (where, what calls it, how it is made wrong).
FAULTS = {
    "constants are not compared": ("_way", FLAG, lambda right, variant: (*right(variant)[:3], [])),
    "0.0 stands for -0.0": (
        "_way",
        ZERO,
        lambda right, variant: (*right(variant)[:3], [(p, abs(k)) for p, k in right(variant)[3]]),
    ),
    "floats are taken for ints": ("Varying", FLOAT, lambda right, position, kind, apart: right(position, int, apart)),
    "guards of the negative number": (
        "_number_guard",
        SIGN,
        lambda right, *given: (right(*given)[0], -right(*given)[1], *right(*given)[2:]),
    ),
    "another default": (
        "_parameter",
        DEFAULT,
        lambda right, p: (p.name, 4.0 if p.name == "k" else p.default, False, False),
    ),
    "keys in another order": (
        "spec_of",
        DICT,
        lambda right, layout: (*right(layout)[:1], ("b", "a"), right(layout)[2]),
    ),
    "another class": ("spec_of", PAIR, lambda right, layout: (1, None, right(layout)[2])),
    "outputs are exchanged": ("_member", PAIR, lambda _, member: (0, 1 - member.position)),
    "another argument": ("_member", GIVEN, lambda right, m: (1, 1) if right(m) == (1, 0) else right(m)),
    "another constant": ("_member", GIVEN, lambda right, m: (2, True) if right(m) == (2, 1) else right(m)),
    "None is taken for no result": (
        "Entry",
        NONE,
        lambda right, *given: NoResults(right(*given)),
    ),
    "another argument changes": (
        "Entry",
        CHANGED,
        lambda right, signature, flats, changed: right(signature, flats, [1]),
    ),
    "a record is a tuple": ("spec_of", RECORD, lambda right, layout: (1, None, right(layout)[2])),
}


@pytest.mark.parametrize("fault", mostly_at_night(FAULTS, by_day=[*FAULTS][::6]))
def test_what_is_planted_is_found(fault, slow, monkeypatch):
    name, (function, calls), wrong = FAULTS[fault]
    assert_same(function, calls, slow)
    module = {"Varying": numbers, "Entry": hot_path}.get(name, tape)
    monkeypatch.setattr(module, name, functools.partial(wrong, getattr(module, name)))
    with pytest.raises(AssertionError, match="planted"):
        assert_same(function, calls, slow)
