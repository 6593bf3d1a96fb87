"""A Program as C++ functions that other sources call, without the registration that makes a library of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from opwright.codegen.cpp_program import emit_program
from opwright.ir.program import Kernel, Program

_OPENING = "namespace opwright::emitted {\n\n"


def emit_launcher(program: Program, formulas: Callable[[Kernel], Sequence[str]] = lambda _: ()) -> str:
    """Write the row functions of a Program, and its launcher, which is not static and has the Program's name.

    Args, raises: As `emit_program`.
    """
    text = emit_program(program, formulas).text
    functions = text[text.index(_OPENING) + len(_OPENING) : text.index(f"static void {program.name}_on_stack(")]
    launcher = launcher_signature(program.name)
    return functions.replace(f"static {launcher}", launcher).rstrip()


def launcher_signature(name: str) -> str:
    """How a launcher is declared: it takes tensors and sizes, and makes results unless it declines."""
    return f"bool {name}(const Tensor* given, const Size* sizes, Tensor* made)"
