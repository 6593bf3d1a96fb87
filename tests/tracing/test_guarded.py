"""What goes wrong while a function is derived is told apart: what the function does, and what opwright does."""

import pytest
import torch
from torch import Tensor

from opwright.errors import InternalError, TracingFailed, UnsupportedReturn
from opwright.toolchain.source import Source
from opwright.tracing.guarded import guarded


def reference(x: Tensor) -> Tensor:
    return x.sum(5)


def raising(error: Exception) -> None:
    raise error


def test_what_torch_refuses_is_the_functions():
    with pytest.raises(TracingFailed) as refusal:
        guarded(reference, lambda: reference(torch.ones(2)))
    line = reference.__code__.co_firstlineno + 1
    said = f"{__file__}:{line}: tracing it failed with IndexError: Dimension out of range"
    assert str(refusal.value).startswith(said)
    assert refusal.value.hint is None


@pytest.mark.parametrize("error", [AssertionError(), KeyError("x"), AttributeError("no such name")])
def test_what_the_function_asserts_is_its_own(error):
    with pytest.raises(TracingFailed, match=f"tracing it failed with {type(error).__name__}"):
        guarded(reference, lambda: raising(error))


def test_a_mistake_of_opwright_is_said_to_be_one():
    with pytest.raises(TracingFailed) as refusal:
        guarded(reference, lambda: Source("1x", ""))
    assert isinstance(refusal.value.__cause__, InternalError)
    assert "deriving it failed with InternalError: the name of a source" in refusal.value.fact
    assert "at opwright/toolchain/source.py:" in refusal.value.fact
    assert "a fault of opwright" in refusal.value.fact
    assert refusal.value.hint


def test_a_refusal_stays_what_it_is():
    refusal = UnsupportedReturn("it returns a number")
    with pytest.raises(UnsupportedReturn) as raised:
        guarded(reference, lambda: raising(refusal))
    assert raised.value is refusal
