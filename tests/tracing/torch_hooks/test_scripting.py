"""`torch.jit.script` takes calls of operators, as calls of their names."""

import pytest
import torch
from torch.jit import _builtins

import opwright

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")


def test_a_scripted_call_is_one_of_the_operator():
    @opwright.operator(name="scripted_calls::raised")
    def raised(x: torch.Tensor, power: int) -> torch.Tensor:
        return x.tanh() ** power

    def twice(x: torch.Tensor):
        return raised(x, 2) + raised(x, power=3)

    scripted = torch.jit.script(twice)
    assert [node.kind() for node in scripted.graph.nodes()].count("scripted_calls::raised") == 2
    x = torch.randn(3, 4)
    torch.testing.assert_close(scripted(x), raised.reference(x, 2) + raised.reference(x, 3))


def test_a_name_is_that_of_the_last_operator_of_the_name():
    def made(number: int):
        @opwright.operator(name="scripted_calls::made")
        def shifted(x: torch.Tensor) -> torch.Tensor:
            return x + number

        return shifted

    table = _builtins._get_builtin_table()
    first = made(1)
    assert table[id(first)] == "scripted_calls::made"
    second = made(2)  # has the name now
    assert id(first) not in table
    assert table[id(second)] == "scripted_calls::made"
