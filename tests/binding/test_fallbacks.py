"""Falling back: one warning for each reason, at the line that called; an error under the strict setting."""

from __future__ import annotations

import inspect
import subprocess
import sys
import warnings
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

import opwright
from opwright.api.operator import Operator
from opwright.errors import FallbackRefused, FallbackWarning, UntraceableReference
from opwright.settings import Settings
from tests.suite.warm_python import run


def branch(x: Tensor) -> Tensor:
    return x * 3 if x.sum() > 0 else x * x


def other_branch(x: Tensor) -> Tensor:
    if x.dim() == 2:
        return x * x.max().item()
    return x * 3 if x.sum() > 0 else x * x


def made(reference, **settings):
    return Operator(reference, settings=replace(Settings.from_environment(), strict=False, **settings))


class Holding(torch.nn.Module):
    def __init__(self, operator):
        super().__init__()
        self.operator = operator

    def forward(self, x):
        return self.operator(x)


def test_one_warning_stands_at_the_line_that_called(recwarn):
    operator = made(branch)
    for _ in range(3):
        operator(torch.ones(3))
    (said,) = recwarn
    assert said.category is FallbackWarning
    assert issubclass(FallbackWarning, UserWarning)
    called = inspect.getsourcelines(test_one_warning_stands_at_the_line_that_called)[1] + 3
    assert (said.filename, said.lineno) == (__file__, called)
    defined = inspect.getsourcelines(branch)[1] + 1
    text = f"opwright: branch falls back to your function: {__file__}:{defined}: branch looks at the values of a tensor"
    assert str(said.message).startswith(text)
    assert "(hint: choose with torch.where" in str(said.message)


@pytest.mark.falls_back
def test_frames_of_torch_are_no_callers(recwarn):
    served = opwright.module(Holding(made(branch)))
    served(torch.ones(3))
    assert {said.filename for said in recwarn} == {__file__}


def test_each_reason_is_told_and_each_operator_tells_it(recwarn):
    warnings.simplefilter("always")  # or Python itself leaves out the second of one text at one line
    first, second = made(other_branch), made(other_branch)
    for operator in (first, second):
        for x in (torch.ones(3), torch.ones(2, 2), torch.ones(4)):
            operator(x)
    said = [str(warning.message) for warning in recwarn]
    assert len(said) == 4
    assert len(set(said)) == 2


def test_a_quiet_operator_says_nothing(recwarn):
    made(branch, notify=False)(torch.ones(3))
    assert not list(recwarn)


def test_where_warnings_are_errors_every_call_raises():
    operator = made(branch)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        for _ in range(2):
            with pytest.raises(FallbackWarning, match="branch falls back to your function"):
                operator(torch.ones(3))


def test_strict_settings_refuse_with_fact_place_and_hint():
    operator = Operator(branch, settings=replace(Settings.from_environment(), strict=True))
    for _ in range(2):
        with pytest.raises(FallbackRefused) as raised:
            operator(torch.ones(3))
        assert raised.value.fact.startswith(
            "branch falls back to your function: branch looks at the values of a tensor"
        )
        assert str(raised.value.place) == f"{__file__}:{inspect.getsourcelines(branch)[1] + 1}"
        assert raised.value.hint.startswith("choose with torch.where")
        assert isinstance(raised.value.__cause__, UntraceableReference)


class Listened(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Tanh()

    def forward(self, x):
        return self.inner(x) * 2


def test_strict_settings_hold_for_modules():
    listened = Listened()
    listened.inner.register_forward_hook(lambda *_: None)
    with pytest.raises(FallbackRefused, match="Listened falls back to its parts: its module 'inner' has hooks"):
        opwright.module(listened)(torch.ones(3))


def plainly_served(x: Tensor) -> Tensor:
    return torch.sin(x) * 2


class Sub(Tensor):
    pass


SILENT = {
    "an empty tensor": lambda operator: operator(torch.ones(0)),
    "a subclass": lambda operator: operator(torch.ones(3).as_subclass(Sub)),
    "autocast": lambda operator: _under(torch.autocast("cpu", torch.bfloat16), operator),
    "a mode": lambda operator: _under(FlopCounterMode(display=False), operator),
    "a half type as default": lambda operator: _by_default(torch.bfloat16, operator),
    "functionalization": lambda operator: torch.func.functionalize(operator)(torch.ones(3)),
    "the composed rung": lambda operator: operator.on("composed")(torch.ones(3)),
}


def _under(context, operator):
    with context:
        return operator(torch.ones(3))


def _by_default(dtype, operator):
    torch.set_default_dtype(dtype)
    try:
        return operator(torch.ones(3))
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("call", SILENT.values(), ids=SILENT)
def test_what_is_the_references_by_design_is_silent_under_strict_settings(call, recwarn):
    operator = Operator(plainly_served, settings=replace(Settings.from_environment(), strict=True))
    call(operator)
    assert operator.last_rung == "composed"
    assert not [said for said in recwarn if said.category is FallbackWarning]


CALL = """
import os, warnings
if chosen := os.environ.get("FILTER"):
    warnings.simplefilter(chosen, UserWarning)
import torch, opwright
@opwright.operator
def f(x: torch.Tensor) -> torch.Tensor:
    return x * x.max().item()
f(torch.ones(3))
print("served")
"""


@pytest.mark.parametrize(
    ("variables", "status", "out", "err"),
    [
        ({"OPWRIGHT_STRICT": "0", "OPWRIGHT_QUIET": "1"}, 0, "served", ""),
        ({"OPWRIGHT_STRICT": "1", "OPWRIGHT_QUIET": "1"}, 1, "", "opwright.errors.FallbackRefused: "),
        ({"OPWRIGHT_STRICT": "", "FILTER": "error"}, 1, "", "FallbackWarning: "),
        pytest.param(
            *({"OPWRIGHT_STRICT": "", "PYTHONWARNINGS": "error::UserWarning"}, 1, "", "FallbackWarning: "),
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_the_environment_decides(variables, status, out, err, monkeypatch, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(CALL)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    if "PYTHONWARNINGS" in variables:  # which only a new Python reads
        done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    else:
        done = run(str(script))
    assert (done.returncode, done.stdout.strip()) == (status, out), done.stderr
    assert err in done.stderr
    assert err or not done.stderr


def in_a_list(xs: list[Tensor]) -> Tensor:
    return xs[0] * xs[-1].max().item()


def test_an_operator_of_structures_tells_a_reason_once_for_all_of_them(recwarn):
    warnings.simplefilter("always")
    operator = made(in_a_list)
    for length in (1, 2, 3):
        operator([torch.ones(3)] * length)
    assert len(recwarn) == 1
