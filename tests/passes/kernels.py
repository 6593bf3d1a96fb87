"""Kernels of hand-made expressions, and how they print."""

from __future__ import annotations

from collections.abc import Mapping

from opwright.ir.expressions.expression import Expression, Load, Local
from opwright.ir.program import Buffer, Kernel, Let, Program, Store
from tests.ir.programs import F32, I0, I1, matrix, over
from tests.passes.programs import steps

X = Load("x", (I0, I1), F32)


def local(name: str) -> Local:
    return Local(name, F32)


def kernel(value: Expression, lets: Mapping[str, Expression] | None = None, *, spoken: str = "") -> Program:
    """One kernel over the matrix x; the let called `spoken` has a name of the user's."""
    x = matrix("x")
    y = Buffer("y", value.dtype, x.shape)
    bound = tuple(Let(name, let, name == spoken) for name, let in (lets or {}).items())
    store = Store("y", (I0, I1), value)
    return Program("elementwise", (x,), (), (Kernel("y", (y,), over(*x.shape), bound, (store,)),), ("y",), ())


def statements(program: Program) -> list[str]:
    """The lets and stores of the one kernel."""
    return [line.strip() for line in steps(program).splitlines()[2:]]
