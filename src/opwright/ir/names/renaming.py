"""rename: a Program → the same Program with other names for its buffers, values, kernels and sizes.

Axes and picked indices keep their names; a size that an input has stays `{input}_size_{dimension}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import assert_never

from opwright.ir.contents import bound_sizes
from opwright.ir.expressions.expression import Expression, Load, Local, rewrite_children
from opwright.ir.expressions.integer import Condition, Integer, substitute, symbol
from opwright.ir.program import (
    Binding,
    Buffer,
    Call,
    Case,
    Check,
    Kernel,
    ListOperand,
    Number,
    Operand,
    OptionalOperand,
    Pick,
    Program,
    Range,
    SizeOperand,
    Step,
    Store,
    TensorOperand,
    View,
)

Called = Callable[[str], str]
_SIZE = re.compile(r"(.+)(_size_\d+)")


def rename(program: Program, called: Called) -> Program:
    """Give everything in a Program but the Program itself, its axes and its picks the name that `called` says."""
    sizes = {name: symbol(_size_called(name, called)) for name in bound_sizes(program)}
    return _Renaming(called, sizes).program(program)


def _size_called(name: str, called: Called) -> str:
    found = _SIZE.fullmatch(name)
    return f"{called(found[1])}{found[2]}" if found else called(name)


@dataclass(frozen=True)
class _Renaming:
    called: Called
    sizes: dict[str, Integer]
    known: dict[Integer, Integer] = field(default_factory=dict)

    def program(self, program: Program) -> Program:
        return replace(
            program,
            inputs=tuple(map(self.buffer, program.inputs)),
            sizes=tuple(str(self.sizes[size]) for size in program.sizes),
            steps=tuple(map(self.step, program.steps)),
            outputs=tuple(map(self.called, program.outputs)),
            guards=tuple(Condition(g.relation, self.integer(g.left), self.integer(g.right)) for g in program.guards),
            cases=tuple(map(self.case, program.cases)),
        )

    def case(self, case: Case) -> Case:
        sizes = tuple((str(self.sizes[name]), size) for name, size in case.sizes)
        return Case(sizes, tuple(map(self.step, case.steps)))

    def integer(self, expression: Integer) -> Integer:
        if expression.constant is not None:
            return expression
        if expression not in self.known:
            self.known[expression] = substitute(expression, self.sizes)
        return self.known[expression]

    def integers(self, expressions: tuple[Integer, ...]) -> tuple[Integer, ...]:
        return tuple(map(self.integer, expressions))

    def buffer(self, buffer: Buffer) -> Buffer:
        return replace(buffer, name=self.called(buffer.name), shape=self.integers(buffer.shape))

    def step(self, step: Step) -> Step:
        match step:
            case Kernel():
                return self.kernel(step)
            case View(target, source, indices):
                return View(self.buffer(target), self.called(source), self.integers(indices))
            case Number(target, value):
                return Number(self.buffer(target), self.integer(value))
            case Range(target):
                return Range(self.buffer(target))
            case Check(buffer, shape, indices, low, high):
                bounds = self.integer(low), self.integer(high)
                return Check(self.called(buffer), self.integers(shape), self.integers(indices), *bounds)
            case Call(targets, _, _, operands):
                named = tuple(map(self.operand, operands))
                return replace(step, targets=tuple(map(self.buffer, targets)), operands=named)
            case _:
                assert_never(step)

    def kernel(self, kernel: Kernel) -> Kernel:
        return replace(
            kernel,
            name=self.called(kernel.name),
            targets=tuple(map(self.buffer, kernel.targets)),
            axes=tuple(replace(axis, extent=self.integer(axis.extent)) for axis in kernel.axes),
            lets=tuple(map(self.let, kernel.lets)),
            stores=tuple(map(self.store, kernel.stores)),
        )

    def let(self, let: Binding) -> Binding:
        if isinstance(let, Pick):
            return replace(let, value=self.load(let.value), extent=self.integer(let.extent))
        return replace(let, name=self.called(let.name), value=self.expression(let.value))

    def store(self, store: Store) -> Store:
        value = self.expression(store.value)
        return replace(store, buffer=self.called(store.buffer), indices=self.integers(store.indices), value=value)

    def load(self, load: Load) -> Load:
        return Load(self.called(load.buffer), self.integers(load.indices), load.dtype)

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
            case SizeOperand(value):
                return SizeOperand(self.integer(value))
            case _:
                return operand
