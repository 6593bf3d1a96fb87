"""rename: a Program → the same Program with other names for its buffers, values, kernels and sizes.

Axes and gathered indices keep their names; a size that an input has stays `{input}_size_{dimension}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import assert_never

from opwright.ir.contents import bound_sizes
from opwright.ir.expressions.expression import Expression, Load, Local, rewrite_children
from opwright.ir.expressions.integer import Integer, symbol
from opwright.ir.program import (
    Binding,
    Buffer,
    Call,
    Case,
    Check,
    Gather,
    Iota,
    Kernel,
    ListOperand,
    Number,
    Operand,
    OptionalOperand,
    Program,
    Step,
    Store,
    TensorOperand,
    View,
)
from opwright.ir.symbols import rename_symbols

Called = Callable[[str], str]
_SIZE = re.compile(r"(.+)(_size_\d+)")


def rename(program: Program, called: Called) -> Program:
    """Rename everything by `called`, except the Program itself, its axes and its gathers."""
    sizes = {name: symbol(_size_called(name, called)) for name in bound_sizes(program)}
    return _Renaming(called, sizes).program(rename_symbols(program, sizes))


def _size_called(name: str, called: Called) -> str:
    found = _SIZE.fullmatch(name)
    return f"{called(found[1])}{found[2]}" if found else called(name)


@dataclass(frozen=True)
class _Renaming:
    """Renames a Program whose integers are renamed already."""

    called: Called
    sizes: dict[str, Integer]

    def program(self, program: Program) -> Program:
        return replace(
            program,
            inputs=tuple(map(self.buffer, program.inputs)),
            sizes=tuple(str(self.sizes[size]) for size in program.sizes),
            steps=tuple(map(self.step, program.steps)),
            outputs=tuple(map(self.called, program.outputs)),
            cases=tuple(map(self.case, program.cases)),
        )

    def case(self, case: Case) -> Case:
        sizes = tuple((str(self.sizes[name]), size) for name, size in case.sizes)
        return Case(sizes, tuple(map(self.step, case.steps)))

    def buffer(self, buffer: Buffer) -> Buffer:
        return replace(buffer, name=self.called(buffer.name))

    def step(self, step: Step) -> Step:
        match step:
            case Kernel(targets=targets, lets=lets, stores=stores):
                return replace(
                    step,
                    name=self.called(step.name),
                    targets=tuple(map(self.buffer, targets)),
                    lets=tuple(map(self.let, lets)),
                    stores=tuple(map(self.store, stores)),
                )
            case View(target, source):
                return replace(step, target=self.buffer(target), source=self.called(source))
            case Number(target) | Iota(target):
                return replace(step, target=self.buffer(target))
            case Check(buffer):
                return replace(step, buffer=self.called(buffer))
            case Call(targets, _, _, operands):
                named = tuple(map(self.operand, operands))
                return replace(step, targets=tuple(map(self.buffer, targets)), operands=named)
            case _:
                assert_never(step)

    def let(self, let: Binding) -> Binding:
        if isinstance(let, Gather):
            return replace(let, value=self.load(let.value))
        return replace(let, name=self.called(let.name), value=self.expression(let.value))

    def store(self, store: Store) -> Store:
        return replace(store, buffer=self.called(store.buffer), value=self.expression(store.value))

    def load(self, load: Load) -> Load:
        return replace(load, buffer=self.called(load.buffer))

    def expression(self, expression: Expression) -> Expression:
        match expression:
            case Load():
                return self.load(expression)
            case Local(name, dtype):
                return Local(self.called(name), dtype)
            case _:
                return rewrite_children(expression, self.expression)

    def operand(self, operand: Operand) -> Operand:
        match operand:
            case TensorOperand(buffer):
                return TensorOperand(self.called(buffer))
            case ListOperand(items):
                return ListOperand(tuple(map(self.operand, items)))
            case OptionalOperand(item) if item is not None:
                return OptionalOperand(self.operand(item))
            case _:
                return operand
