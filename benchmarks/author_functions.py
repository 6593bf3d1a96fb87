"""Twenty functions that an operator author would write, forward and backward together, against eager and torch.compile.

python benchmarks/author_functions.py [--json FILE]

In float32 unless the name says otherwise, at about 2,000, 260,000 and 4,000,000 elements; torch.compile is for exactly
these sizes. OPWRIGHT_BENCH_NAMES takes names, parted by commas, of the functions to measure.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from scorecard import Options, Row, Scorecard, Target, geometric_mean, medians_us, run_script
from torch import Tensor
from torch.nn import functional

from opwright import Operator
from opwright.benchmark.stopwatch import Thunk

MEAN, LEAST = 2.2, 1.0
SIZES: Mapping[str, tuple[int, int]] = {"small": (16, 128), "medium": (256, 1024), "large": (1024, 4096)}


class Gates(NamedTuple):
    """What a gated unit takes."""

    gate: Tensor
    value: Tensor


def rms_norm(x: Tensor, weight: Tensor, eps: float = 1e-6) -> Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight


def layer_norm_gelu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return functional.gelu(functional.layer_norm(x, x.shape[-1:], weight, bias))


def softmax_with_temperature(x: Tensor, temperature: float = 0.7) -> Tensor:
    return torch.softmax(x / temperature, -1)


def masked_softmax(x: Tensor, hidden: Tensor) -> Tensor:
    return torch.softmax(x.masked_fill(hidden, float("-inf")), -1)


def softmax_of_columns(x: Tensor) -> Tensor:
    return torch.softmax(x, 0)


def group_norm_silu(x: Tensor, weight: Tensor, bias: Tensor, groups: int = 8) -> Tensor:
    return functional.silu(functional.group_norm(x, groups, weight, bias))


def batch_norm_relu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return torch.relu(functional.batch_norm(x, None, None, weight, bias, training=True))


def gated(gates: Gates) -> Tensor:
    return functional.silu(gates.gate) * gates.value


def bias_gelu_residual(x: Tensor, bias: Tensor, residual: Tensor) -> Tensor:
    return functional.gelu(x + bias) + residual


def rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


def snake(x: Tensor, alpha: Tensor) -> Tensor:
    return x + torch.sin(alpha * x).square() / alpha


def cell(gates: Tensor, old: Tensor) -> tuple[Tensor, Tensor]:
    i, o, g = gates.chunk(3, dim=-1)
    new = old + functional.elu(g) * torch.sigmoid(i)
    return torch.tanh(new) * torch.sigmoid(o), new


def focal_loss(x: Tensor, target: Tensor, gamma: float = 2.0) -> Tensor:
    loss = functional.binary_cross_entropy_with_logits(x, target, reduction="none")
    return (loss * (1 - torch.exp(-loss)) ** gamma).mean()


def smoothed_cross_entropy(x: Tensor, target: Tensor, smoothing: float = 0.1) -> Tensor:
    return functional.cross_entropy(x, target, label_smoothing=smoothing)


def contrastive_loss(x: Tensor, y: Tensor, margin: float = 0.5) -> Tensor:
    near = functional.cosine_similarity(x, y, dim=-1)
    return torch.relu(margin - near).square().mean()


def gaussian_likelihood(mean: Tensor, log_variance: Tensor, y: Tensor) -> Tensor:
    return 0.5 * (log_variance + (y - mean).square() * torch.exp(-log_variance)).mean()


def complex_rotation(z: Tensor, phase: Tensor) -> Tensor:
    return torch.exp(z * 0.5) * torch.sin(phase)


def weighted_by_mask(batch: dict[str, Tensor]) -> Tensor:
    kept = batch["kept"].to(batch["x"].dtype)
    return (batch["x"] * kept).sum(-1) / kept.sum(-1).clamp(min=1.0)


def swiglu_in_bfloat16(gate: Tensor, value: Tensor) -> Tensor:
    return functional.silu(gate) * value


def layer_norm_in_bfloat16(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return functional.layer_norm(x, x.shape[-1:], weight, bias)


def _real(*shapes: tuple[int, ...]) -> tuple[Tensor, ...]:
    return tuple(torch.randn(shape, requires_grad=True) for shape in shapes)


def _half(*shapes: tuple[int, ...]) -> tuple[Tensor, ...]:
    return tuple(torch.randn(shape).bfloat16().requires_grad_() for shape in shapes)


def _images(b: int, h: int) -> tuple[Tensor, ...]:
    side = 8 if b * h <= 4096 else 32
    return _real((b * h // (32 * side * side) or 1, 32, side, side), (32,), (32,))


def _hidden(b: int, h: int) -> Tensor:
    hidden = torch.rand(b, h) < 0.3
    hidden[:, 0] = False
    return hidden


_OF_ROWS = Callable[[int, int], tuple[Any, ...]]
FUNCTIONS: Mapping[Callable[..., Any], _OF_ROWS] = {
    rms_norm: lambda b, h: _real((b, h), (h,)),
    layer_norm_gelu: lambda b, h: _real((b, h), (h,), (h,)),
    softmax_with_temperature: lambda b, h: _real((b, h)),
    masked_softmax: lambda b, h: (*_real((b, h)), _hidden(b, h)),
    softmax_of_columns: lambda b, h: _real((b, h)),
    group_norm_silu: _images,
    batch_norm_relu: _images,
    gated: lambda b, h: (Gates(*_real((b, h), (b, h))),),
    bias_gelu_residual: lambda b, h: _real((b, h), (h,), (b, h)),
    rotary: lambda b, h: (*_real((b * h // 1024, 16, 64)), torch.randn(16, 64), torch.randn(16, 64)),
    snake: lambda b, h: _real((b, h), (h,)),
    cell: lambda b, h: _real((b, 3 * h), (b, h)),
    focal_loss: lambda b, h: (*_real((b, h)), torch.rand(b, h).round()),
    smoothed_cross_entropy: lambda b, h: (*_real((b, h)), torch.randint(0, h, (b,))),
    contrastive_loss: lambda b, h: _real((b, h), (b, h)),
    gaussian_likelihood: lambda b, h: (*_real((b, h), (b, h)), torch.randn(b, h)),
    complex_rotation: lambda b, h: (
        torch.randn(b, h // 2, dtype=torch.cfloat, requires_grad=True),
        torch.randn(b, h // 2, dtype=torch.cfloat, requires_grad=True),
    ),
    weighted_by_mask: lambda b, h: ({"x": _real((b, h))[0], "kept": ~_hidden(b, h)},),
    swiglu_in_bfloat16: lambda b, h: _half((b, h), (b, h)),
    layer_norm_in_bfloat16: lambda b, h: _half((b, h), (h,), (h,)),
}


def measure(options: Options) -> Scorecard:
    """Race the three ways for every function and size."""
    names = os.environ.get("OPWRIGHT_BENCH_NAMES")
    chosen = [each for each in FUNCTIONS if names is None or each.__name__ in names.split(",")]
    rows = []
    for function in chosen[:1] if options.quick else chosen:
        operator = Operator(function, name=f"author_{function.__name__}")
        for size in list(SIZES)[:1] if options.quick else SIZES:
            rows.append(_row(function, operator, size, options))
            print(rows[-1].name, *(f"{k} {v:.4g}" for k, v in rows[-1].figures.items() if v), sep="; ", flush=True)
    ratios = [row.figures["×"] or 0.0 for row in rows]
    targets = [
        Target("geometric mean over the better of eager and torch.compile", geometric_mean(ratios), ">=", MEAN, "×"),
        Target("the least of them", min(ratios), ">=", LEAST, "×"),
    ]
    title = f"functions of an operator author, forward + backward; µs, {torch.get_num_threads()} threads"
    return Scorecard(title, rows, targets)


def _row(function: Callable[..., Any], operator: Operator, size: str, options: Options) -> Row:
    torch.manual_seed(0)
    arguments = FUNCTIONS[function](*SIZES[size])
    wanted = [each for each in _tensors(arguments) if each.requires_grad]
    ways: dict[str, Callable[..., Any]] = {"opwright": operator, "eager": function}
    if not (options.quick or options.without_compile):
        torch.compiler.reset()
        ways["compile"] = torch.compile(function, dynamic=False)
    cotangents = [torch.randn_like(each) for each in _tensors(function(*arguments))]

    def both(way: Callable[..., Any]) -> Thunk:
        return lambda: torch.autograd.grad(_tensors(way(*arguments)), wanted, cotangents)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of PyTorch, about parts of itself, while it compiles
        medians = medians_us({name: both(way) for name, way in ways.items()}, options)
    assert operator.last_rung == "cpp", f"{function.__name__} was served by {operator.last_rung}"
    better = min(medians[name] for name in medians if name != "opwright")
    return Row(f"{function.__name__}, {size}", {**medians, "×": better / medians["opwright"]})


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, tuple | list):
        return [tensor for each in value for tensor in _tensors(each)]
    return [value]


if __name__ == "__main__":
    run_script(measure, __doc__)
