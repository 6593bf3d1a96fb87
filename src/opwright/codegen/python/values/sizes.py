"""Sizes in emitted Python: which are equal, and how they are written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from opwright.codegen.python.names import PythonNames
from opwright.codegen.python.statement import Statement
from opwright.ir.expressions.integer import Integer, spell, substitute, symbol
from opwright.ir.program import Program, size_symbol
from opwright.ir.relations.relations import relations


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of one Program.

    Attributes:
        names: The Python name of every size symbol.
        equal: The expression that a guard makes equal to a symbol.
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
    return Sizes(spelled, relations(program.guards).equal), bindings
