"""Models with operators as C++ programs by AOTInductor, against the same models without operators.

python benchmarks/deployment.py [--json FILE]

The ways are programs of their own, which take turns, one thread each; a figure is the median over turns of the median
that `./main` prints. The time to deploy is that of a fresh process with empty caches, from the call of `deploy` until
`check` has built and run the program; importing torch and opwright is not counted.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import torch
from scorecard import Options, Row, Scorecard, Target, geometric_mean, run_script
from torch import Tensor, nn
from torch.nn import functional

import opwright

MOST_OF_PLAIN = 1.0
MOST_SECONDS = 90.0
_TURNS = 7
_WAYS: Mapping[str, tuple[bool, bool]] = {"operators": (True, False), "direct": (True, True), "plain": (False, False)}
_CACHES = ("OPWRIGHT_CACHE", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "XDG_CACHE_HOME")


@opwright.operator(name="benchmarked::gated")
def gated(x: Tensor, gate: Tensor) -> Tensor:
    return functional.silu(gate) * x


@opwright.operator(name="benchmarked::lltm_gates")
def lltm_gates(gates: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    input_gate, output_gate, candidate = gates.chunk(3, dim=1)
    cell = old_cell + functional.elu(candidate) * torch.sigmoid(input_gate)
    return torch.tanh(cell) * torch.sigmoid(output_gate), cell


@opwright.operator(name="benchmarked::scaled_mish")
def scaled_mish(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    return functional.mish(x * scale[None, :, None, None] + shift[None, :, None, None])


@opwright.operator(name="benchmarked::normalised_error")
def normalised_error(x: Tensor, target: Tensor) -> Tensor:
    def whitened(values: Tensor) -> Tensor:
        return (values - values.mean(-1, keepdim=True)) * torch.rsqrt(values.var(-1, keepdim=True) + 1e-5)

    return (whitened(x) - whitened(target)).square().mean(-1)


@opwright.operator(name="benchmarked::stretched")
def stretched(x: Tensor, power: int, slope: float) -> Tensor:
    return torch.where(x > 0, x**power, slope * x)


Operator = Callable[..., Any]


class GatedMLP(nn.Module):
    def __init__(self, gated: Operator, width: int) -> None:
        super().__init__()
        self.gated = gated
        self.up, self.gate = nn.Linear(width, 2 * width), nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.gated(self.up(x), self.gate(x)))


class UnrolledLLTM(nn.Module):
    def __init__(self, lltm_gates: Operator, width: int) -> None:
        super().__init__()
        self.lltm_gates = lltm_gates
        self.weights = nn.Linear(2 * width, 3 * width)

    def forward(self, steps: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        for step in steps.unbind(0):
            hidden, cell = self.lltm_gates(self.weights(torch.cat([hidden, step], 1)), cell)
        return hidden, cell


class ConvolutionBlock(nn.Module):
    def __init__(self, scaled_mish: Operator, channels: int) -> None:
        super().__init__()
        self.scaled_mish = scaled_mish
        self.convolution = nn.Conv2d(channels, channels, 3, padding=1)
        self.scale = nn.Parameter(torch.linspace(0.5, 2, channels))
        self.shift = nn.Parameter(torch.linspace(-1, 1, channels))

    def forward(self, x: Tensor) -> Tensor:
        return functional.max_pool2d(self.scaled_mish(self.convolution(x), self.scale, self.shift), 2)


class Wrapped(nn.Module):
    """A function as a module."""

    def __init__(self, function: Operator) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Tensor) -> Any:
        return self.function(*args)


def _loss(error: Operator) -> nn.Module:
    return Wrapped(lambda x, target: error(x, target).mean())


def _numbers(stretched: Operator) -> nn.Module:
    return Wrapped(lambda x: stretched(stretched(x, 2, 0.25), 3, 0.5))


def _two(gated: Operator, error: Operator) -> nn.Module:
    return Wrapped(lambda x, gate: gated(x, gate) * error(x, gate)[..., None])


Model = tuple[tuple[Any, ...], Callable[..., nn.Module], tuple[tuple[int, ...], ...]]

# The operators of each model, what makes it of them, and the sizes of its arguments.
MODELS: Mapping[str, Model] = {
    "MLP, 32 × 256": ((gated,), lambda f: GatedMLP(f, 256), ((32, 256),)),
    "MLP, 512 × 768": ((gated,), lambda f: GatedMLP(f, 768), ((512, 768),)),
    "LLTM, 8 steps, 32 × 128": ((lltm_gates,), lambda f: UnrolledLLTM(f, 128), ((8, 32, 128), (32, 128), (32, 128))),
    "LLTM, 4 steps, 256 × 1024": (
        (lltm_gates,), lambda f: UnrolledLLTM(f, 1024), ((4, 256, 1024), (256, 1024), (256, 1024))
    ),
    "convolution, 4 × 32 × 64 × 64": ((scaled_mish,), lambda f: ConvolutionBlock(f, 32), ((4, 32, 64, 64),)),
    "normalising loss, 64 × 256": ((normalised_error,), _loss, ((64, 256), (64, 256))),
    "normalising loss, 1024 × 1024": ((normalised_error,), _loss, ((1024, 1024), (1024, 1024))),
    "numbers, 1024 × 1024": ((stretched,), _numbers, ((1024, 1024),)),
    "two operators, 512 × 1024": ((gated, normalised_error), _two, ((512, 1024), (512, 1024))),
}  # fmt: skip


def measure(options: Options) -> list[Scorecard]:
    """Race the programs of every model, then deploy every model with empty caches."""
    names = list(MODELS)[:1] if options.quick else list(MODELS)
    rows = [_race(name, 1 if options.quick else _TURNS) for name in names]
    ratios = {way: [row.figures[f"{way} / plain"] or 0.0 for row in rows] for way in ("operators", "direct")}
    raced = [
        Target(f"{way}: geometric mean of its time / plain's", geometric_mean(found), "<=", MOST_OF_PLAIN)
        for way, found in ratios.items()
    ]
    times = [
        Row(name, dict(zip(("deploy, then check", "of processors"), _seconds(name), strict=True))) for name in names
    ]
    longest = max(row.figures["deploy, then check"] or 0.0 for row in times)
    return [
        Scorecard("C++ programs by AOTInductor, float32, one thread; µs", rows, raced),
        Scorecard(
            "a model to aoti with empty caches; seconds", times,
            [Target("longest", longest, "<=", MOST_SECONDS, " s")],
        ),
    ]  # fmt: skip


def _model(name: str, *, with_operators: bool) -> tuple[nn.Module, tuple[Tensor, ...]]:
    torch.manual_seed(0)
    operators, make, shapes = MODELS[name]
    model = make(*(each if with_operators else each.reference for each in operators))
    return model.eval(), tuple(torch.randn(shape) for shape in shapes)


def _race(name: str, turns: int) -> Row:
    found: dict[str, list[float]] = {way: [] for way in _WAYS}
    with tempfile.TemporaryDirectory() as scratch:
        written = {}
        for way, (with_operators, direct) in _WAYS.items():
            model, args = _model(name, with_operators=with_operators)
            written[way] = opwright.deploy(model, args, at=Path(scratch) / way, direct=direct)
            written[way].check()
        for _ in range(turns):
            for way, deployment in written.items():
                found[way].append(_printed_median_us(deployment.path / "main"))
    medians = {way: median(times) for way, times in found.items()}
    return Row(name, medians | {f"{way} / plain": medians[way] / medians["plain"] for way in ("operators", "direct")})


def _printed_median_us(program: Path) -> float:
    said = subprocess.run([program], env={"OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=True).stdout
    return float(said.rpartition("median of a run: ")[2].split()[0])


def _seconds(name: str) -> tuple[float, float]:
    """How long it takes, and how much time of processors; on a busy machine the second says more."""
    with tempfile.TemporaryDirectory() as scratch:
        caches = {variable: str(Path(scratch) / variable.lower()) for variable in _CACHES}
        environment = os.environ | caches | {"OPWRIGHT_QUIET": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
        environment["OPWRIGHT_TAPE"] = "background"  # as users have it: a deployment waits for no hot path
        program = "import sys, deployment; deployment.deploy_once(*sys.argv[1:])"
        command = [sys.executable, "-c", program, name, str(Path(scratch) / "out")]
        said = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
    wall, processors = json.loads(said.splitlines()[-1])
    return float(wall), float(processors)


def deploy_once(name: str, at: str) -> None:
    """Deploy and check a model in this process, and print how many seconds it took, and how many of processors."""
    model, args = _model(name, with_operators=True)
    start, used = time.perf_counter(), _processor_seconds()
    opwright.deploy(model, args, at=at).check()
    print(json.dumps([time.perf_counter() - start, _processor_seconds() - used]))


def _processor_seconds() -> float:
    """Those of this process and of the compilers that have ended."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


if __name__ == "__main__":
    run_script(measure, __doc__)
