"""A step of AdamW, SGD with momentum, Lion and Adafactor on the processor: 300 tensors of all sizes, few large ones.

python benchmarks/optimizers.py [--json FILE]

The peers are the three ways of torch.optim (a loop over tensors, `foreach`, `fused`) and `torch.compile` around a
step; for Lion, which torch does not have, a loop and `foreach` written by hand. "traffic alone" is the bound: an update
that reads and writes the same tensors and computes one sum for each result. Adafactor, which has means of rows and
columns, gets matrices of these sizes; torch has no `fused` for it. Gradients stay where they are. The
bytes that a step moves are those of its operands; the bandwidth of a copy counts what it reads and what it writes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from scorecard import Options, Row, Scorecard, Target, medians_us, run_script

import opwright
from opwright import optim
from opwright.optim.telling.timed import sizes_between

LEAST_OF_MANY, LEAST_OF_LARGE = 2.0, 1.0
SIZES = {"300 tensors of 64 to 65,536": sizes_between(300), "40 tensors of 1,000,000": [1_000_000] * 40}
MANY = next(iter(SIZES))
HYPER: dict[str, dict[str, Any]] = {"AdamW": {}, "SGD": {"lr": 0.01, "momentum": 0.9}, "Lion": {}}
OF_MATRICES = "Adafactor"
MOVED = {"AdamW": 7, "SGD": 5, "Lion": 5}  # reads and writes for each element
BOUND = "traffic alone"
DTYPES = (torch.float32, torch.bfloat16)


@opwright.optimizer(state=("first",))
def one_state(param: Any, grad: Any, first: Any, step: Any) -> Any:
    """What SGD with momentum and Lion read and write."""
    return param + grad, first + grad


@opwright.optimizer(state=("first", "second"))
def two_states(param: Any, grad: Any, first: Any, second: Any, step: Any) -> Any:
    """What AdamW reads and writes."""
    return param + grad, first + grad, second + grad


class LionByHand(torch.optim.Optimizer):
    """Lion as people write it: a loop over tensors, or `foreach`."""

    def __init__(self, params: Any, *, foreach: bool) -> None:
        super().__init__(params, {"lr": 1e-4, "betas": (0.9, 0.99), "weight_decay": 0.0, "foreach": foreach})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            params = [param for param in group["params"] if param.grad is not None]
            for param in params:
                if not self.state[param]:
                    self.state[param]["exp_avg"] = torch.zeros_like(param)
            update = _lion_of_all if group["foreach"] else _lion_of_each
            grads, averages = [param.grad for param in params], [self.state[param]["exp_avg"] for param in params]
            update(params, grads, averages, group["lr"], *group["betas"], group["weight_decay"])


def _lion_of_each(
    params: Any, grads: Any, averages: Any, lr: float, beta1: float, beta2: float, weight_decay: float
) -> None:
    for param, grad, average in zip(params, grads, averages, strict=True):
        param.mul_(1 - lr * weight_decay)
        param.add_(average.mul(beta1).add_(grad, alpha=1 - beta1).sign_(), alpha=-lr)
        average.mul_(beta2).add_(grad, alpha=1 - beta2)


def _lion_of_all(
    params: Any, grads: Any, averages: Any, lr: float, beta1: float, beta2: float, weight_decay: float
) -> None:
    torch._foreach_mul_(params, 1 - lr * weight_decay)
    updates = torch._foreach_mul(averages, beta1)
    torch._foreach_add_(updates, grads, alpha=1 - beta1)
    torch._foreach_sign_(updates)
    torch._foreach_add_(params, updates, alpha=-lr)
    torch._foreach_mul_(averages, beta2)
    torch._foreach_add_(averages, grads, alpha=1 - beta2)


def measure(options: Options) -> list[Scorecard]:
    """Measure every optimizer at both sizes, float32; and the large tensors in bfloat16."""
    cards = [_card(name, sizes, torch.float32, options) for name in (*HYPER, OF_MATRICES) for sizes in SIZES]
    return [*cards, _traffic(options)]


def _card(name: str, sizes: str, dtype: torch.dtype, options: Options) -> Scorecard:
    ways = {
        way: make() for way, make in ways_of(name, SIZES[sizes][:: 30 if options.quick else 1], dtype, options).items()
    }
    times = medians_us(ways, options)
    best = min(value for way, value in times.items() if way not in ("opwright", BOUND))
    least = LEAST_OF_MANY if sizes == MANY else LEAST_OF_LARGE
    target = Target(f"{name}, {sizes}: the best of the others / opwright", best / times["opwright"], ">=", least, " ×")
    rows = [Row(way, {"µs": value, "the best of the others / it": best / value}) for way, value in times.items()]
    return Scorecard(f"{name}, {sizes}, float32", rows, [target])


def ways_of(
    name: str, sizes: Sequence[int], dtype: torch.dtype, options: Options, device: str = "cpu"
) -> dict[str, Callable[[], Callable[[], Any]]]:
    """What makes the step of each contender, with tensors of its own."""

    def parameters() -> list[torch.Tensor]:
        return _parameters([_matrix(size) if name == OF_MATRICES else size for size in sizes], dtype, device)

    hyper, of_torch = HYPER.get(name, {}), getattr(torch.optim, name, None)
    make = of_torch or LionByHand
    ways = {
        "opwright": lambda: getattr(optim, name)(parameters(), **hyper).step,
        "loop": lambda: make(parameters(), **hyper, foreach=False).step,
        "foreach": lambda: make(parameters(), **hyper, foreach=True).step,
    }
    if name in MOVED:
        ways[BOUND] = lambda: (two_states if MOVED[name] == 7 else one_state)(parameters()).step
    if of_torch is not None and name != OF_MATRICES:
        ways["fused"] = lambda: make(parameters(), **hyper, fused=True).step
    if not (options.quick or options.without_compile):
        ways["torch.compile"] = lambda: torch.compile(make(parameters(), **hyper, foreach=True).step)
    return ways


def _matrix(size: int) -> tuple[int, int]:
    """The sizes of a matrix of about as many elements."""
    rows = math.isqrt(size)
    return rows, size // rows


def _parameters(sizes: Sequence[int | tuple[int, int]], dtype: torch.dtype, device: str = "cpu") -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    params = [torch.randn(size, generator=generator).to(device, dtype).requires_grad_() for size in sizes]
    for param in params:
        param.grad = (0.1 * torch.randn(param.shape, generator=generator)).to(device, dtype)
    return params


def _traffic(options: Options) -> Scorecard:
    """What a step of the large tensors moves, beside a copy between two buffers of the same size."""
    sizes = SIZES["40 tensors of 1,000,000"][:: 20 if options.quick else 1]
    source, target = torch.randn(sum(sizes)), torch.empty(sum(sizes))
    ways: dict[tuple[str, torch.dtype], Any] = {
        (name, dtype): getattr(optim, name)(_parameters(sizes, dtype), **HYPER[name]).step
        for name in HYPER
        for dtype in DTYPES
    }
    named = {f"{name}, {str(dtype).removeprefix('torch.')}": step for (name, dtype), step in ways.items()}
    times = medians_us({"copy": lambda: target.copy_(source), **named}, options)
    moved = [2 * 4, *(MOVED[name] * dtype.itemsize for name, dtype in ways)]
    rows = [
        Row(way, {"µs": value, "bytes an element": count, "GB/s": count * sum(sizes) / value / 1e3})
        for (way, value), count in zip(times.items(), moved, strict=True)
    ]
    speeds = {row.name: row.figures["GB/s"] or 0.0 for row in rows}
    shown = [Row(row.name, {**row.figures, "of the copy": speeds[row.name] / speeds["copy"]}) for row in rows]
    return Scorecard("what a step moves, 40 tensors of 1,000,000", shown, [])


if __name__ == "__main__":
    run_script(measure, __doc__)
