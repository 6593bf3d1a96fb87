"""Forward derivatives and per-sample gradients of element-wise operators and rows, against eager `torch.func`.

python benchmarks/transforms.py [--without-compile] [--processor-time] [--json FILE]

"torch.func" is the transform of our operator by PyTorch, whose own part of a call is the same for every function;
"nothing" is that part, measured with a function that gives as many of its arguments back as the operator gives results.
"operator" is the transform as an operator: `op.jvp()`, and `op.vjp().vmap()`. "forward" is the pass that `grad` runs
before its own: `op.vmap()`. Everything runs on one thread, so that small calls are not at the mercy of the scheduler.
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
from opwright import Operator

SIZES = {"small": (16, 128), "medium": (256, 1024)}
LEAST = {"small": 4.0, "medium": 3.0}
PASSES = ("forward", "operator")
MOST_OF_OURS = 1.5

Case = tuple[Operator, tuple[Tensor, ...]]


@opwright.operator
def gelu_bias_residual(x: Tensor, bias: Tensor, residual: Tensor) -> Tensor:
    """One step of a transformer's block."""
    return F.gelu(x + bias) + residual


@opwright.operator
def swiglu(x: Tensor, gate: Tensor) -> Tensor:
    """A gated unit."""
    return F.silu(gate) * x


@opwright.operator
def softmax(x: Tensor) -> Tensor:
    """Over rows."""
    return torch.softmax(x, -1)


@opwright.operator
def rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    """Over rows."""
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * weight


def cases(batch: int, width: int) -> list[Case]:
    """Operators with arguments; those with two dimensions have a batch."""
    x, y, weight = torch.randn(batch, width), torch.randn(batch, width), torch.randn(width)
    return [
        (example_operator("lltm_cell"), (torch.randn(batch, 3 * width), x)),
        (gelu_bias_residual, (x, weight, y)),
        (swiglu, (x, y)),
        (softmax, (x,)),
        (rms_norm, (x, weight)),
    ]


def measure(options: Options) -> Scorecard:
    """Time both transforms at both sizes."""
    torch.set_num_threads(1)
    rows, targets = [], []
    for transform, ways in (("jvp", _jvp), ("vmap(grad)", _vmap_of_grad)):
        for size, (batch, width) in SIZES.items():
            found = []
            for operator, args in cases(batch, width):
                torch.compiler.reset()  # or it stops compiling what it has compiled for eight others
                with_compile = not (options.quick or options.without_compile)
                name = f"{transform} {operator.name.split('::')[1]} {batch}x{width}"
                found.append(Row(name, medians_us(ways(operator, args, with_compile), options)))
            targets += [_target(f"{transform}, {size}", way, found, LEAST[size]) for way in ("torch.func", "operator")]
            targets.append(_target_of_what_is_ours(f"{transform}, {size}", found))
            rows += found
    return Scorecard("forward derivatives and gradients of every row; µs", rows, targets)


def _target(what: str, way: str, rows: Sequence[Row], least: float) -> Target:
    ratios = [(row.figures["eager"] or 0.0) / (row.figures[way] or 1.0) for row in rows]
    return Target(f"{what}, {way}: eager / opwright", geometric_mean(ratios), ">=", least)


def _target_of_what_is_ours(what: str, rows: Sequence[Row]) -> Target:
    """How near to the least there can be: what PyTorch takes for nothing, and the operators that have to run."""
    ratios = [
        (row.figures["torch.func"] or 0.0) / sum(row.figures.get(part) or 0.0 for part in ("nothing", *PASSES))
        for row in rows
    ]
    return Target(f"{what}, torch.func / (nothing + passes)", geometric_mean(ratios), "<=", MOST_OF_OURS)


def _jvp(operator: Operator, args: Sequence[Tensor], with_compile: bool) -> dict[str, Any]:
    args, tangents = tuple(args), tuple(torch.randn_like(arg) for arg in args)
    of_reference = lambda: torch.func.jvp(operator.reference, args, tangents)  # noqa: E731
    derived, nothing = operator.jvp(), _nothing(operator, args)
    ways = {
        "eager": of_reference,
        "torch.func": lambda: torch.func.jvp(operator, args, tangents),
        "operator": lambda: derived(*args, *tangents),
        "nothing": lambda: torch.func.jvp(nothing, args, tangents),
    }
    return {**ways, "compile": torch.compile(of_reference)} if with_compile else ways


def _vmap_of_grad(operator: Operator, args: Sequence[Tensor], with_compile: bool) -> dict[str, Any]:
    """The gradient of the sum of the first output, for every row by itself."""
    rows = tuple(0 if arg.dim() == 2 else None for arg in args)
    every = tuple(range(len(args)))

    def of(function: Callable[..., Any]) -> Callable[..., Any]:
        return torch.vmap(torch.func.grad(lambda *given: _first(function(*given)).sum(), every), rows)

    of_reference, of_operator, of_nothing = of(operator.reference), of(operator), of(_nothing(operator, args))
    names = list(operator._signature.parameters)
    batched = [parameter.name for parameter, row in zip(names, rows, strict=True) if row == 0]
    backward = operator.vjp()
    cotangents = [parameter.name for parameter in backward._signature.parameters[len(args) :]]
    forward, derived = operator.vmap(*batched), backward.vmap(*batched, *cotangents)
    outputs = operator.reference(*args)
    tangents = (
        [torch.ones_like(outputs)]
        if isinstance(outputs, Tensor)
        else [
            torch.ones_like(output) if place == 0 else torch.zeros_like(output) for place, output in enumerate(outputs)
        ]
    )
    ways = {
        "eager": lambda: of_reference(*args),
        "torch.func": lambda: of_operator(*args),
        "operator": lambda: derived(*args, *tangents),
        "forward": lambda: forward(*args),
        "nothing": lambda: of_nothing(*args),
    }
    return {**ways, "compile": torch.compile(lambda: of_reference(*args))} if with_compile else ways


def _nothing(operator: Operator, args: Sequence[Tensor]) -> Callable[..., Any]:
    """A function that gives back as many arguments as the operator gives results."""
    outputs = operator.reference(*args)
    if isinstance(outputs, Tensor):
        return lambda *given: given[0]
    return lambda *given: tuple(given[place % len(given)] for place in range(len(outputs)))


def _first(result: Any) -> Tensor:
    first: Tensor = result[0] if isinstance(result, tuple) else result
    return first


if __name__ == "__main__":
    run_script(measure, __doc__)
