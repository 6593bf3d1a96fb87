"""`out=` of the result's dtype and of others, for PyTorch's table of operations: eager's values, or eager's errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from opwright.api.operator import Operator
from opwright.samples import Sample
from tests.opinfo.cases import LEFT_OUT, Case, case_of, operations, samples_of
from tests.suite.nights import mostly_at_night

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # PyTorch's samples use what PyTorch advises against
    pytest.mark.falls_back,
]

BY_DAY = ("cumsum", "mm", "tril")
OTHERS = (torch.float32, torch.float64, torch.bool, torch.complex64, torch.int64)
NAMES = [name for name, info in operations().items() if info.supports_out and torch.float32 in info.dtypes]


@pytest.mark.parametrize("name", mostly_at_night(NAMES, BY_DAY))
@pytest.mark.parametrize("dtype", OTHERS)
def test_values_and_errors(name: str, dtype: torch.dtype) -> None:
    if name in LEFT_OUT:
        pytest.skip(LEFT_OUT[name])
    info = operations()[name]
    for sample in samples_of(info, torch.float32, 1):
        try:
            case = case_of(info, sample)
            (result,) = case.function(*(tensor.detach() for tensor in case.tensors))
        except Exception:  # it is no function of tensors with one result
            continue
        function = _into(info.op, sample, tuple(result.shape), dtype)
        about = {"name": f"tests::out_{case.function.__name__}", "signature": case.signature}
        operator = Operator(function, freeze=("op", "sample", "shape", "dtype"), **about)
        expected, found = (_outcome(each, case) for each in (function, operator))
        torch.testing.assert_close(found, expected, equal_nan=True, rtol=1e-5, atol=1e-6)


def _into(op: Any, sample: Sample, shape: tuple[int, ...], dtype: torch.dtype) -> Callable[..., Tensor]:
    def written_out(*given: Tensor) -> Tensor:
        call = sample.with_tensors(given)
        out = given[0].new_zeros(shape, dtype=dtype)
        op(*call.args, **call.kwargs, out=out)
        return out.clone()

    return written_out


def _outcome(function: Any, case: Case) -> Any:
    """The result of a call; of one that raises, the type of its error."""
    torch.manual_seed(0)
    try:
        return function(*(tensor.detach().clone() for tensor in case.tensors))
    except Exception as error:
        return [hash(type(error))]
