"""Random calls of random signatures give the same in C++ and in Python: values, types, identities, gradients, errors."""

from dataclasses import replace
from random import Random

import pytest

from opwright.binding.serving.server import Server
from opwright.binding.tape import Entry
from opwright.settings import Settings
from tests.binding.random_call import outcome, random_call, random_function

pytestmark = pytest.mark.falls_back

BY_DAY = range(6)
AT_NIGHT = range(6, 80)
CALLS = 10


class Slow:
    """Counts the calls that leave the hot path."""

    def __init__(self, monkeypatch):
        self.count = 0
        serve = Server._serve_slowly

        def counted(server, *args, **kwargs):
            self.count += 1
            return serve(server, *args, **kwargs)

        monkeypatch.setattr(Server, "_serve_slowly", counted)


def operators(function):
    """The same function on the hot path in C++, and on the one in Python."""
    settings = replace(Settings.from_environment(), notify=False, strict=False)
    return [function.operator(replace(settings, tape=tape)) for tape in ("now", "off")]


def assert_same(seed, slow=None, calls=CALLS):
    function, random = random_function(seed), Random(seed)
    native, python = operators(function)
    for _ in range(calls):
        call = random_call(function, random)
        for again in range(3):
            before = slow and slow.count
            found = outcome(native, call)
            left = slow and slow.count > before
            assert found == outcome(python, call), f"{call} of\n{function.text}"
        if again and slow and not call.is_odd and native.last_rung != "composed":
            assert not left, f"{call} leaves the hot path of\n{function.text}"


@pytest.mark.parametrize("seed", [*BY_DAY, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in AT_NIGHT)])
def test_random_calls(seed, monkeypatch):
    assert_same(seed, Slow(monkeypatch))
