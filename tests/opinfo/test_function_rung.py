"""The emitted Python of every operation in PyTorch's test table gives what the operation gives, and its gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from opwright.api.operator import Operator
from opwright.errors import OpwrightError
from opwright.tracing.interface.signature import Kind, Parameter, Signature
from tests.opinfo.cases import LEFT_OUT, Case, cases_of, operations, operator_of
from tests.suite.nights import mostly_at_night

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's samples use what PyTorch advises against

D = torch.float64
BY_DAY = ("cdist", "linalg.inv_ex", "linalg.pinv")
EXCEPTIONS = LEFT_OUT | {
    "linalg.eig": "PyTorch asks the values whether what is computed of eigenvectors depends on their phase",
}
NAMES = [name for name, info in operations().items() if D in info.dtypes]


@pytest.mark.parametrize("name", mostly_at_night(NAMES, BY_DAY))
def test_values_and_gradients(name: str) -> None:
    if name in EXCEPTIONS:
        pytest.skip(EXCEPTIONS[name])
    for position, case in enumerate(cases_of(name, D, 4)):
        python = operator_of(case, f"python_{case.function.__name__}_{position}").on("function")
        try:
            found = _values_and_gradients(python, case)
        except OpwrightError:
            continue
        torch.testing.assert_close(found, _values_and_gradients(case.function, case), equal_nan=True)


def _values_and_gradients(function: Callable[..., Any], case: Case) -> Sequence[Any]:
    given = [
        t.detach().clone(memory_format=torch.preserve_format).requires_grad_(t.requires_grad) for t in case.tensors
    ]
    torch.manual_seed(0)
    results = function(*given)
    moving = [tensor for tensor in given if tensor.requires_grad]
    outputs = [result for result in results if result.requires_grad]
    if not moving or not outputs:
        return results
    cotangents = [torch.linspace(0.5, 1.5, each.numel()).view(each.shape).to(each.dtype) for each in outputs]
    gradients = torch.autograd.grad(outputs, moving, cotangents, allow_unused=True, materialize_grads=True)
    return [*results, *gradients]


def attention(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    x = x[None, None]
    return (torch.nn.functional.scaled_dot_product_attention(x, x, x),)


def test_what_an_internal_operation_reads_is_contiguous() -> None:
    x = torch.randn(3, 4, dtype=D).t().requires_grad_()
    case = Case(attention, (x,), Signature((Parameter("x", Kind.TENSOR, False),), None))
    python = Operator(attention, name="tests::python_of_attention").on("function")
    torch.testing.assert_close(_values_and_gradients(python, case), _values_and_gradients(attention, case))


def test_integers_have_a_function_without_gradients() -> None:
    python = Operator(lambda x: x + 1, name="tests::python_of_integers").on("function")
    assert python(torch.arange(3)).tolist() == [1, 2, 3]
