"""Convolution and batch norm that keep nothing but their arguments: saved bytes, peak memory and time.

python benchmarks/conv_bn.py [--json FILE]

One pair, and four in a row. Peak memory is how far the resident set of a fresh process rises in its first forward and
backward pass at this size (VmHWM less VmRSS before), after a pass at a small size that builds, loads and starts what is
needed; the C library returns freed memory at once (MALLOC_MMAP_THRESHOLD_). It counts everything: what is saved,
temporaries, gradients, and what libraries allocate.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from statistics import median
from typing import Any

import torch
from saved_bytes import saved_bytes
from scorecard import Options, Row, Scorecard, Target, medians_us, run_script
from torch import Tensor, nn

import opwright
from opwright.toolchain.modules import module_of_file

MOST_OF_THE_UNFUSED = 1.35
CHANNELS = 32
SIZES = {"small": (2, CHANNELS, 12, 12), "large": (8, CHANNELS, 56, 56)}
PROCESSES = 1

_BY_HAND = module_of_file("conv_bn_by_hand", Path(__file__).parents[1] / "examples" / "by_hand" / "conv_bn.py")

Layer = Callable[[Tensor], Tensor]


def _operator(pair: Callable[..., Tensor]) -> Layer:
    weight = nn.Parameter(torch.randn(CHANNELS, CHANNELS, 3, 3) / 17)
    return lambda x: pair(x, weight)


def _unfused(x: Tensor, weight: Tensor) -> Tensor:
    return _BY_HAND.BatchNorm.apply(_BY_HAND.Conv2d.apply(x, weight))


def _module() -> nn.Module:
    return nn.Sequential(nn.Conv2d(CHANNELS, CHANNELS, 3, bias=False), nn.BatchNorm2d(CHANNELS))


WAYS: dict[str, dict[str, Callable[[], Layer]]] = {
    "operator": {
        "opwright": lambda: _operator(_BY_HAND.conv_bn),
        "fused by hand": lambda: _operator(_BY_HAND.ConvBatchNorm.apply),
        "unfused": lambda: _operator(_unfused),
    },
    "module": {
        "opwright": lambda: opwright.module(_module(), save="inputs"),
        "unfused": _module,
    },
}


def measure(options: Options) -> list[Scorecard]:
    """Measure operators and modules, one pair and four."""
    return [_card(kind, 1 if options.quick else depth, options) for kind in WAYS for depth in (1, 4)]


def _card(kind: str, depth: int, options: Options) -> Scorecard:
    x = torch.randn(SIZES["small" if options.quick else "large"], requires_grad=True)
    networks = {way: _network(make, depth) for way, make in WAYS[kind].items()}
    times = medians_us({way: _pass(network, x) for way, network in networks.items()}, options)
    saved = {way: saved_bytes(network, [x]) for way, network in networks.items()}
    peaks = {way: _peak(kind, way, depth, 1 if options.quick else PROCESSES) for way in networks}
    rows = [Row(way, {"µs": times[way], "saved MB": saved[way] / 1e6, "peak MB": peaks[way] / 1e6}) for way in networks]
    smallest = x.shape[-1] - 2 * depth
    output = x.shape[0] * CHANNELS * smallest * smallest * x.itemsize
    targets = [
        Target("time / unfused", times["opwright"] / times["unfused"], "<=", MOST_OF_THE_UNFUSED),
        Target(
            "saved bytes spared / those of the convolutions' outputs, at least",
            (saved["unfused"] - saved["opwright"]) / (depth * output),
            ">=",
            1.0,
        ),
    ]
    if depth > 1:
        spared = (peaks["unfused"] - peaks["opwright"]) / output
        targets.append(Target("peak memory spared, in outputs of a convolution", spared, ">=", 1.0))
    shape = " × ".join(map(str, x.shape))
    return Scorecard(f"convolution and batch norm, {kind}, {depth} in a row, {shape}, float32", rows, targets)


def _network(make: Callable[[], Layer], depth: int) -> Layer:
    torch.manual_seed(0)
    layers = [make() for _ in range(depth)]
    return lambda x: reduce(lambda value, layer: layer(value), layers, x)


def _pass(network: Layer, x: Tensor) -> Callable[[], Any]:
    """Forward and backward, with gradients of input and weights; what is computed is freed at the end."""
    cotangent = torch.randn_like(network(x))

    def run() -> None:
        network(x).backward(cotangent)
        x.grad = None

    return run


def _peak(kind: str, way: str, depth: int, processes: int) -> float:
    code = f"import conv_bn; conv_bn.print_peak({kind!r}, {way!r}, {depth})"
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536", "OPWRIGHT_TAPE": "now"}
    command = [sys.executable, "-c", code]
    folder = Path(__file__).parent
    found = [
        subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(processes)
    ]
    return median(map(float, found))


def print_peak(kind: str, way: str, depth: int) -> None:
    """What a fresh process does to measure the peak of one way."""
    network = _network(WAYS[kind][way], depth)
    for _ in range(3):
        _pass(network, torch.randn(SIZES["small"], requires_grad=True))()
    x = torch.randn(SIZES["large"], requires_grad=True)
    cotangent = torch.randn([*x.shape[:2], *(size - 2 * depth for size in x.shape[2:])])
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # begins a new peak
    before = _status("VmRSS")
    network(x).backward(cotangent)
    print(_status("VmHWM") - before)


def _status(name: str) -> int:
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    assert found
    return int(found[1]) * 1024


if __name__ == "__main__":
    run_script(measure, __doc__)
