"""Between torch's symbolic sizes (sympy) and integer expressions of the Program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy
import torch
from torch._guards import GuardSource, Source
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv

from opwright.errors import NoKernel
from opwright.ir.expressions.integer import Condition, Integer, greatest, holds, integer, product
from opwright.ir.program import size_symbol
from opwright.ir.relations.relations import LEAST_SIZE
from opwright.tracing.hints import AS_ARGUMENT, KEEP_OUTSIDE
from opwright.tracing.scalars.reals import RealOperand, translate_real

RELATIONS = {
    "Equality": "==",
    "Unequality": "!=",
    "StrictLessThan": "<",
    "LessThan": "<=",
    "StrictGreaterThan": ">",
    "GreaterThan": ">=",
}
"""The relations of sympy, by name."""


@dataclass(frozen=True)
class NamedSource(Source):
    """Where a symbol comes from, by name."""

    text: str = ""

    @property
    def name(self) -> str:
        """What guards call it."""
        return self.text

    @property
    def _name_template(self) -> str:
        return self.text

    @property
    def guard_source(self) -> GuardSource:
        """Unused: guards are read as expressions."""
        return GuardSource.CONSTANT


@dataclass(frozen=True, slots=True)
class SizeTable:
    """The size symbols of one trace and their meanings."""

    environment: ShapeEnv
    symbols: dict[sympy.Symbol, Integer] = field(default_factory=dict)
    hints: dict[str, int] = field(default_factory=dict)
    static: dict[Integer, int] = field(default_factory=dict)
    numbers: dict[sympy.Symbol, str] = field(default_factory=dict)  # symbols that stand for Python floats
    _translated: dict[Any, Integer] = field(default_factory=dict, compare=False)

    def new_shape(self, name: str, sizes: Sequence[int], *, is_static: bool = False) -> list[int | torch.SymInt]:
        """Make a symbol for every size of an input that is not static; a size of one stays one (it may broadcast)."""
        if is_static:
            self.static.update({size_symbol(name, place): size for place, size in enumerate(sizes) if size != 1})
            return list(sizes)
        return [self._new_size(name, dimension, size) for dimension, size in enumerate(sizes)]

    def _new_size(self, name: str, dimension: int, size: int) -> int | torch.SymInt:
        if size == 1:
            return 1
        meaning = size_symbol(name, dimension)
        source = NamedSource(str(meaning))
        symbol = self.environment.create_symbol(size, source, dynamic_dim=DimDynamic.DYNAMIC, constraint_dim=None)
        self.symbols[symbol] = meaning
        self.hints[str(meaning)] = size
        return self.environment.create_symintnode(symbol, hint=size, source=source)

    def shape(self, tensor: torch.Tensor) -> tuple[Integer, ...]:
        """The shape of a traced tensor."""
        return tuple(self.integer(size) for size in tensor.shape)

    def integer(self, size: int | torch.SymInt) -> Integer:
        """A traced size as an integer expression; a plain number if guards leave no other value.

        From `2 <= n < 4`, torch knows that `n // 2` is 1, and broadcasts without a guard of its own. Kernels that took
        it for any size would read past its only element.
        """
        if isinstance(size, int):
            return integer(size)
        expression = size.node.expr.xreplace(self.environment.replacements)
        if not expression.is_Atom and (bounds := self.environment.bound_sympy(expression)).is_singleton():
            expression = bounds.lower
        return self.translate(expression)

    def real(self, number: torch.SymFloat) -> RealOperand:
        """A traced float as a function of sizes; a plain number if it does not depend on sizes."""
        if number.node.constant is not None:
            return float(number.node.constant)
        return translate_real(number.node.expr.xreplace(self.environment.replacements), self.translate)

    def guards(self) -> tuple[Condition, ...]:
        """What the trace assumed of the sizes."""
        conditions = {Condition(">=", meaning, integer(LEAST_SIZE)): None for meaning in self.symbols.values()}
        conditions.update({Condition("==", meaning, integer(size)): None for meaning, size in self.static.items()})
        for guard in self.environment.guards:
            if not guard.expr.free_symbols.isdisjoint(self.numbers):
                continue
            conditions.update((condition, None) for condition in self._conditions(guard.expr))
        return tuple(conditions)

    def _conditions(self, expression: Any) -> tuple[Condition, ...]:
        """What must hold; of alternatives, the first that holds for the sizes of the trace."""
        if isinstance(expression, sympy.And):
            return tuple(condition for part in expression.args for condition in self._conditions(part))
        if isinstance(expression, sympy.Or):
            alternatives = [self._conditions(part) for part in expression.args]
            return next(found for found in alternatives if all(holds(each, self.hints) for each in found))
        if isinstance(expression, sympy.Not):
            return self._conditions(sympy.to_nnf(expression, simplify=False))
        return (self._condition(expression),)

    def _condition(self, expression: Any) -> Condition:
        relation = RELATIONS.get(type(expression).__name__)
        if relation is None:
            raise NoKernel(f"tracing assumed {expression} of the sizes, which no kernel can test")
        left, right = expression.args
        return Condition(relation, self.translate(left), self.translate(right))

    def translate(self, expression: Any) -> Integer:
        """A sympy expression as an integer expression.

        Raises:
            NoKernel: If it uses a function of sizes that kernels do not know.
        """
        found = self._translated.get(expression)
        if found is None:
            found = self._translated[expression] = self._translate(expression)
        return found

    def _translate(self, expression: Any) -> Integer:
        if expression.is_Symbol:
            if expression not in self.symbols:
                raise NoKernel("a size depends on the values of a tensor", hint=KEEP_OUTSIDE)
            return self.symbols[expression]
        if expression.is_Integer:
            return integer(int(expression))
        parts = [self.translate(argument) for argument in expression.args]
        match type(expression).__name__:
            case "Add":
                return sum(parts, integer(0))
            case "Mul":
                return product(parts)
            case "Pow" if (power := parts[1].constant) is not None and power > 0:
                return product([parts[0]] * power)
            case "FloorDiv" | "CleanDiv":
                return parts[0] // parts[1]
            case "Mod" | "PythonMod":
                return parts[0] % parts[1]
            case "Max":
                result = parts[0]
                for part in parts[1:]:
                    result = greatest(result, part)
                return result
            case "Min":
                result = parts[0]
                for part in parts[1:]:
                    result = result + part - greatest(result, part)
                return result
            case other:
                raise NoKernel(f"a size is computed with {other}, which kernels do not know", hint=AS_ARGUMENT)
