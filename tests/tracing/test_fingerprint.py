"""A fingerprint changes with everything that a reference's behaviour depends on, and with nothing else."""

import functools
import types

import pytest
import torch
from opwright.tracing.fingerprint import fingerprint

HELPER = "def helper(x):\n    return x * {factor}\n"
MODULE = types.ModuleType("a_module_of_the_user")
exec("def member(x):\n    return x * 2\n", vars(MODULE))
vars(MODULE)["member"].__module__ = "a_module_of_the_user"
OTHER = types.ModuleType("a_module_of_the_user")
exec("def member(x):\n    return x * 3\n", vars(OTHER))
vars(OTHER)["member"].__module__ = "a_module_of_the_user"


def made(text, **names):
    """The function `f` of a text, in a module of the user's own."""
    namespace = {"torch": torch, "__name__": "a_file", **names}
    exec(text, namespace)
    return namespace["f"]


def closed_over(value):
    def f(x):
        return x * value

    return f


PAIRS = {
    "body": (made("def f(x): return x * 2"), made("def f(x): return x * 3")),
    "operation": (made("def f(x): return x.sin()"), made("def f(x): return x.cos()")),
    "default": (made("def f(x, k=2): return x * k"), made("def f(x, k=3): return x * k")),
    "closure": (closed_over(2.0), closed_over(3.0)),
    "sign of zero": (closed_over(0.0), closed_over(-0.0)),
    "int or float": (closed_over(1), closed_over(1.0)),
    "global": (made("def f(x): return x * K", K=2), made("def f(x): return x * K", K=3)),
    "tuple": (made("def f(x): return x * K[0]", K=(2, 1)), made("def f(x): return x * K[0]", K=(3, 1))),
    "dtype": (made("def f(x): return x.to(K)", K=torch.half), made("def f(x): return x.to(K)", K=torch.float)),
    "helper": (
        made(HELPER.format(factor=2) + "def f(x): return helper(x)"),
        made(HELPER.format(factor=3) + "def f(x): return helper(x)"),
    ),
    "member": (made("def f(x): return M.member(x)", M=MODULE), made("def f(x): return M.member(x)", M=OTHER)),
    "inner function": (
        made("def f(x):\n    def g(y): return y * 2\n    return g(x)"),
        made("def f(x):\n    def g(y): return y * 3\n    return g(x)"),
    ),
    "under vmap": (torch.vmap(closed_over(2.0)), torch.vmap(closed_over(3.0))),
}


@pytest.mark.parametrize("what", PAIRS)
def test_a_change_is_seen(what):
    left, right = map(fingerprint, PAIRS[what])
    assert None not in (left, right)
    assert left != right


@pytest.mark.parametrize(
    "text", ["def f(x): return x * 2", HELPER.format(factor=2) + "def f(x, k=1.5): return torch.relu(helper(x)) * k"]
)
def test_the_same_text_elsewhere_is_the_same(text):
    assert fingerprint(made(text)) == fingerprint(made("\n\n# moved\n" + text))


class Thing:
    pass


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2


def not_assigned_yet():
    def f(x):
        return later(x)

    digest = fingerprint(f)
    later = torch.sin
    return digest if later else None


@pytest.mark.parametrize(
    "value",
    [
        torch.ones(2),
        Thing(),
        [1, 2],
        {"a": 1},
        Thing,
        functools.partial(torch.clamp, min=0.1),
        torch.nn.LeakyReLU(0.1),
        {"a": 2}.get,
        torch.ones(2).add,
        Double.apply,
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_may_hold_a_state_has_no_fingerprint(value):
    assert fingerprint(closed_over(value)) is None
    assert fingerprint(made("def f(x): return thing(x)", thing=value)) is None


def test_a_name_that_is_assigned_later_has_no_fingerprint_yet():
    assert not_assigned_yet() is None
