"""Operations of tensors that lie transposed in a function: eager's values, strides and gradients of two orders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.opinfo.cases import LEFT_OUT, Case, cases_of, operations, operator_of
from tests.suite.nights import mostly_at_night
from tests.suite.strides import stride_difference

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # PyTorch's samples use what PyTorch advises against
    pytest.mark.falls_back,
]

D = torch.float64
BY_DAY = ("cumsum", "linalg.det", "tril")
EXCEPTIONS = LEFT_OUT | dict.fromkeys(
    ["native_batch_norm", "_native_batch_norm_legit", "_batch_norm_with_update", "nn.functional.batch_norm"],
    "changes running statistics, seen through a view",
)
# Their results lie in another order than eager's: of these, values are compared alone.
LIE_OTHERWISE = (
    *("native_dropout_backward", "nn.functional.conv1d", "nn.functional.conv_transpose1d"),
    *("nn.functional.max_unpool1d", "to", "linalg.lstsq", "linalg.lstsq.grad_oriented"),
)
NAMES = [name for name, info in operations().items() if D in info.dtypes]


@pytest.mark.parametrize("name", mostly_at_night(NAMES, BY_DAY))
def test_what_lies_transposed(name: str) -> None:
    if name in EXCEPTIONS:
        pytest.skip(EXCEPTIONS[name])
    for position, case in enumerate(cases_of(name, D, 3)):
        if not any(tensor.dim() > 1 for tensor in case.tensors):
            continue
        function = _of_transposed(case.function)
        operator = operator_of(case, f"transposed_{case.function.__name__}_{position}", function)
        expected = _every_order(function, case)
        found = _every_order(operator, case)
        if not {"results", "gradients"} <= expected.keys():
            continue
        common = found.keys() & expected.keys()  # a gradient that is constant requires none in kernels
        assert {"results", "gradients"} <= common
        for what in sorted(common):
            torch.testing.assert_close(found[what], expected[what], equal_nan=True, rtol=1e-6, atol=1e-8)
        differ = [stride_difference(*pair) for pair in zip(found["results"], expected["results"], strict=True)]
        assert name in LIE_OTHERWISE or not any(differ), (name, differ)


@pytest.mark.parametrize("name", mostly_at_night(NAMES, BY_DAY))
def test_tangents_of_what_lies_transposed(name: str) -> None:
    if name in EXCEPTIONS:
        pytest.skip(EXCEPTIONS[name])
    for position, case in enumerate(cases_of(name, D, 2)):
        if not any(tensor.dim() > 1 for tensor in case.tensors):
            continue
        function = _of_transposed(case.function)
        operator = operator_of(case, f"moves_{case.function.__name__}_{position}", function)
        try:
            expected = _tangents(function, case)
        except RuntimeError:  # torch has no formula
            continue
        torch.testing.assert_close(_tangents(operator, case), expected, equal_nan=True, rtol=1e-6, atol=1e-8)


def _tangents(function: Callable[..., Any], case: Case) -> Any:
    """Those of the results, along a direction of no symmetry; what requires no gradient does not move."""
    given = [tensor.detach().mT if tensor.dim() > 1 else tensor.detach() for tensor in case.tensors]
    given = [tensor.clone(memory_format=torch.contiguous_format) for tensor in given]
    places = [place for place, tensor in enumerate(case.tensors) if tensor.requires_grad]
    if not places:
        return None

    def moved(*values: Tensor) -> tuple[Tensor, ...]:
        arguments = list(given)
        for place, value in zip(places, values, strict=True):
            arguments[place] = value
        return tuple(each for each in function(*arguments) if each.is_floating_point() or each.is_complex())

    primals = tuple(given[place] for place in places)
    directions = (torch.arange(each.numel(), dtype=D).view(each.shape).sin().to(each.dtype) for each in primals)
    torch.manual_seed(0)
    return torch.func.jvp(moved, primals, tuple(directions))[1]


def _of_transposed(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of the transposed of each matrix."""

    def of_transposed(*given: Tensor) -> Any:
        return function(*(tensor.mT if tensor.dim() > 1 else tensor for tensor in given))

    return of_transposed


def _every_order(function: Callable[..., Any], case: Case) -> Any:
    """Results, gradients and second gradients, as far as there are any."""
    torch.manual_seed(0)
    leaves = [
        (tensor.mT if tensor.dim() > 1 else tensor).detach().clone(memory_format=torch.contiguous_format)
        for tensor in case.tensors
    ]
    given = [leaf.requires_grad_(tensor.requires_grad) for leaf, tensor in zip(leaves, case.tensors, strict=True)]
    moving = [leaf for leaf in given if leaf.requires_grad]
    found: dict[str, Any] = {}
    try:
        found["results"] = function(*given)
        outputs = [result for result in found["results"] if result.requires_grad]
        if moving and outputs:
            found["gradients"] = _gradients(outputs, moving)
            further = [gradient for gradient in found["gradients"] if gradient.requires_grad]
            if further:
                found["second"] = _gradients(further, moving)
    except RuntimeError:  # eager's own
        pass
    return found


def _gradients(outputs: list[Tensor], moving: list[Tensor]) -> tuple[Tensor, ...]:
    cotangents = [torch.linspace(0.5, 1.5, each.numel()).view(each.shape).to(each.dtype) for each in outputs]
    return torch.autograd.grad(
        outputs, moving, cotangents, allow_unused=True, materialize_grads=True, create_graph=True
    )
