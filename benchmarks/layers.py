"""Single layers of torch.nn through `opwright.module` against the layers themselves, forward, and forward + backward.

python benchmarks/layers.py [--json FILE]
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from scorecard import Options, Row, Scorecard, Target, geometric_mean, medians_us, run_script
from torch import nn

import opwright
from opwright.benchmark.stopwatch import Thunk
from opwright.errors import FallbackWarning

MOST_OF_THE_LAYER = 1.1

Tensor = torch.Tensor
Make = Callable[[], nn.Module]

LAYERS: tuple[tuple[str, Make, tuple[tuple[int, ...], ...]], ...] = (
    ("Linear(512, 512)", lambda: nn.Linear(512, 512), ((512, 512),)),
    ("Conv1d(64, 64, 3)", lambda: nn.Conv1d(64, 64, 3, padding=1), ((16, 64, 512),)),
    ("Conv2d(32, 32, 3)", lambda: nn.Conv2d(32, 32, 3, padding=1), ((8, 32, 56, 56),)),
    ("Conv2d, depthwise", lambda: nn.Conv2d(64, 64, 3, padding=1, groups=64), ((8, 64, 56, 56),)),
    ("ConvTranspose2d(32, 32, 3)", lambda: nn.ConvTranspose2d(32, 32, 3, stride=2), ((8, 32, 28, 28),)),
    ("MaxPool1d(2)", lambda: nn.MaxPool1d(2), ((16, 64, 4096),)),
    ("MaxPool2d(2)", lambda: nn.MaxPool2d(2), ((16, 32, 64, 64),)),
    ("AvgPool2d(2)", lambda: nn.AvgPool2d(2), ((16, 32, 64, 64),)),
    ("AdaptiveAvgPool2d(7)", lambda: nn.AdaptiveAvgPool2d(7), ((16, 32, 56, 56),)),
    ("ReflectionPad2d(2)", lambda: nn.ReflectionPad2d(2), ((16, 32, 56, 56),)),
    ("ReplicationPad2d(2)", lambda: nn.ReplicationPad2d(2), ((16, 32, 56, 56),)),
    ("Upsample, nearest", lambda: nn.Upsample(scale_factor=2), ((8, 32, 32, 32),)),
    ("Upsample, bilinear", lambda: nn.Upsample(scale_factor=2, mode="bilinear"), ((8, 32, 32, 32),)),
    ("BatchNorm2d, eval", lambda: nn.BatchNorm2d(32).eval(), ((16, 32, 56, 56),)),
    ("LayerNorm(1024)", lambda: nn.LayerNorm(1024), ((1024, 1024),)),
    ("GroupNorm(8, 32)", lambda: nn.GroupNorm(8, 32), ((16, 32, 56, 56),)),
    ("GRUCell(256, 256)", lambda: nn.GRUCell(256, 256), ((128, 256), (128, 256))),
    (
        "MultiheadAttention(128, 4)",
        lambda: nn.MultiheadAttention(128, 4, batch_first=True),
        ((8, 128, 128), (8, 128, 128), (8, 128, 128)),
    ),
    ("Embedding(10000, 128)", lambda: nn.Embedding(10_000, 128), ((64, 128),)),
    ("PReLU", nn.PReLU, ((1024, 1024),)),
    ("GELU", nn.GELU, ((1024, 1024),)),
    ("Softmax(-1)", lambda: nn.Softmax(-1), ((1024, 1024),)),
    ("Dropout, eval", lambda: nn.Dropout().eval(), ((1024, 1024),)),
)


def measure(options: Options) -> list[Scorecard]:
    """Race every layer against itself through `opwright.module`, without gradients and with backward."""
    warnings.simplefilter("ignore", FallbackWarning)  # each row names the rung
    without = [_row(name, make, shapes, options, training=False) for name, make, shapes in LAYERS]
    trained = [
        _row(name, make, shapes, options, training=True) for name, make, shapes in LAYERS if not name.startswith("Drop")
    ]
    return [
        _card("single layers, forward without gradients, float32; µs", without),
        _card("single layers, forward + backward, float32; µs", trained),
    ]


def _card(title: str, rows: list[Row]) -> Scorecard:
    ratios = {row.name: ratio for row in rows if (ratio := row.figures["opwright / layer"]) is not None}
    targets = [Target(f"{name}: opwright / layer", ratio, "<=", MOST_OF_THE_LAYER) for name, ratio in ratios.items()]
    mean = Row("geometric mean", {"opwright / layer": geometric_mean(list(ratios.values()))})
    return Scorecard(title, [*rows, mean], targets)


def _row(name: str, make: Make, shapes: tuple[tuple[int, ...], ...], options: Options, *, training: bool) -> Row:
    torch.manual_seed(0)
    layer = make()
    served = opwright.module(layer)
    arguments = [torch.randint(10_000, shape) if "Embedding" in name else torch.randn(shape) for shape in shapes]
    ways = {
        label: _training(way, layer, arguments) if training else _inference(way, arguments)
        for label, way in (("opwright", served), ("layer", layer))
    }
    medians = medians_us(ways, options)
    return Row(f"{name}: {served.last_rung}", medians | {"opwright / layer": medians["opwright"] / medians["layer"]})


def _inference(way: Callable[..., Any], arguments: list[Tensor]) -> Thunk:
    def run() -> Any:
        with torch.no_grad():
            return way(*arguments)

    return run


def _training(way: Callable[..., Any], layer: nn.Module, arguments: list[Tensor]) -> Thunk:
    given = [a.clone().requires_grad_() if a.is_floating_point() else a for a in arguments]
    wanted = [tensor for tensor in (*given, *layer.parameters()) if tensor.requires_grad]
    cotangents: list[Tensor] = []

    def run() -> Any:
        returned = way(*given)
        output = returned[0] if isinstance(returned, tuple) else returned
        if not cotangents:
            cotangents.append(torch.randn_like(output))
        return torch.autograd.grad(output, wanted, cotangents)

    return run


if __name__ == "__main__":
    run_script(measure, __doc__)
