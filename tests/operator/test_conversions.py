"""Numbers that become integers and numbers again, as torch converts them, whatever a compiler makes of both."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from opwright.api.operator import Operator
from tests.quiet_settings import quiet_settings
from tests.suite.nights import mostly_at_night


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("integer", mostly_at_night([torch.int32, torch.int64, torch.int16, torch.uint8], 2))
def test_a_number_that_was_an_integer_is_no_negative_zero(integer: torch.dtype, dtype: torch.dtype) -> None:
    def reference(x: Tensor) -> Tensor:
        return 1 / (x * 2).to(integer).to(dtype)

    operator = Operator(reference, name=f"tests::{integer}_and_back".replace("torch.", ""), settings=quiet_settings())
    x = torch.tensor([-0.25, -0.0, 0.25, 1.75, 100.0, 3e9, -3e9], dtype=dtype)
    for count in (1, 40):  # in vectors, too
        given = x.repeat(count)[: None if integer.is_signed and integer.itemsize > 2 else 5]
        assert torch.equal(operator(given), reference(given))
    assert operator.last_rung == "cpp"
