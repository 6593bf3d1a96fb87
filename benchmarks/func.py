"""Transforms of `opwright.func` and whole steps, against `torch.func` in eager and under `torch.compile`.

python benchmarks/func.py [--without-compile] [--processor-time] [--json FILE]

Each way is the same function of the same arguments: `opwright.func` of it, `torch.func` of it, and `torch.compile`
around that. The steps are those of examples/steps.py, as operators, and under `torch.compile`. Everything runs on one
thread, so that small calls are not at the mercy of the scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - as everybody calls it
from example_operators import example_operator
from scorecard import Options, Row, Scorecard, Target, geometric_mean, medians_us, run_script
from torch import Tensor

import opwright
from opwright import func

LEAST = {"small": 3.0, "medium": 1.5, "large": 1.1}
Case = tuple[Callable[[Any], Callable[..., Any]], Callable[..., tuple[Any, ...]], tuple[tuple[int, ...], ...]]


def swiglu_loss(x: Tensor, gate: Tensor) -> Tensor:
    """Element-wise work, then one number."""
    return (F.silu(gate) * x).square().mean()


def of_row(weight: Tensor, x: Tensor) -> Tensor:
    """The loss of one sample."""
    return torch.tanh(x * weight).square().sum()


def block(x: Tensor, bias: Tensor, residual: Tensor) -> Tensor:
    """One step of a transformer's block."""
    return F.gelu(x + bias) + residual


def quartic(x: Tensor, matrix: Tensor) -> Tensor:
    """A function with a dense Hessian."""
    return (torch.tanh(x) * (matrix @ x)).sum()


def normed(x: Tensor, weight: Tensor) -> Tensor:
    """An RMS norm of rows."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight


def _pulled(transforms: Any) -> Callable[..., Any]:
    def step(x: Tensor, weight: Tensor, cotangent: Tensor) -> Any:
        output, pull = transforms.vjp(normed, x, weight)
        return output, pull(cotangent)

    return step


def _pushed(transforms: Any) -> Callable[..., Any]:
    return lambda *given: transforms.jvp(block, given[:3], given[3:])


def _random(*shapes: tuple[int, ...]) -> tuple[Tensor, ...]:
    return tuple(torch.randn(shape) for shape in shapes)


PLANES = ((16, 128), (256, 1024), (1024, 4096))
TRANSFORMS: dict[str, Case] = {
    "grad": (lambda t: t.grad(swiglu_loss, (0, 1)), lambda n, m: _random((n, m), (n, m)), PLANES),
    "vmap(grad)": (
        lambda t: t.vmap(t.grad(of_row), in_dims=(None, 0)),
        lambda n, m: _random((m,), (n, m)),
        PLANES,
    ),
    "jvp": (_pushed, lambda n, m: _random((n, m), (m,), (n, m)) * 2, PLANES),
    "vjp": (_pulled, lambda n, m: _random((n, m), (m,), (n, m)), PLANES),
    "vjp in an operator": (
        lambda t: opwright.operator(_pulled(t)) if t is func else _pulled(t),
        lambda n, m: _random((n, m), (m,), (n, m)),
        PLANES,
    ),
    "hessian": (lambda t: t.hessian(quartic), lambda n: _random((n,), (n, n)), ((8,), (64,), (256,))),
    "jacrev": (lambda t: t.vmap(t.jacrev(normed), in_dims=(0, None)), lambda n, m: _random((n, m), (m,)), (
        (16, 8), (256, 16), (1024, 64),
    )),
}  # fmt: skip


def _weights(inputs: int, width: int, *, trained: bool = False) -> dict[str, Tensor]:
    shapes = {"first": (width, inputs), "bias": (width,), "second": (width, width), "last": (width,)}
    return {name: (torch.randn(shape) / width**0.5).requires_grad_(trained) for name, shape in shapes.items()}


STEPS: dict[str, tuple[Callable[..., tuple[Any, ...]], tuple[tuple[int, int], ...]]] = {
    "pinn_step": (lambda n, m: (_weights(1, m), torch.randn(n, 1)), ((32, 16), (512, 64), (4096, 128))),
    "force_matching": (lambda n, m: (_weights(1, m), *_random((n, 3), (n, 3))), ((8, 8), (32, 32), (64, 64))),
    "gradient_penalty": (
        lambda n, m: (_weights(m, m, trained=True), *_random((n, m), (n, m)), torch.rand(n, 1)),
        ((16, 16), (128, 128), (512, 512)),
    ),
    "clipped_gradients": (
        lambda n, m: (_weights(m, m), *_random((n, m), (n,))),
        ((16, 16), (64, 64), (256, 256)),
    ),
}


def measure(options: Options, wanted: Sequence[str] = (*TRANSFORMS, *STEPS)) -> Scorecard:
    """Time each at three sizes."""
    torch.set_num_threads(1)
    rows, ratios = [], dict[str, list[float]]()
    for name in wanted[:1] if options.quick else wanted:
        prepare, sizes = (TRANSFORMS[name][1], TRANSFORMS[name][2]) if name in TRANSFORMS else STEPS[name]
        for scale, size in zip(LEAST, sizes, strict=True):
            torch.manual_seed(0)
            rows.append(Row(f"{name} {'x'.join(map(str, size))}", _timed(name, prepare(*size), options)))
            figures = rows[-1].figures
            ours = figures["opwright"] or 1.0
            ratios.setdefault(scale, []).append((figures.get("compile") or figures.get("eager") or ours) / ours)
    targets = [Target(f"{s}: compile / opwright", geometric_mean(found), ">=", LEAST[s]) for s, found in ratios.items()]
    return Scorecard("transforms and steps; µs", rows, targets)


def _timed(name: str, args: tuple[Any, ...], options: Options) -> dict[str, float]:
    if name in TRANSFORMS:
        make = TRANSFORMS[name][0]
        ours, plain = make(func), make(torch.func)
    else:
        ours = example_operator(name, "steps")
        plain = ours.reference
    ways = {"opwright": lambda: ours(*args)}
    if name in TRANSFORMS:  # a step as written calls opwright.func, whose parts are operators
        ways["eager"] = lambda: plain(*args)
    if not (options.quick or options.without_compile):
        torch.compiler.reset()  # one compilation for exactly these sizes
        compiled = torch.compile(plain)
        ways["compile"] = lambda: compiled(*args)
    return medians_us(ways, options)


if __name__ == "__main__":
    run_script(measure, __doc__)
