"""Normalisation rows, losses and activations, forward and backward together, against eager PyTorch and torch.compile.

python benchmarks/rows.py [--json FILE]

Each at a small size, at one whose tensors fit the caches, and at a large one; in float32 and in bfloat16.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from scorecard import Options, Row, Scorecard, Target, geometric_mean, medians_us, run_script
from torch.nn import functional

from opwright import Operator
from opwright.benchmark.stopwatch import Thunk

SIZES = ((64, 256), (512, 1024), (4096, 4096))
LEAST_MEAN = {torch.float32: 1.8, torch.bfloat16: 1.5}
LEAST = 1.0

Tensor = torch.Tensor
Function = Callable[..., Tensor]


def softmax(x: Tensor) -> Tensor:
    return torch.softmax(x, -1)


def log_softmax(x: Tensor) -> Tensor:
    return torch.log_softmax(x, -1)


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return functional.layer_norm(x, x.shape[-1:], weight, bias)


def rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    return functional.rms_norm(x, x.shape[-1:], weight, 1e-6)


def cross_entropy(x: Tensor, target: Tensor) -> Tensor:
    return functional.cross_entropy(x, target, label_smoothing=0.1)


def swiglu(x: Tensor, gate: Tensor) -> Tensor:
    return functional.silu(gate) * x


def gelu_bias_residual(x: Tensor, bias: Tensor, residual: Tensor) -> Tensor:
    return functional.gelu(x + bias) + residual


FUNCTIONS: tuple[tuple[Function, str], ...] = (
    (softmax, "x"),
    (log_softmax, "x"),
    (layer_norm, "xvv"),
    (rms_norm, "xv"),
    (cross_entropy, "xt"),
    (swiglu, "xx"),
    (gelu_bias_residual, "xvx"),
)


def measure(options: Options) -> Scorecard:
    """Race the three ways for every function, size and dtype; torch.compile starts anew for each."""
    rows, targets = [], []
    for dtype, least in LEAST_MEAN.items():
        found = [
            _row(function, kinds, size, dtype, options)
            for function, kinds in (FUNCTIONS[:1] if options.quick else FUNCTIONS)
            for size in (SIZES[:1] if options.quick else SIZES)
        ]
        ratios = [ratio for row in found if (ratio := row.figures["vs the better"]) is not None]
        name = str(dtype).removeprefix("torch.")
        targets.append(Target(f"{name}: speed-up, geometric mean", geometric_mean(ratios), ">=", least, "×"))
        if dtype is torch.float32:
            targets.append(Target(f"{name}: least speed-up", min(ratios), ">=", LEAST, "×"))
        rows += found
    return Scorecard("rows, forward + backward; µs", rows, targets)


def _row(function: Function, kinds: str, size: tuple[int, int], dtype: torch.dtype, options: Options) -> Row:
    operator = Operator(function, name=f"rows_{function.__name__}")
    arguments = _arguments(kinds, size, dtype)
    wanted = [tensor for tensor in arguments if tensor.requires_grad]
    cotangents = torch.randn_like(function(*arguments))

    def training(way: Callable[..., Any]) -> Thunk:
        return lambda: torch.autograd.grad(way(*arguments), wanted, cotangents)

    ways = {"opwright": training(operator), "eager": training(function)}
    if not options.quick:
        torch.compiler.reset()
        ways["compile"] = training(torch.compile(function, dynamic=False))
    ways["opwright"]()
    assert operator.last_rung == "cpp", f"{function.__name__} was served by {operator.last_rung}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of PyTorch, about parts of itself, while it compiles
        medians = medians_us(ways, options)
    peers = [median for name, median in medians.items() if name != "opwright"]
    name = f"{function.__name__}, {size[0]} × {size[1]}, {str(dtype).removeprefix('torch.')}"
    return Row(name, medians | {"vs the better": min(peers) / medians["opwright"]})


def _arguments(kinds: str, size: tuple[int, int], dtype: torch.dtype) -> Sequence[Tensor]:
    """One tensor for each letter: x a matrix, v a vector for its columns, t a class for each of its rows."""
    generator = torch.Generator().manual_seed(0)
    made: list[Tensor] = []
    for kind in kinds:
        if kind == "t":
            made.append(torch.randint(size[1], size[:1], generator=generator))
        else:
            shape = size if kind == "x" else size[1:]
            made.append(torch.randn(shape, generator=generator).to(dtype).requires_grad_())
    return made


if __name__ == "__main__":
    run_script(measure, __doc__)
