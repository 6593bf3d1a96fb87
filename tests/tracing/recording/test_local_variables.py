"""The local variables of a function that has returned, or has not been found."""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Callable

import torch
from torch import Tensor

from opwright.tracing.interface.specs import TensorSpec
from opwright.tracing.recording.local_variables import LocalVariables
from opwright.tracing.trace import trace


def helper(look: Callable[[], None]) -> int:
    inner = 1
    look()
    return inner


def test_they_are_as_they_were_when_the_function_returned() -> None:
    def function(x: int) -> int:
        early, late = x, 0
        helper(lambda: variables.look_for(sys._getframe(0)))
        late = early + 1
        del early
        return late

    variables = LocalVariables(function)
    function(2)
    assert {name: value for name, value in variables.taken().items() if name != "variables"} == {"x": 2, "late": 3}
    assert not variables.taken()


def test_a_wrapped_function_is_found() -> None:
    def function() -> None:
        inside = "found"
        helper(lambda: variables.look_for(sys._getframe(0)))
        del inside

    @functools.wraps(function)
    def wrapper() -> None:
        outside = "not looked for"
        function()
        del outside

    variables = LocalVariables(wrapper)
    wrapper()
    found = variables.taken()
    assert "variables" in found
    assert "outside" not in found


def test_there_are_none_of_what_does_not_run_or_has_no_code() -> None:
    for function in (test_a_wrapped_function_is_found, functools.partial(helper), len):
        variables = LocalVariables(function)
        variables.look_for(sys._getframe(0))
        assert not variables.taken()


def test_nothing_of_a_trace_stays_alive_after_it() -> None:
    class Witness:
        pass

    def reference(x: Tensor) -> Tensor:
        witness = Witness()
        return x.sin() if witness else x

    gc.disable()
    try:
        trace(reference, [TensorSpec("x", torch.float32, (4,))])
        assert not [found for found in gc.get_objects() if type(found) is Witness]
    finally:
        gc.enable()
