"""Norms over groups and channels, rows along other axes, masks, complex numbers and rotations, against eager PyTorch.

python benchmarks/axes.py [--json FILE]

Forward without gradients, and forward and backward together, in float32, at about 10⁵ to 10⁶ and at about 10⁷ elements.
OPWRIGHT_BENCH_NAMES takes names, parted by commas, of the lines to measure.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import torch
from norms import group_norm, group_norm_silu
from scorecard import Options, Row, Scorecard, Target, medians_us, run_script
from torch.nn import functional

from opwright import Operator
from opwright.benchmark.stopwatch import Thunk

LEAST = 1.5

Tensor = torch.Tensor
Function = Callable[..., Tensor]


def instance_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return functional.instance_norm(x, weight=weight, bias=bias)


def batch_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return functional.batch_norm(x, None, None, weight, bias, training=True)


def batch_norm_relu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return torch.relu(functional.batch_norm(x, None, None, weight, bias, training=True))


def masked_softmax(x: Tensor, mask: Tensor) -> Tensor:
    return torch.softmax(x.masked_fill(mask, float("-inf")), -1)


def softmax_dim_1(x: Tensor) -> Tensor:
    return torch.softmax(x, 1)


def channel_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    mean = x.mean(1, keepdim=True)
    variance = (x - mean).square().mean(1, keepdim=True)
    return (x - mean) * torch.rsqrt(variance + 1e-6) * weight[:, None, None] + bias[:, None, None]


def sum_dim_1(x: Tensor) -> Tensor:
    return (x * x).sum(1)


def complex_chain(z: Tensor, w: Tensor) -> Tensor:
    return torch.exp(z) * torch.sin(w) * z


def rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


def softmax_last(x: Tensor) -> Tensor:
    return torch.softmax(x, -1)


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return functional.layer_norm(x, x.shape[-1:], weight, bias)


def normalize(x: Tensor) -> Tensor:
    return functional.normalize(x, dim=-1)


def _images(n: int, side: int, last: bool = False) -> tuple[Tensor, ...]:
    layout = torch.channels_last if last else torch.contiguous_format
    x = torch.randn(n, 64, side, side).contiguous(memory_format=layout)
    return x, torch.randn(64), torch.randn(64)


def _scores(n: int, heads: int, length: int, *mask: int) -> tuple[Tensor, ...]:
    hidden = torch.rand(mask) < 0.3
    hidden[..., 0] = False
    return torch.randn(n, heads, length, 128), hidden


def _turned(*shape: int) -> tuple[Tensor, ...]:
    return torch.randn(shape), torch.randn(shape[-2:]), torch.randn(shape[-2:])


Case = tuple[str, Function, Callable[[], tuple[Tensor, ...]], bool]


def _cases() -> Iterator[Case]:
    """Name, function, arguments, and whether the target holds for it."""
    for size, n, side in (("medium", 4, 32), ("large", 32, 64)):
        for layout, last in (("NCHW", False), ("channels last", True)):
            for function in (group_norm, group_norm_silu, instance_norm, batch_norm, batch_norm_relu):
                yield (
                    f"{function.__name__}, {layout}, {size}",
                    function,
                    lambda n=n, side=side, last=last: _images(n, side, last),
                    not last,
                )
    for size, n, length in (("medium", 2, 128), ("large", 16, 512)):
        yield (
            f"masked_softmax, keys, {size}",
            masked_softmax,
            lambda n=n, q=length: _scores(n, 8, q, n, 1, 1, 128),
            True,
        )
        yield f"masked_softmax, causal, {size}", masked_softmax, lambda n=n, q=length: _scores(n, 8, q, q, 128), True
    for size, n, side in (("medium", 4, 64), ("large", 32, 64)):
        yield f"softmax_dim_1, {size}", softmax_dim_1, lambda n=n, side=side: (torch.randn(n, 64, side, side),), True
        yield f"channel_norm, {size}", channel_norm, lambda n=n, side=side: _images(n, side), False
        yield f"sum_dim_1, {size}", sum_dim_1, lambda n=n, side=side: (torch.randn(n, 64, side, side),), False
    for size, n in (("medium", 1 << 18), ("large", 1 << 22)):
        yield (
            f"complex_chain, {size}",
            complex_chain,
            lambda n=n: (torch.randn(n, dtype=torch.cfloat), torch.randn(n, dtype=torch.cfloat)),
            True,
        )
    for size, n, length in (("medium", 2, 256), ("large", 16, 1024)):
        yield f"rotary, {size}", rotary, lambda n=n, length=length: _turned(n, 8, length, 64), False
    for size, count in (("medium", 1 << 18), ("large", 1 << 23)):
        for width in (1, 3, 8, 16, 32):
            for function in (softmax_last, normalize):
                yield (
                    f"{function.__name__}, rows of {width}, {size}",
                    function,
                    lambda n=count // width, width=width: (torch.randn(n, width),),
                    False,
                )
        yield (
            f"layer_norm, rows of 16, {size}",
            layer_norm,
            lambda n=count // 16: (torch.randn(n, 16), torch.randn(16), torch.randn(16)),
            False,
        )


def measure(options: Options) -> Scorecard:
    """Race both ways for every case, forward, and forward and backward together."""
    names = os.environ.get("OPWRIGHT_BENCH_NAMES")
    cases = [case for case in _cases() if names is None or any(name in case[0] for name in names.split(","))]
    rows, least = [], []
    for name, function, make, counts in cases[:1] if options.quick else cases:
        row = _row(name, function, make(), options)
        rows.append(row)
        print(name, *(f"{k} {v:.4g}" for k, v in row.figures.items()), sep="; ", flush=True)
        least += [row.figures["both ×"] or 0.0] if counts else []
    targets = [Target("forward + backward: least speed-up", min(least), ">=", LEAST, "×")] if least else []
    return Scorecard(f"other axes and masks; µs, {torch.get_num_threads()} threads", rows, targets)


def _row(name: str, function: Function, arguments: tuple[Tensor, ...], options: Options) -> Row:
    layout = "_last" if "channels last" in name else ""  # kernels are built for that of their first call
    operator = Operator(function, name=f"axes_{function.__name__}{layout}")
    wanted = [one.requires_grad_() for one in arguments if one.is_floating_point() or one.is_complex()]
    cotangents = torch.randn_like(function(*arguments))

    def both(way: Callable[..., Any]) -> Thunk:
        return lambda: torch.autograd.grad(way(*arguments), wanted, cotangents)

    def forward(way: Callable[..., Any]) -> Thunk:
        def run() -> Any:
            with torch.no_grad():
                return way(*arguments)

        return run

    both(operator)(), forward(operator)()
    assert operator.last_rung == "cpp", f"{name} was served by {operator.last_rung}"
    figures: dict[str, float] = {}
    for what, work in (("forward", forward), ("both", both)):
        medians = medians_us({"opwright": work(operator), "eager": work(function)}, options)
        figures[what], figures[f"{what}, eager"] = medians["opwright"], medians["eager"]
        figures[f"{what} ×"] = medians["eager"] / medians["opwright"]
    return Row(name, figures)


if __name__ == "__main__":
    run_script(measure, __doc__)
