"""The text of a reference goes into a wheel if it computes what the reference computes."""

import pytest
import torch

import opwright
from opwright.deployment.wheels.faithful import refuse_unfaithful
from opwright.deployment.wheels.wheel import build_wheel
from opwright.errors import WheelUnsupported
from opwright.operators.reference_text import reference_text

SCALE = 1 / 3
TABLE = {"a": 1}


@opwright.operator(samples=opwright.shapes("A", A=3))
def decorated(x: torch.Tensor) -> torch.Tensor:
    return x * SCALE


@opwright.operator(samples=opwright.shapes("A", A=3))
def with_table(x: torch.Tensor) -> torch.Tensor:
    return x * TABLE["a"]


def test_what_has_no_text_is_refused_by_name(tmp_path):
    words = "with_table uses TABLE, a value of type dict, so it cannot be carried in a wheel\nhint: use numbers"
    with pytest.raises(WheelUnsupported, match=words):
        build_wheel([with_table], tmp_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def decorated(x):\n    return x * 2", "gives other results"),
        ("def decorated(x):\n    return (x / 3).double()", "gives other results"),
        ("def decorated(x):\n    return x.nothing", "raises AttributeError"),
    ],
)
def test_a_text_that_computes_something_else_is_refused(text, words):
    written = reference_text([decorated.reference], with_packages=False).text("")
    refuse_unfaithful(written, decorated, [torch.float32])
    with pytest.raises(WheelUnsupported, match=words):
        refuse_unfaithful(text, decorated, [torch.float32])
