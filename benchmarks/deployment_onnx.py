"""Operators in ONNX Runtime: the library with our kernels, against the same operators as ONNX functions.

python benchmarks/deployment_onnx.py [--json FILE]

One thread, float32, at three sizes of one model whose sizes may change; it needs opwright[onnx]. Arguments and results
are bound to the session once: `run_with_ort_values` raises and catches exceptions of C++ at every call, which takes
60 µs and more.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import onnxruntime
import torch
from scorecard import Options, Row, Scorecard, Target, geometric_mean, medians_us, run_script
from torch.nn import functional

import opwright
from opwright.benchmark.stopwatch import Thunk

SIZES = ((16, 128), (128, 768), (1024, 1024))
LEAST_MEAN = 1.2

Tensor = torch.Tensor


@opwright.operator(name="benchmarked::masked_softmax")
def masked_softmax(x: Tensor, mask: Tensor) -> Tensor:
    return torch.softmax(torch.where(mask, x * 0.125, float("-inf")), -1)


@opwright.operator(name="benchmarked::residual_norm")
def residual_norm(x: Tensor, residual: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    h = x + residual
    return h * torch.rsqrt(h.square().mean(-1, keepdim=True) + 1e-6) * weight, h


@opwright.operator(name="benchmarked::gelu_bias_residual")
def gelu_bias_residual(x: Tensor, residual: Tensor, bias: Tensor) -> Tensor:
    return functional.gelu(x + bias) + residual


def _mask(rows: int, columns: int) -> Tensor:
    return (torch.arange(columns) < torch.arange(1, rows + 1)[:, None]) | (torch.arange(columns) % 3 == 0)


CASES: Mapping[Callable[..., Any], Callable[[int, int], tuple[Tensor, ...]]] = {
    masked_softmax: lambda n, k: (torch.randn(n, k), _mask(n, k)),
    residual_norm: lambda n, k: (torch.randn(n, k), torch.randn(n, k), torch.randn(k)),
    gelu_bias_residual: lambda n, k: (torch.randn(n, k), torch.randn(n, k), torch.randn(k)),
}


def measure(options: Options) -> Scorecard:
    """Race the two forms of every operator, which must agree. The target is for rows, not for element-wise work."""
    rows = [row for operator in CASES for row in _rows(operator, options)]
    fused = [row.figures["speed-up"] or 0.0 for row in rows if not row.name.startswith("gelu")]
    targets = [Target("fused rows: geometric mean of the speed-ups", geometric_mean(fused), ">=", LEAST_MEAN, "×")]
    return Scorecard(f"ONNX Runtime {onnxruntime.__version__}, float32, one thread; µs", rows, targets)


def _rows(operator: Callable[..., Any], options: Options) -> list[Row]:
    name = getattr(operator, "name", "").partition("::")[2]
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        sessions = {form: _session(operator, form, Path(scratch) / form) for form in ("custom", "function")}
        for size in SIZES:
            args = CASES[operator](*size)
            _agree(sessions, args)
            medians = medians_us({form: _run(session, args) for form, session in sessions.items()}, options)
            figures = medians | {"speed-up": medians["function"] / medians["custom"]}
            rows.append(Row(f"{name}, {' × '.join(map(str, size))}", figures))
    return rows


def _session(operator: Callable[..., Any], form: Any, at: Path) -> Any:
    rows, columns = torch.export.Dim("rows"), torch.export.Dim("columns")
    args = CASES[operator](6, 40)
    shapes = tuple({0: rows, 1: columns} if arg.dim() == 2 else {0: columns} for arg in args)
    deployment = opwright.deploy(operator, args, to="onnx", at=at, operators=form, dynamic_shapes=shapes)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    for library in (file for file in deployment.files if file.endswith(".so")):
        options.register_custom_ops_library(str(deployment.path / library))
    return onnxruntime.InferenceSession(str(at / "model.onnx"), options, providers=["CPUExecutionProvider"])


def _bound(session: Any, args: tuple[Tensor, ...]) -> Any:
    binding = session.io_binding()
    for each, arg in zip(session.get_inputs(), args, strict=True):
        binding.bind_ortvalue_input(each.name, onnxruntime.OrtValue.ortvalue_from_numpy(arg.numpy()))
    for each in session.get_outputs():
        binding.bind_output(each.name)
    return binding


def _run(session: Any, args: tuple[Tensor, ...]) -> Thunk:
    binding = _bound(session, args)
    return lambda: session.run_with_iobinding(binding)


def _agree(sessions: Mapping[str, Any], args: tuple[Tensor, ...]) -> None:
    results = []
    for session in sessions.values():
        binding = _bound(session, args)
        session.run_with_iobinding(binding)
        results.append(map(torch.from_numpy, binding.copy_outputs_to_cpu()))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


if __name__ == "__main__":
    run_script(measure, __doc__)
