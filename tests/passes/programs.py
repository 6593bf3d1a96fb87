"""Printed Programs without what the tests of a pass do not look at."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent
from typing import Any

import torch

from opwright.ir.printer import print_program
from opwright.ir.program import Program
from opwright.ir.verifier import verify
from tests.derived import lowered, specs_of

Pass = Callable[[Program], Program]


def steps(program: Program) -> str:
    """The steps of a verified Program as text."""
    verify(program)
    lines = print_program(program).splitlines()[1:]
    return "\n".join(line for line in dedent("\n".join(lines)).splitlines() if not line.startswith("guard "))


def lowered_from(reference: Callable[..., Any], *tensors: torch.Tensor) -> Program:
    """The Program of a reference whose parameters are called x, y, z."""
    return lowered(reference, specs_of("xyz"[: len(tensors)], tensors))


def text(block: str) -> str:
    """An expected listing, as it is indented in a test."""
    return dedent(block).strip("\n")
