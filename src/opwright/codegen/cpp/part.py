"""A Program ready for emission: verified, with placeholders for its names, and comments for its kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from opwright.codegen.cpp.named_sizes import named_sizes
from opwright.codegen.placeholders import with_placeholders
from opwright.ir.expressions.integer import Integer
from opwright.ir.program import Kernel, Program
from opwright.ir.verifier import verify

Formulas = Callable[[Kernel], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Part:
    """A Program without cases, or one of its cases, ready to be written.

    Attributes:
        program: The Program, verified, with placeholders for names.
        remarks: The comment lines for each of its kernels.
        sizes: The names and values of its computed sizes.
    """

    program: Program
    remarks: tuple[Sequence[str], ...]
    sizes: tuple[tuple[str, Integer], ...]


def part_of(program: Program, formulas: Formulas) -> Part:
    """Verify a Program without cases after the last pass, and make it ready.

    Raises:
        InternalError: If it is malformed.
    """
    verify(program)
    remarks = tuple(formulas(step) for step in program.steps if isinstance(step, Kernel))
    named, sizes = named_sizes(with_placeholders(program))
    return Part(named, remarks, sizes)
