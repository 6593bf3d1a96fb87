"""What a GPU must do rightly before its figures mean anything: streams, graphs, odd sizes, the kernels themselves."""

from __future__ import annotations

from collections.abc import Callable

import torch
from gpu_operators import gated
from rows import layer_norm, softmax

from opwright import Operator, shapes
from opwright.checking import check

SAMPLES = {
    gated: shapes("R C", "R C", R=(7, 64), C=(33, 4096)),
    softmax: shapes("R C", R=(7, 64), C=(33, 4096)),
    layer_norm: shapes("R C", "C", "C", R=(7, 64), C=(33, 4096)),
}


def run_checks(device: str) -> dict[str, str]:
    """Check; return a sentence for each check that failed, by its name, and an empty one for each that passed."""
    findings = {name: _outcome(work, device) for name, work in _CHECKS.items()}
    for function, samples in SAMPLES.items():
        operator = Operator(function, name=f"gpu_check_{function.__name__}", samples=samples)
        verdict = check(operator, device=device)
        findings[f"check {function.__name__}"] = "" if verdict.passed else str(verdict)
    return findings


def _outcome(work: Callable[[str], None], device: str) -> str:
    try:
        work(device)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _same(found: torch.Tensor, x: torch.Tensor, operator: Operator) -> None:
    assert operator.last_rung == "cuda", f"served by {operator.last_rung}"
    torch.testing.assert_close(found, torch.tanh(x) * x)


def _fresh(name: str) -> Operator:
    """An operator whose kernels are not loaded yet."""
    return Operator(gated, name=f"gpu_{name}")


def _side_stream(device: str) -> None:
    operator, stream = _fresh("side_stream"), torch.cuda.Stream(device)
    with torch.cuda.stream(stream):
        x = torch.randn(1 << 24, device=device)
        for _ in range(20):
            x = x * 1.0001  # still under way when the operator is called
        found = operator(x, x)
    stream.synchronize()
    _same(found, x, operator)


def _captured(device: str) -> None:
    operator, x = _fresh("captured"), torch.randn(1000, device=device)
    operator(x[:10], x[:10])  # derives and builds; other kernels of the library load in the capture
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = operator(x, x)
    x.copy_(torch.randn(1000, device=device))
    graph.replay()
    torch.cuda.synchronize(device)
    _same(found, x, operator)


def _odd_sizes(device: str) -> None:
    operator = _fresh("odd_sizes")
    for shape in ((), (1,), (3,), (5, 7), (2, 1, 9), (1 << 20,)):
        x = torch.randn(shape, device=device)
        _same(operator(x, x), x, operator)
    empty = torch.randn(0, 4, device=device)
    assert operator(empty, empty).shape == (0, 4)


def _layouts(device: str) -> None:
    operator, x = _fresh("layouts"), torch.randn(64, 129, device=device)
    for view in (x.t(), x[:, 1:], x[::2, ::3], x[:, :1].expand(64, 129), x[1:, 3:]):
        _same(operator(view, view), view, operator)


def _beyond_32_bits(device: str) -> None:
    count = (1 << 31) + 5
    if torch.cuda.get_device_properties(device).total_memory < 40e9:
        return
    operator, x = _fresh("beyond"), torch.ones(count, device=device, dtype=torch.bfloat16)
    found = operator(x, x)
    assert operator.last_rung == "cuda", f"served by {operator.last_rung}"
    assert bool((found == found[0]).all())
    assert abs(float(found[-1]) - 0.7616) < 0.01


def _other_devices(_: str) -> None:
    operator = _fresh("other_devices")
    for index in range(torch.cuda.device_count()):
        x = torch.randn(1000, device=f"cuda:{index}")
        found = operator(x, x)
        assert found.device == x.device
        _same(found, x, operator)


_CHECKS: dict[str, Callable[[str], None]] = {
    "a side stream": _side_stream,
    "the capture of a CUDA graph": _captured,
    "odd and empty sizes": _odd_sizes,
    "layouts": _layouts,
    "more than 2³¹ elements": _beyond_32_bits,
    "every GPU that is here": _other_devices,
}
