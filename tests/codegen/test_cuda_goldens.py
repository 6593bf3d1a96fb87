"""Emitted CUDA as it is read: `pytest --update-golden` writes the expected files anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from opwright.codegen.cuda.program import CudaSource, emit_cuda
from opwright.operators.stages import derive
from tests.codegen.test_cpp_goldens import CASES

GOLDENS = Path(__file__).parent / "goldens"

# One kernel of each kind; the launcher of the last one.
KINDS = {
    "lltm_cell_forward": "points that do not depend on each other",
    "softmax_forward": "three passes over a row",
    "mean_square_forward": "one row is all there is",
    "layer_norm_backward": "rows, and columns apart from them",
    "directions_forward": "a case for short rows",
}
LAUNCHER = "layer_norm_backward"


def emitted(name: str) -> CudaSource:
    case, _, passage = name.rpartition("_")
    derivation = derive(*CASES[case], case)
    program = derivation.forward if passage == "forward" else derivation.backward
    assert program is not None
    return emit_cuda(program)


@pytest.mark.parametrize("name", KINDS)
def test_golden(name: str, request: pytest.FixtureRequest) -> None:
    source = emitted(name)
    written = {f"{name}.cu": source.device} | ({f"{name}_launcher.cpp": source.host} if name == LAUNCHER else {})
    for file, text in written.items():
        golden = GOLDENS / file
        if request.config.getoption("--update-golden"):
            golden.write_text(text)
        assert golden.read_text() == text, f"{file} is emitted differently; see pytest --update-golden"


def test_emission_is_deterministic() -> None:
    assert emitted("layer_norm_backward") == emitted("layer_norm_backward")


def test_the_launcher_and_the_kernels_have_the_same_arguments() -> None:
    source = emitted("softmax_forward")
    struct = source.device[source.device.index("struct softmax_forward_arguments") :].partition("};")[0]
    assert struct in source.host
