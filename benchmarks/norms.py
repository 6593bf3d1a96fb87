"""Group norm, alone and with silu: forward, and forward and backward together, against eager PyTorch.

python benchmarks/norms.py [--json FILE]

At two sizes, row-major and with channels last, in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from scorecard import Options, Row, Scorecard, Target, medians_us, run_script
from torch.nn import functional

from opwright import Operator
from opwright.benchmark.stopwatch import Thunk

SIZES = ((4, 64, 16, 16), (16, 64, 64, 64))
LAYOUTS = {"row-major": torch.contiguous_format, "channels last": torch.channels_last}
LEAST_FORWARD, LEAST_BOTH = 1.0, 1.5

Tensor = torch.Tensor
Function = Callable[..., Tensor]


def group_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return functional.group_norm(x, 8, weight, bias)


def group_norm_silu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return functional.silu(functional.group_norm(x, 8, weight, bias))


def measure(options: Options) -> Scorecard:
    """Race both ways for every function, size and layout. The targets are for row-major tensors."""
    rows = {
        (layout, both): [
            _row(function, size, layout, options, both=both)
            for function in (group_norm, group_norm_silu)
            for size in (SIZES[:1] if options.quick else SIZES)
        ]
        for layout in LAYOUTS
        for both in (False, True)
    }
    least = {key: min(row.figures["speed-up"] or 0.0 for row in some) for key, some in rows.items()}
    targets = [
        Target("forward: least speed-up", least["row-major", False], ">=", LEAST_FORWARD, "×"),
        Target("forward + backward: least speed-up", least["row-major", True], ">=", LEAST_BOTH, "×"),
    ]
    title = f"group norm, float32; µs, {torch.get_num_threads()} threads"
    return Scorecard(title, [row for some in rows.values() for row in some], targets)


def _row(function: Function, size: tuple[int, ...], layout: str, options: Options, *, both: bool) -> Row:
    # Kernels are built for the layout of their first call, and loaded once under their name.
    operator = Operator(function, name=f"norms_{function.__name__}_{layout.replace(' ', '_').replace('-', '_')}")
    x, cotangents = (torch.randn(size).contiguous(memory_format=LAYOUTS[layout]) for _ in range(2))
    arguments = [x.requires_grad_(), *(torch.randn(size[1]).requires_grad_() for _ in range(2))]

    def work(way: Callable[..., Any]) -> Thunk:
        if both:
            return lambda: torch.autograd.grad(way(*arguments), arguments, cotangents)
        return lambda: _forward(way, arguments)

    ways = {"opwright": work(operator), "eager": work(function)}
    ways["opwright"]()
    assert operator.last_rung == "cpp", f"{function.__name__} was served by {operator.last_rung}"
    medians = medians_us(ways, options)
    passes = "forward + backward" if both else "forward"
    name = f"{function.__name__}, {' × '.join(map(str, size))}, {layout}, {passes}"
    return Row(name, medians | {"speed-up": medians["eager"] / medians["opwright"]})


def _forward(way: Callable[..., Any], arguments: list[Tensor]) -> Any:
    with torch.no_grad():
        return way(*arguments)


if __name__ == "__main__":
    run_script(measure, __doc__)
