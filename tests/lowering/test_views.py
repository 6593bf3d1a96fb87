"""Every row of the table of views, compiled, against eager, for matrices that lie in memory in several ways."""

from __future__ import annotations

import pytest
import torch

from opwright.api.operator import Operator
from opwright.lowering.views import VIEWS
from opwright.settings import Settings
from tests.lowering.batch import Function, compiled, run_compiled, run_eager
from tests.lowering.samples import VIEW_SAMPLES

LAYOUTS = {
    "row-major": lambda t: t,
    "transposed": lambda t: t.mT.contiguous().mT,
    "expanded": lambda t: t[:1].expand(t.shape),
    "offset, every other column": lambda t: torch.cat([t, t, t], 1)[:, 1 : 1 + 2 * t.shape[1] : 2],
}
SAMPLES: dict[str, Function] = {
    f"{packet}, sample {position}": lambda x, view=view: view(x) * 2
    for packet, views in VIEW_SAMPLES.items()
    for position, view in enumerate(views)
}
# As the operand of a library call, a view must be one in memory too.
IN_MEMORY: dict[str, Function] = {
    f"{name}, into a library call": lambda x, sample=sample: torch.cumsum(sample(x / 2), 0)
    for name, sample in SAMPLES.items()
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool])
def test_rows(dtype: torch.dtype, settings_quick_by_day: Settings) -> None:
    name = f"views_{str(dtype).removeprefix('torch.')}"
    check(compiled(name, SAMPLES, settings_quick_by_day), SAMPLES, dtype, (4, 6))


def test_rows_at_other_sizes(settings_quick_by_day: Settings) -> None:
    operator = compiled("views_at_other_sizes", SAMPLES, settings_quick_by_day)
    for sizes in ((4, 6), (5, 8), (12, 6)):
        check(operator, SAMPLES, torch.float64, sizes)


def test_rows_into_library_calls(settings_quick_by_day: Settings) -> None:
    functions = {key: value for key, value in IN_MEMORY.items() if _takes(value, torch.zeros(4, 6).mT.contiguous().mT)}
    check(compiled("views_in_memory", functions, settings_quick_by_day), functions, torch.float64, (4, 6))


def check(operator: Operator, functions: dict[str, Function], dtype: torch.dtype, sizes: tuple[int, int]) -> None:
    for name, lay_out in LAYOUTS.items():
        values = (
            torch.arange(sizes[0] * sizes[1]).view(sizes) % 2 == 0 if dtype is torch.bool else _numbers(sizes, dtype)
        )
        matrix = lay_out(values).detach().requires_grad_(dtype.is_floating_point)
        taken = {key: function for key, function in functions.items() if _takes(function, matrix)}
        if taken.keys() != functions.keys():
            continue  # `view` refuses some layouts, in eager too
        actual = run_compiled(operator, functions, [matrix])
        assert operator.last_rung == "cpp", name
        for key, function in functions.items():
            eager = run_eager(function, [matrix])
            torch.testing.assert_close(
                actual[key].output, eager.output, rtol=0, atol=0, msg=lambda m, k=key: f"{k}: {m}"
            )
            for mine, theirs in zip(actual[key].gradients, eager.gradients, strict=True):
                torch.testing.assert_close(mine, theirs, rtol=0, atol=0, msg=lambda m, k=key: f"{k}: {m}")


def _numbers(sizes: tuple[int, int], dtype: torch.dtype) -> torch.Tensor:
    return torch.arange(sizes[0] * sizes[1], dtype=dtype).view(sizes)


def _takes(function: Function, matrix: torch.Tensor) -> bool:
    try:
        function(matrix)
    except RuntimeError:
        return False
    return True


def test_every_row_has_a_sample() -> None:
    assert VIEW_SAMPLES.keys() == VIEWS.keys()
