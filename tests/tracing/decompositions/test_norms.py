"""Batch norm changes its running statistics, which has to be declared, and does so in every dtype."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import opwright
from opwright.errors import NoKernel, UndeclaredMutation
from opwright.tracing.decompositions.composed import Composed
from opwright.tracing.decompositions.demands import demand

aten = torch.ops.aten


def batch_norm(x: Tensor, mean: Tensor, variance: Tensor, weight: Tensor) -> Tensor:
    return torch.nn.functional.batch_norm(x, mean, variance, weight, None, True, 0.3, 1e-3)


def _arguments(dtype: torch.dtype) -> list[Tensor]:
    torch.manual_seed(0)
    x = (torch.randn(4, 3, 5) * 2 + 1).to(dtype)
    statistics = torch.float32 if dtype.itemsize < 4 else dtype
    return [x, torch.zeros(3, dtype=statistics), torch.ones(3, dtype=statistics), torch.randn(3, dtype=statistics)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_statistics_are_updated(dtype: torch.dtype) -> None:
    served = opwright.operator(mutates=("mean", "variance"))(batch_norm)
    given, expected = _arguments(dtype), _arguments(dtype)
    for _ in range(2):
        tolerance = 2e-2 if dtype is torch.bfloat16 else 1e-5
        torch.testing.assert_close(served(*given), batch_norm(*expected), rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(given, expected, rtol=1e-5, atol=1e-5)
    assert served.last_rung == "cpp"


def test_an_undeclared_update_is_refused() -> None:
    with pytest.raises(UndeclaredMutation, match="'mean'"):
        opwright.operator(batch_norm)(*_arguments(torch.float32))


DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
NORMS = {
    "layer": (aten.native_layer_norm.default, lambda x, w, b: (x, [4], w, b, 1e-5), 2),
    "group": (aten.native_group_norm.default, lambda x, w, b: (x, w, b, 3, 4, 4, 2, 1e-5), 2),
    "batch": (aten.native_batch_norm.default, lambda x, *given: (x, *given, False, 0.1, 1e-5), 4),
    "batch, training": (aten.native_batch_norm.default, lambda x, *given: (x, *given, True, 0.1, 1e-5), 4),
}


def refuses(call, *errors):
    try:
        call()
    except errors:
        return True
    return False


@pytest.mark.parametrize("name", NORMS)
def test_norms_refuse_the_dtypes_that_torch_refuses(name):
    norm, arguments, count = NORMS[name]
    x = torch.randn(3, 4, 4)
    for dtype, *others in itertools.product(DTYPES, *[(*DTYPES, None)] * count):
        if name.startswith("batch") and (others[2] is None) != (others[3] is None):
            continue
        if name == "batch" and others[2] is None:  # which takes both
            continue
        args = arguments(x.to(dtype), *[None if other is None else torch.ones(4, dtype=other) for other in others])
        expected = refuses(lambda: norm(*args), RuntimeError)  # noqa: B023 - called at once
        assert refuses(lambda: demand(norm, args, {}), NoKernel) == expected, (dtype, others)  # noqa: B023


MIXED = {
    "batch": lambda x, p: functional.batch_norm(x, p, p),
    "batch, training": lambda x, p: functional.batch_norm(x, None, None, p, training=True),
    "instance": lambda x, p: functional.instance_norm(x, weight=p, bias=p),
    "layer": lambda x, p: functional.layer_norm(x, (4,), p),
    "group": lambda x, p: functional.group_norm(x, 2, p, p),
}


@pytest.mark.falls_back
@pytest.mark.parametrize("name", MIXED)
@pytest.mark.parametrize("dtypes", [(torch.float64, torch.float32), (torch.bfloat16, torch.float64)], ids=str)
def test_an_operator_refuses_them_too_and_so_do_compositions(name, dtypes):
    x, parameter = torch.randn(3, 4, 4).to(dtypes[0]), torch.ones(4, dtype=dtypes[1])
    function = MIXED[name]
    with pytest.raises(RuntimeError) as expected:
        function(x, parameter)
    with pytest.raises(RuntimeError) as found:
        opwright.operator(lambda x, p: function(x, p))(x, parameter)
    assert str(found.value) == str(expected.value)
    with pytest.raises(RuntimeError, match="dtypes"), Composed():
        function(x, parameter)


MOMENTS = {
    "var_mean": lambda x: torch.var_mean(x * 1, -1),
    "std_mean": lambda x: torch.std_mean(x * 1, -1),
    "layer": lambda x: aten.native_layer_norm(x * 1, [16], None, None, 1e-5)[1:],
    "group": lambda x: aten.native_group_norm((x * 1).unsqueeze(-1), None, None, 3, 16, 1, 1, 1e-5)[1:],
}


@pytest.mark.parametrize("name", MOMENTS)
def test_means_of_rows_with_an_infinity_are_infinite(name):
    operator = opwright.operator(MOMENTS[name])
    x = torch.randn(3, 16, generator=torch.Generator().manual_seed(0))
    x[0, 3], x[1, 15] = torch.inf, torch.nan
    spread, mean = sorted(operator(x), key=lambda each: int(each.isinf().any()))
    assert mean.flatten().tolist() == pytest.approx(x.mean(-1).tolist(), nan_ok=True)
    assert spread[:2].isnan().all()
    assert operator.last_rung == "cpp"


@pytest.mark.parametrize("norm", [lambda x: functional.layer_norm(x * 1, [16]), lambda x: functional.group_norm(x, 2)])
def test_rows_of_norms_whose_variance_overflows_are_not_numbers(norm):
    operator = opwright.operator(norm)
    x = torch.randn(3, 16, generator=torch.Generator().manual_seed(0))
    x[0, 3] = 1e30
    assert operator(x)[0, :8].isnan().all()
    torch.testing.assert_close(operator(x)[1:], norm(x)[1:])
