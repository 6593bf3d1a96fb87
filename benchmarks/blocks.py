"""Whole blocks with library calls inside, forward and backward together, against the composed function.

python benchmarks/blocks.py [--json FILE]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from scorecard import Options, Row, Scorecard, Target, medians_us, run_script
from torch.nn import functional

from opwright import Operator
from opwright.benchmark.stopwatch import Thunk

MOST_OF_COMPOSED = 1.03

Tensor = torch.Tensor
Shapes = Sequence[tuple[int, ...]]


def mlp(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    """Two linear layers with a gelu between them."""
    return functional.linear(functional.gelu(functional.linear(x, w1, b1)), w2, b2)


def gru_cell(x: Tensor, h: Tensor, w_x: Tensor, w_h: Tensor, b_x: Tensor, b_h: Tensor) -> Tensor:
    """The gated recurrent unit of torch.nn.GRUCell."""
    r_x, z_x, n_x = functional.linear(x, w_x, b_x).chunk(3, -1)
    r_h, z_h, n_h = functional.linear(h, w_h, b_h).chunk(3, -1)
    reset, update = torch.sigmoid(r_x + r_h), torch.sigmoid(z_x + z_h)
    new = torch.tanh(n_x + reset * n_h)
    return new + update * (h - new)


def conv_norm_relu(x: Tensor, kernel: Tensor, weight: Tensor, bias: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    """A convolution, batch norm with given statistics, and relu."""
    y = functional.conv2d(x, kernel, padding=1)
    return torch.relu(functional.batch_norm(y, mean, variance, weight, bias, training=False))


BLOCKS: tuple[tuple[Callable[..., Tensor], Shapes, Shapes], ...] = (
    (
        mlp,
        ((32, 256), (512, 256), (512,), (256, 512), (256,)),
        ((512, 1024), (4096, 1024), (4096,), (1024, 4096), (1024,)),
    ),
    (
        gru_cell,
        ((32, 128), (32, 128), (384, 128), (384, 128), (384,), (384,)),
        ((256, 512), (256, 512), (1536, 512), (1536, 512), (1536,), (1536,)),
    ),
    (
        conv_norm_relu,
        ((4, 16, 16, 16), (32, 16, 3, 3), (32,), (32,), (32,), (32,)),
        ((16, 64, 56, 56), (64, 64, 3, 3), (64,), (64,), (64,), (64,)),
    ),
)
STATISTICS = 2  # the last tensors of conv_norm_relu ask for no gradient


def measure(options: Options) -> Scorecard:
    """Race the operator and the composed function at a small and a large size of every block."""
    rows = [
        _row(function, shapes, options)
        for function, *sizes in BLOCKS
        for shapes in (sizes[:1] if options.quick else sizes)
    ]
    targets = [
        Target(f"{row.name}: opwright / composed", ratio, "<=", MOST_OF_COMPOSED)
        for row in rows
        if (ratio := row.figures["opwright / composed"]) is not None
    ]
    return Scorecard("blocks, forward + backward, float32; µs", rows, targets)


def _row(function: Callable[..., Tensor], shapes: Shapes, options: Options) -> Row:
    operator = Operator(function, name=f"blocks_{function.__name__}")
    generator = torch.Generator().manual_seed(0)
    arguments = [torch.rand(shape, generator=generator) * 0.1 + 0.01 for shape in shapes]
    wanted = arguments[: -STATISTICS if function is conv_norm_relu else None]
    for tensor in wanted:
        tensor.requires_grad_()
    cotangents = torch.randn_like(function(*arguments))

    def training(way: Callable[..., Any]) -> Thunk:
        return lambda: torch.autograd.grad(way(*arguments), wanted, cotangents)

    ways = {"opwright": training(operator), "composed": training(function)}
    ways["opwright"]()
    assert operator.last_rung == "cpp", f"{function.__name__} was served by {operator.last_rung}"
    medians = medians_us(ways, options)
    name = f"{function.__name__}, {' × '.join(map(str, shapes[0]))}"
    return Row(name, medians | {"opwright / composed": medians["opwright"] / medians["composed"]})


if __name__ == "__main__":
    run_script(measure, __doc__)
