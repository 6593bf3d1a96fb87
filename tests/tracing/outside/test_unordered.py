"""Lines that make sets: which count, and that a trace that runs one has no record."""

from __future__ import annotations

import textwrap
import types
import weakref
from typing import Any

import pytest
import torch
from torch import nn

from opwright.binding.variants.states import State
from opwright.tracing.outside.code.instructions import named_by
from opwright.tracing.outside.ran import spelled_code
from opwright.tracing.outside.reach import reads_of_module

ASKED = [
    "return x if isinstance(n['a'], set) else n",
    "return x if isinstance(n.get('a'), (list, set, tuple)) and issubclass(x, frozenset) else n",
    "return x if 'a' in {'a', x} else n",
    "return x if 'a' in {k for k in n} else n",
    "names = {k for k in n}\nreturn x if 'a' in names or x not in names else n",
    "names = {k for k in [j for j in n if j in {i for i in x}]}\nreturn 'a' in names",
    "names = {x, n}\nreturn 'a' in names",
    "names = {k + v for v in n for k in v if k}\nreturn x in names and n in names",
    "names = {*n}\nreturn 'a' in names",
    "for k, v in n.items():\n    x = x + v\nreturn x",
]
MADE = [
    "return x((list, set), n)",
    "return isinstance(x, list), n(x, set)",
    "names = {k for k in n}\nreturn [*names]",
    "names = {k for k in n}\nreturn 'a' in names and len(names)",
    "names = {x, n}\nreturn lambda: 'a' in names",
    "names = {x, n}\nreturn locals()",
    "names = {k for k in n}\nother = names\nreturn 'a' in other",
    "return list({k for k in n})",
    "return [k for k in {j for j in n}]",
    "return set(n)",
    "return [*{*n}]",
    "return [*{*n, x}]",
    "names = {k for v in n for k in v}\nreturn [*names]",
    "return {k: {j for j in k} for k in n}",
    "return [*{1 for x.y in n}]",
    "return n.keys() - x",
    "return n.union(x)",
    "names = n.items()\nreturn names & x",
    "def inner():\n    return {x, n}\nreturn inner()",
]


def _code(body: str) -> types.CodeType:
    space: dict[str, Any] = {}
    exec("def f(x, n):\n" + textwrap.indent(body, "    "), space)
    code: types.CodeType = space["f"].__code__
    return code


@pytest.mark.parametrize("body", ASKED)
def test_sets_that_are_only_asked_for_members_do_not_count(body: str) -> None:
    assert not named_by(_code(body)).sets


@pytest.mark.parametrize("body", MADE)
def test_sets_that_may_be_gone_through_count(body: str) -> None:
    assert named_by(_code(body)).sets


class Ordering(nn.Module):
    def __init__(self, *, orders: bool, fails: bool = False) -> None:
        super().__init__()
        self.orders, self.fails = orders, fails

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        asked = {name.lower() for name in ("Sine", "Cosine")}
        x = x.sin() if "sine" in asked else x
        if self.orders:
            for power in {name[:1] for name in ("1st", "2nd")}:
                x = x + int(power)
        if self.fails:
            raise ValueError("as it should")
        return x


def _traced(module: Ordering, *, tells_what_runs: bool = True) -> State:
    ran = frozenset({spelled_code(Ordering.forward.__code__)}) if tells_what_runs else None
    state = State(weakref.ref(module), reads_of_module(weakref.ref(module), ran))
    assert (state.identity is not None) == tells_what_runs
    state.tracing(module.forward, lambda function: function(torch.ones(2)))
    return state


def test_only_a_trace_that_makes_a_set_has_no_record() -> None:
    assert _traced(Ordering(orders=False)).identity is not None
    assert _traced(Ordering(orders=True)).identity is None


def test_a_trace_that_fails_after_making_one_has_no_record_either() -> None:
    module = Ordering(orders=True, fails=True)
    ran = frozenset({spelled_code(Ordering.forward.__code__)})
    state = State(weakref.ref(module), reads_of_module(weakref.ref(module), ran))
    with pytest.raises(ValueError, match="as it should"):
        state.tracing(module.forward, lambda function: function(torch.ones(2)))
    assert state.identity is None


def test_where_nothing_tells_what_runs_no_record_is_made() -> None:
    assert _traced(Ordering(orders=False), tells_what_runs=False).identity is None
