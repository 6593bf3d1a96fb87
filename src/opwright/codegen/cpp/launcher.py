"""A Program as C++ functions for other sources to call, without a registration at the dispatcher."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from opwright.codegen.cpp.program import emit_program
from opwright.ir.program import Kernel, Program

_OPENING = "namespace opwright::emitted {\n\n"


def emit_launcher(program: Program, formulas: Callable[[Kernel], Sequence[str]] = lambda _: ()) -> str:
    """Write the row functions of a Program, and its launcher, which is not static and has the Program's name.

    Args, raises: As `emit_program`.
    """
    text = emit_program(program, formulas).text
    return functions_of(text[: text.index(f"static void {program.name}_on_stack(")], program.name)


def functions_of(text: str, name: str) -> str:
    """The functions of a source before its registration; other sources can call its launcher by name."""
    return text[text.index(_OPENING) + len(_OPENING) :].replace(f"static bool {name}(", f"bool {name}(").rstrip()


def launcher_signature(name: str) -> str:
    """The declaration of a launcher: it takes tensors and sizes, and makes results unless a guard fails."""
    return f"bool {name}(const Tensor* given, const Size* sizes, Tensor* made)"
