"""Sizes in emitted Python: which are equal, and how they are written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from opwright.codegen.python.names import PythonNames
from opwright.codegen.python.statement import Statement
from opwright.ir.expressions.integer import Condition, Integer, Symbol, spell, substitute, symbol, symbols_of
from opwright.ir.program import Program, size_symbol


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of one Program.

    Attributes:
        names: The Python name of every size symbol.
        equal: What a symbol stands for, where a guard equates it with something else.
    """

    names: Mapping[str, str]
    equal: Mapping[str, Integer]

    def same(self, left: Integer, right: Integer) -> bool:
        """Whether two sizes are known to be equal."""
        return left == right or substitute(left, self.equal) == substitute(right, self.equal)

    def spell(self, size: Integer) -> str:
        """Write a size in Python."""
        renamed = {name: symbol(spelled) for name, spelled in self.names.items() if name != spelled}
        return spell(substitute(size, renamed))

    def tuple(self, sizes: tuple[Integer, ...]) -> str:
        """Write a shape in Python."""
        parts = [self.spell(size) for size in sizes]
        return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


def bind_sizes(program: Program, inputs: Mapping[str, str], names: PythonNames) -> tuple[Sizes, list[Statement]]:
    """Read every size from the input that has it: `gates_size_0 = gates.shape[0]`."""
    spelled: dict[str, str] = {}
    bindings: list[Statement] = []
    for buffer in program.inputs:
        for dimension in range(len(buffer.shape)):
            size = str(size_symbol(buffer.name, dimension))
            spelled[size] = names.fresh(size)
            bindings.append(Statement((spelled[size],), f"{inputs[buffer.name]}.shape[{dimension}]"))
    return Sizes(spelled, _equal_symbols(program)), bindings


def _equal_symbols(program: Program) -> dict[str, Integer]:
    """Solve the guards `symbol == size`: for each such symbol, the size in terms of the others."""
    solved: dict[str, Integer] = {}
    for guard in program.guards:
        found = _solve(guard, solved)
        if found is None:
            continue
        name, value = found
        solved = {known: substitute(size, {name: value}) for known, size in solved.items()} | {name: value}
    return solved


def _solve(guard: Condition, solved: Mapping[str, Integer]) -> tuple[str, Integer] | None:
    left, right = substitute(guard.left, solved), substitute(guard.right, solved)
    if guard.relation != "==" or left == right:
        return None
    for side, other in ((left, right), (right, left)):
        match side.terms:
            case (((Symbol(name),), 1),) if name not in symbols_of(other):
                return name, other
            case _:
                pass
    return None
