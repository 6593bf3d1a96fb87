"""What type checkers know of operators; `make lint` reads this file, and nobody runs it."""

from __future__ import annotations

from typing import assert_type

import torch
from torch import Tensor

import opwright
from opwright.benchmark import BenchReport
from opwright.checking import Verdict
from opwright.projects import Ejected


@opwright.operator
def scaled_as_declared(x: Tensor, factor: float = 2.0) -> Tensor:
    """Make one tensor."""
    return x * factor


@opwright.operator(name="some::parts", samples=opwright.shapes("B F"))
def parts(x: Tensor) -> tuple[Tensor, Tensor]:
    """Make two tensors."""
    return x, x


x = torch.ones(3)
assert_type(scaled_as_declared(x), Tensor)
assert_type(scaled_as_declared(x, factor=3.0), Tensor)
assert_type(parts(x), tuple[Tensor, Tensor])
assert_type(opwright.operator(torch.sin)(x), Tensor)
scaled_as_declared("x")  # type: ignore[arg-type]
parts()  # type: ignore[call-arg]
scaled_as_declared.check(dtype=torch.float32)  # type: ignore[call-arg]
assert_type(scaled_as_declared.check(), Verdict)
assert_type(scaled_as_declared.bench(compile=False), BenchReport)
assert_type(scaled_as_declared.eject("scaled/"), Ejected)
assert_type(scaled_as_declared.source("cpp"), str)
