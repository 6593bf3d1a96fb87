"""What is refused or malformed is said in the Program's own names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opwright.codegen.cpp.program import emit_program
from opwright.codegen.cuda.program import emit_cuda
from opwright.codegen.placeholders import plain, with_placeholders
from opwright.errors import InternalError, NoKernel
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Load, Local
from opwright.ir.expressions.integer import integer, symbol
from opwright.ir.names.renaming import rename
from opwright.ir.program import Axis, Buffer, Kernel, Let, Program, Store, size_symbol

AT = symbol("i0")
X = Buffer("x", DType.FLOAT32, (size_symbol("x", 0),))
Y = Buffer("y", DType.FLOAT32, (integer(2),))


def reading(index: object) -> Program:
    load = Load("x", (index,), DType.FLOAT32)
    lets, store = (Let("x", load),), Store("y", (AT,), Local("x", DType.FLOAT32))
    kernel = Kernel("y", (Y,), (Axis("i0", integer(2)),), lets, (store,))
    return Program("squares", (X,), (), (kernel,), ("y",), ())


@pytest.mark.parametrize("emit", [emit_program, emit_cuda])
def test_refusals(emit: object) -> None:
    with pytest.raises(NoKernel, match=r"^'x' is indexed by i0\*i0, which is not affine$"):
        emit(reading(AT * AT))


@pytest.mark.parametrize("emit", [emit_program, emit_cuda])
def test_malformed_programs_are_not_written(emit: object) -> None:
    with pytest.raises(InternalError, match="output z does not exist"):
        emit(replace(reading(AT), outputs=("z",)))


def test_a_program_comes_back_from_its_placeholders() -> None:
    program = reading(AT + size_symbol("x", 0) - 2)
    drafted = with_placeholders(program)
    assert drafted != program
    assert rename(drafted, plain) == program
