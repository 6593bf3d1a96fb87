"""Gradients and tangents of each argument alone, for PyTorch's whole table: eager's values, or its errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.opinfo.cases import LEFT_OUT, Case, cases_of, operations, operator_of
from tests.suite.nights import mostly_at_night

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # PyTorch's samples use what PyTorch advises against
    pytest.mark.falls_back,
]

D = torch.float64
EXCEPTIONS = LEFT_OUT | dict.fromkeys(
    ["native_batch_norm", "_native_batch_norm_legit", "_batch_norm_with_update", "nn.functional.batch_norm"],
    "changes running statistics",
)
NAMES = [
    name
    for name, info in operations().items()
    if D in info.dtypes and name not in EXCEPTIONS and not name.startswith("nn.functional.linear_cross_entropy")
]
BY_DAY = ("nn.functional.binary_cross_entropy",)

Function = Callable[..., Any]


def by_autograd(function: Function, case: Case, place: int) -> Any:
    given = _given(case)
    given[place].requires_grad_()
    outputs = [output for output in function(*given) if output.requires_grad]
    if not outputs:
        return None
    flowing = [_cotangent(output) for output in outputs]
    return torch.autograd.grad(outputs, given[place], flowing, allow_unused=True, materialize_grads=True)


def by_vjp(function: Function, case: Case, place: int) -> Any:
    outputs, pull = torch.func.vjp(_of_one(function, case, place), _given(case)[place])
    return pull(tuple(map(_cotangent, outputs)))


def by_jvp(function: Function, case: Case, place: int) -> Any:
    value = _given(case)[place]
    direction = torch.arange(value.numel(), dtype=D).view(value.shape).sin().to(value.dtype)
    return torch.func.jvp(_of_one(function, case, place), (value,), (direction,))[1]


@pytest.mark.parametrize("name", mostly_at_night(NAMES, BY_DAY))
def test_each_argument_alone(name: str) -> None:
    for position, case in enumerate(cases_of(name, D, 3)):
        places = [place for place, tensor in enumerate(case.tensors) if _has_derivatives(tensor)]
        if len(places) < 2:
            continue
        operator = operator_of(case, f"each_{case.function.__name__}_{position}")
        for place in places:
            for way in (by_autograd, by_vjp, by_jvp):
                expected, found = (_outcome(way, each, case, place) for each in (case.function, operator))
                if isinstance(expected, type) or isinstance(found, type):
                    assert found is expected, (position, place, way.__name__)
                else:
                    torch.testing.assert_close(found, expected, equal_nan=True, rtol=1e-6, atol=1e-8)


def test_kernels_serve_what_is_compared() -> None:
    """Else the function would be compared with itself."""
    case = next(cases_of(BY_DAY[0], D, 1))
    within = operator_of(case, "each_served_within", lambda *given, function=case.function: function(*given))
    for operator in (operator_of(case, "each_served"), within):
        operator(*case.tensors)
        assert operator.last_rung == "cpp"


def _outcome(way: Callable[[Function, Case, int], Any], function: Function, case: Case, place: int) -> Any:
    """What is found, or the class of the error."""
    torch.manual_seed(0)
    try:
        return way(function, case, place)
    except Exception as error:  # whatever eager raises
        return type(error)


def _of_one(function: Function, case: Case, place: int) -> Function:
    def of_one(value: Tensor) -> tuple[Tensor, ...]:
        given = _given(case)
        given[place] = value
        return tuple(filter(_has_derivatives, function(*given)))

    return of_one


def _given(case: Case) -> list[Tensor]:
    return [tensor.detach().clone() for tensor in case.tensors]


def _has_derivatives(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _cotangent(output: Tensor) -> Tensor:
    return torch.linspace(0.5, 1.5, output.numel(), dtype=D).view(output.shape).to(output.dtype)
