"""Every row of the table of views, compiled, against eager, for matrices that lie in memory in several ways."""

from __future__ import annotations

from collections.abc import Collection

import pytest
import torch

from opwright.api.operator import Operator
from opwright.lowering.views import VIEWS
from opwright.settings import Settings
from tests.lowering.batch import Function, compiled, run_compiled, run_eager
from tests.lowering.samples import VIEW_SAMPLES
from tests.suite.nights import mostly_at_night

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
# Eager refuses these for what does not lie in memory in one piece.
OF_ONE_PIECE = {name: SAMPLES.pop(name) for name in ("aten.view, sample 0", "aten.view, sample 3")}
OF_ONE_PIECE["aten._unsafe_view, sample 0"] = SAMPLES.pop("aten._unsafe_view, sample 0")
# As the operand of a library call, a view must be one in memory too.
IN_MEMORY: dict[str, Function] = {
    f"{name}, into a library call": lambda x, sample=sample: torch.cumsum(sample(x / 2), 0)
    for name, sample in SAMPLES.items()
}


ALIKE = [(dtype, tuple(LAYOUTS)) for dtype in (torch.float32, torch.bool, torch.int64)]
BY_DAY = (torch.float32, ("expanded", "offset, every other column"))  # the others are among the tests that follow


@pytest.mark.parametrize(("dtype", "layouts"), mostly_at_night([BY_DAY, *ALIKE], by_day=1), ids=str)
def test_rows(dtype: torch.dtype, layouts: Collection[str], settings_quick_by_day: Settings) -> None:
    name = f"views_{str(dtype).removeprefix('torch.')}_{len(layouts)}"
    check(compiled(name, SAMPLES, settings_quick_by_day), SAMPLES, dtype, (4, 6), layouts)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool])
def test_rows_that_need_one_piece(dtype: torch.dtype, settings_quick_by_day: Settings) -> None:
    operator = compiled(f"views_of_one_piece_{str(dtype).removeprefix('torch.')}", OF_ONE_PIECE, settings_quick_by_day)
    for sizes in ((4, 6), (5, 8)):
        check(operator, OF_ONE_PIECE, dtype, sizes, layouts=("row-major",))


@pytest.mark.parametrize("name", OF_ONE_PIECE)
def test_eager_refuses_these_for_other_layouts(name: str) -> None:
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        OF_ONE_PIECE[name](LAYOUTS["transposed"](_numbers((4, 6), torch.float32)))


@pytest.mark.parametrize("layouts", mostly_at_night([("row-major",), tuple(LAYOUTS)], by_day=1, whole=True), ids=len)
def test_rows_at_other_sizes(layouts: Collection[str], settings_quick_by_day: Settings) -> None:
    operator = compiled(f"views_at_other_sizes_{len(layouts)}", SAMPLES, settings_quick_by_day)
    for sizes in ((4, 6), (5, 8), (12, 6)):
        check(operator, SAMPLES, torch.float64, sizes, layouts)


@pytest.mark.parametrize(
    ("names", "layouts"),
    mostly_at_night([([*IN_MEMORY][::2], ("transposed",)), ([*IN_MEMORY], tuple(LAYOUTS))], by_day=1),
    ids=len,
)
def test_rows_into_library_calls(
    names: Collection[str], layouts: Collection[str], settings_quick_by_day: Settings
) -> None:
    functions = {name: IN_MEMORY[name] for name in names}
    operator = compiled(f"views_in_memory_{len(layouts)}", functions, settings_quick_by_day)
    check(operator, functions, torch.float64, (4, 6), layouts)


def check(
    operator: Operator,
    functions: dict[str, Function],
    dtype: torch.dtype,
    sizes: tuple[int, int],
    layouts: Collection[str] = LAYOUTS.keys(),
) -> None:
    for name in layouts:
        values = (
            torch.arange(sizes[0] * sizes[1]).view(sizes) % 2 == 0 if dtype is torch.bool else _numbers(sizes, dtype)
        )
        matrix = LAYOUTS[name](values).detach().requires_grad_(dtype.is_floating_point)
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


def test_every_row_has_a_sample() -> None:
    assert VIEW_SAMPLES.keys() == VIEWS.keys()
