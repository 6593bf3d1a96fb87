"""Methods of tensors called as functions, such as `torch.Tensor.__rdiv__(x, y)`: many are written in Python."""

import types

import pytest
import torch
from torch import Tensor

from opwright.api.operator import Operator
from opwright.errors import UndeclaredMutation
from tests.quiet_settings import quiet_settings
from tests.suite.nights import mostly_at_night

pytestmark = [
    pytest.mark.built_together,
    pytest.mark.falls_back,  # not every method has a kernel
]

# What is no function of values: identities, files, hooks and memory.
_APART = ("__dlpack__", "__hash__", "__iter__", "reduce", "__deepcopy__", "__setstate__", "__torch", "__dir__",
          "hook", "backward", "share_memory", "storage", "__repr__", "__format__", "_typed", "__array")  # fmt: skip
METHODS = [
    name
    for name in vars(Tensor)
    if isinstance(getattr(Tensor, name), types.FunctionType) and not any(apart in name for apart in _APART)
]
ARITHMETIC = ("__rdiv__", "__rsub__", "__rpow__", "__rmod__", "__floordiv__", "__rfloordiv__", "__pow__", "norm")
X, Y = torch.tensor([0.5, -1.25, 2.0]), torch.tensor([1.5, 0.5, -2.0])
ARGUMENTS = [(X,), (X, Y), (X, 2.0), (torch.eye(3) * 2 + 1,), (torch.tensor([3, -1, 2]), torch.tensor([1, 2, 3]))]


def _outcome(function, arguments):
    """What a call gives, or the type of what it raises."""
    try:
        return function(*[each.clone() if isinstance(each, Tensor) else each for each in arguments])
    except Exception as error:
        return type(error)


@pytest.mark.filterwarnings("ignore")  # torch's own, of methods that are to go
@pytest.mark.parametrize("name", mostly_at_night(METHODS, by_day=[*ARITHMETIC, *METHODS[::4]]))
def test_methods_give_what_they_give_in_eager(name):
    method = getattr(Tensor, name)
    for arguments in ARGUMENTS:
        expected = _outcome(method, arguments)
        if isinstance(expected, type):
            continue  # a wrong call
        operator = Operator(lambda *given: method(*given), settings=quiet_settings(optimized=False))
        result = _outcome(operator, arguments)
        if result is UndeclaredMutation:
            continue
        if isinstance(expected, Tensor) or (isinstance(expected, tuple) and isinstance(expected[0], Tensor)):
            torch.testing.assert_close(result, expected, equal_nan=True)
        else:
            assert result == expected


def test_there_are_methods_in_the_table():
    assert {"__rdiv__", "__rsub__", "__rpow__", "__floordiv__", "__rfloordiv__", "__pow__", "norm"} <= set(METHODS)
