"""`opwright.operator` given a function together with its options, and given the options first."""

import inspect

import pytest
import torch
from torch import Tensor

import opwright


def scaled(x: Tensor, factor: float = 2.0) -> Tensor:
    return x * factor


def doubled(x: Tensor) -> None:
    x.mul_(2)


def samples(device, dtype):
    return [opwright.Sample((torch.ones(3, device=device, dtype=dtype),))]


OUTSIDE = 2.0


def scaled_from_outside(x: torch.Tensor) -> torch.Tensor:
    return x * OUTSIDE


# Option: its value, and what it changes.
OPTIONS = {
    "name": (scaled, "elsewhere::scaled_by_a_name", lambda operator: operator.name),
    "samples": (scaled, samples, lambda operator: operator.samples),
    "save": (scaled, "inputs", lambda operator: operator.save),
    "mutates": (doubled, ("x",), lambda operator: _changed(operator)),
    "inline": (scaled, True, lambda operator: operator.inline),
    "autocast": (scaled, "fp32", lambda operator: operator.autocast),
    "freeze": (scaled_from_outside, ("OUTSIDE",), lambda operator: _after_a_change(operator)),
}


def _after_a_change(operator):
    """A result once what is read from outside is another value."""
    global OUTSIDE
    OUTSIDE = 2.0
    operator(torch.ones(3))
    OUTSIDE = 3.0
    return operator(torch.ones(3)).tolist()


def _changed(operator):
    """The argument after a call, or the refusal to change it."""
    x = torch.ones(3)
    try:
        operator(x)
    except opwright.errors.UndeclaredMutation as refusal:
        return type(refusal)
    return x.tolist()


def test_the_table_has_every_option():
    parameters = inspect.signature(opwright.operator).parameters.values()
    assert {p.name for p in parameters if p.kind is p.KEYWORD_ONLY} == set(OPTIONS)


@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_has_the_same_effect_either_way(option):
    function, value, effect = OPTIONS[option]
    first, together = opwright.operator(**{option: value})(function), opwright.operator(function, **{option: value})
    assert effect(first) == effect(together) != effect(opwright.operator(function))
