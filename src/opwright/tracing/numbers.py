"""Between torch's symbolic floats (sympy) and tensors without dimensions in float64, which Python floats are."""

from __future__ import annotations

from functools import reduce
from typing import Any

import sympy
import torch
from torch.fx.experimental.symbolic_shapes import DimDynamic

from opwright.errors import NoKernel
from opwright.tracing.number_guards import NumberGuard
from opwright.tracing.sizes import NamedSource, SizeTable

NUMBER = "number"  # in the `meta` of a node: it stands for a Python float, which promotes as one


# Equality is missing: a kernel for one value has that value as a constant.
_RELATIONS = {
    "Unequality": "!=",
    "StrictLessThan": "<",
    "LessThan": "<=",
    "StrictGreaterThan": ">",
    "GreaterThan": ">=",
}


class NumberTable:
    """The symbols of one trace that stand for Python floats, and the tensors that kernels take for them."""

    def __init__(self, sizes: SizeTable) -> None:
        self._sizes = sizes
        self._environment = sizes.environment
        self._tensors: dict[sympy.Symbol, torch.Tensor] = {}

    def symbol(self, name: str, value: float, tensor: torch.Tensor) -> torch.SymFloat:
        """Make the number that a reference computes with; a branch on it is a guard, which nobody can test."""
        source = NamedSource(name)
        symbol = self._environment.create_unspecified_symbol(value, source, DimDynamic.DYNAMIC)
        self._tensors[symbol] = tensor
        self._sizes.numbers[symbol] = name
        number = self._environment.create_symfloatnode(symbol, hint=value, source=source)
        assert isinstance(number, torch.SymFloat)
        return number

    def value(self, number: torch.SymFloat) -> torch.Tensor | float:
        """What a traced number is, computed from the tensors that stand for the symbols in it.

        Raises:
            NoKernel: If it is computed in a way in which Python may raise and a kernel would not.
        """
        return self._value(number.node.expr)

    def is_size(self, number: torch.SymFloat) -> bool:
        """Whether sizes alone decide what a traced number is."""
        return bool(number.node.expr.free_symbols.isdisjoint(self._tensors))

    def guards(self) -> tuple[NumberGuard, ...]:
        """What the trace assumed of the numbers.

        Raises:
            NoKernel: If it is more than an order between a number and a constant.
        """
        guards = (guard.expr for guard in self._environment.guards)
        mine = [guard for guard in guards if not guard.free_symbols.isdisjoint(self._tensors)]
        return tuple(self._guard(guard) for guard in mine)

    def _guard(self, expression: Any) -> NumberGuard:
        relation = _RELATIONS.get(type(expression).__name__)
        if relation is not None:
            left, right = expression.args
            sign, symbol = (-1, -left) if -left in self._tensors else (1, left)
            if symbol in self._tensors and right.is_number:
                return NumberGuard(self._sizes.numbers[symbol], sign, relation, float(right))
        raise NoKernel(f"tracing assumed {expression} of a number that changes from call to call")

    def _value(self, expression: Any) -> torch.Tensor | float:
        if expression in self._tensors:
            return self._tensors[expression]
        if expression.is_Float or expression.is_Integer:
            return float(expression)
        kind = type(expression).__name__
        if kind == "Add":
            return reduce(lambda left, right: left + right, map(self._value, expression.args))
        if kind == "Mul":
            return reduce(lambda left, right: left * right, map(self._value, expression.args))
        if kind in ("Pow", "FloatPow", "PowByNatural") and _small_power(expression.args[1]):
            return reduce(lambda left, right: left * right, [self._value(expression.args[0])] * int(expression.args[1]))
        if kind == "FloatTrueDiv" and expression.args[1].is_Float and expression.args[1] != 0:
            return self._value(expression.args[0]) / float(expression.args[1])
        if expression.free_symbols.isdisjoint(self._tensors):
            raise NoKernel(f"the function computes with {expression}, a number made from sizes")
        raise NoKernel(f"the function computes {expression} from a number that changes from call to call")


def _small_power(exponent: Any) -> bool:
    return bool(exponent.is_number and float(exponent) in (1.0, 2.0, 3.0, 4.0))
