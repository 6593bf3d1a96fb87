"""Between torch's symbolic numbers (sympy) and tensors without dimensions: Python floats in float64, ints in int64."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import chain
from typing import Any

import sympy
import torch
from torch._ops import OpOverload
from torch.fx.experimental.symbolic_shapes import DimDynamic

from opwright.errors import NoKernel, NumberNeeded
from opwright.tracing.effects.watch import meets
from opwright.tracing.hints import WIDER_DTYPE
from opwright.tracing.scalars.functions import (
    FIRST_INTEGER,
    LAST_INTEGER,
    NUMBER_FUNCTIONS,
    Bounds,
    OutOfBounds,
    as_number_tensor,
    is_exact,
)
from opwright.tracing.scalars.guards import NumberGuard
from opwright.tracing.scalars.ranges import Ranges, bounds_of, magnitudes, widest
from opwright.tracing.scalars.sizes import RELATIONS, NamedSource, SizeTable
from opwright.tracing.scalars.uses import (
    computed_in,
    converted_in,
    floats_held_by,
    integers_held_by,
    not_held_by,
    sizes_in,
    truncates_in,
)

NUMBER = "number"  # in the `meta` of a node that stands for a Python number: one that promotes as it does
EXPONENTS_APART = (2, 3, 0.5, -1, -2, -0.5, 1, 0)  # not by a general power, see lowering/pointwise/table.py
FINITE = Bounds(-sys.float_info.max, sys.float_info.max)
BY_MODULE = "compute with numbers, and call functions of math by their module, as in math.sqrt(n)"
COMPARISONS = {"==": torch.eq, "!=": torch.ne, "<": torch.lt, "<=": torch.le, ">": torch.gt, ">=": torch.ge}
_LARGEST_SIZE = 2**40
_MOST = 3e38  # a larger float is a constant, see binding/serving/numbers.py
# A kernel for one value has that value as a constant.
_RELATIONS = {name: relation for name, relation in RELATIONS.items() if relation != "=="}


class NumberTable:
    """The symbols of Python numbers in one trace, and the 0-d tensors of kernels."""

    def __init__(self, sizes: SizeTable) -> None:
        self._sizes = sizes
        self._environment = sizes.environment
        self._tensors: dict[sympy.Symbol, torch.Tensor] = {}
        self._integers: dict[sympy.Symbol, int] = {}
        self._floats: dict[sympy.Symbol, float] = {}
        self._demands: dict[tuple[Any, Bounds | None], None] = {}  # expressions, and their required bounds

    def symbol(self, name: str, value: float | int, tensor: torch.Tensor) -> torch.SymFloat | torch.SymInt:
        """Make the symbolic number for a reference; a branch on it becomes a guard."""
        source = NamedSource(name)
        symbol = self._environment.create_unspecified_symbol(value, source, DimDynamic.DYNAMIC)
        self._tensors[symbol] = tensor
        self._sizes.numbers[symbol] = name
        if isinstance(value, int):
            self._integers[symbol] = value
            integer = self._environment.create_symintnode(symbol, hint=value, source=source)
            assert isinstance(integer, torch.SymInt)
            return integer
        self._floats[symbol] = value
        number = self._environment.create_symfloatnode(symbol, hint=value, source=source)
        assert isinstance(number, torch.SymFloat)
        return number

    def value(self, number: torch.SymFloat | torch.SymInt, within: Bounds | None = None) -> torch.Tensor | float:
        """The value of a traced number, computed from the tensors of its symbols.

        Args:
            number: The number.
            within: The required bounds, if any.

        Raises:
            NumberNeeded: If kernels do not know how.
        """
        expression = number.node.expr
        self._demands[expression, within] = None
        return self._value(expression)

    def demand(self, expression: Any) -> None:
        """Restrict the numbers to those for which Python computes an expression without an error, used or not."""
        if not self.is_size_of(expression):
            self._demands[expression, None] = None

    def is_size(self, number: torch.SymBool | torch.SymFloat | torch.SymInt) -> bool:
        """Whether a traced number depends on sizes alone."""
        return self.is_size_of(number.node.expr)

    def is_size_of(self, expression: Any) -> bool:
        """The same for its expression."""
        return bool(expression.free_symbols.isdisjoint(self._tensors))

    def refuse_in(self, func: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Refuse a varying integer as a size, a dimension or an index, and exponents that pow special-cases.

        Raises:
            NumberNeeded: If there is one that changes.
        """
        if func is torch.ops.aten.pow.Tensor_Scalar and isinstance(args[1], (torch.SymInt, torch.SymFloat)):
            self._refuse_apart(args[1])
        for size in sizes_in(func, args, kwargs) if self._integers else ():
            if not self.is_size(size):
                raise self.refuse(f"{func.name()} needs the value of an integer that changes", size.node.expr)

    def bound_in(self, func: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> None:
        """Restrict numbers that an operation converts to a dtype, mostly that of its result, to those it holds.

        Raises:
            NoKernel: If a constant is not among them, which makes torch raise, or a number made from sizes may not be.
        """
        if truncates_in(func, args, kwargs, result):
            raise NoKernel(f"{func.name()} makes an integer of a float first", hint="convert it with int()")
        for number in converted_in(func, args, kwargs):
            held = (integers_held_by if isinstance(number, torch.SymInt) else floats_held_by)(result)
            if not_held_by(result, number) or (held and self._is_sized(number) and not self._always_lies(number, held)):
                raise NoKernel(f"{func.name()} converts {number} to a dtype that does not hold it", hint=WIDER_DTYPE)
            if held and isinstance(number, (torch.SymFloat, torch.SymInt)) and not self.is_size(number):
                self._demands[number.node.expr, held] = None
        if any(not_held_by(result, number, computed=True) for number in computed_in(func, args, kwargs)):
            raise NoKernel(f"{func.name()} computes in a dtype that does not hold one of its numbers", hint=WIDER_DTYPE)

    def _is_sized(self, number: Any) -> bool:
        return isinstance(number, (torch.SymFloat, torch.SymInt)) and self.is_size(number)

    def _always_lies(self, number: torch.SymFloat | torch.SymInt, held: Bounds) -> bool:
        """Whether a number made from sizes lies within bounds; for an integer this adds a guard."""
        if isinstance(number, torch.SymInt):
            return bool(number <= int(held.high)) and bool(int(held.low) <= number)
        sizes = dict.fromkeys(number.node.expr.free_symbols, Bounds(2, _LARGEST_SIZE))
        return _lies(number.node.expr, held, sizes)

    def _refuse_apart(self, exponent: torch.SymInt | torch.SymFloat) -> None:
        names = self._names_in(exponent.node.expr)
        possible = [p for p in EXPONENTS_APART if isinstance(p, int) or isinstance(exponent, torch.SymFloat)]
        if names and any(exponent == apart for apart in possible):  # a comparison adds a guard
            raise NumberNeeded("a power with this exponent has a kernel of its own", names=names, only_here=True)

    def refuse_value(self, number: torch.SymBool | torch.SymFloat | torch.SymInt, fact: str) -> None:
        """Refuse to tell the value of a varying number; that of a size is told, with a guard.

        Args:
            number: The number.
            fact: What needs the value.

        Raises:
            NumberNeeded: If it is one that changes.
        """
        if not self.is_size(number):
            raise self.refuse(fact, number.node.expr)

    def refuse(self, fact: str, expression: Any, hint: str | None = None) -> NumberNeeded:
        """The refusal for a place that needs the values of numbers, with their names."""
        return meets(NumberNeeded(fact, names=self._names_in(expression), hint=hint))

    def guards(self) -> tuple[NumberGuard, ...]:
        """What the trace assumed of the numbers.

        Raises:
            NumberNeeded: If only the values of this call are known to be right.
        """
        tested: list[NumberGuard] = []
        assumed = []
        for guard in self._environment.guards:
            if not guard.expr.free_symbols.isdisjoint(self._tensors):
                plain = self._guard(guard.expr)
                tested += [plain] if plain else []
                assumed += [] if plain else [guard.expr]
        return (*tested, *self._ranges(assumed))

    def conditions(self) -> Iterator[torch.Tensor]:
        """The same as truth values for kernels to compute: whether other numbers would do what the trace did.

        They hold if every branch goes the same way, and if Python computes every number without an error.

        Raises:
            NumberNeeded: If the value of a computed number decides, or sizes take part.
        """
        for guard in self._environment.guards:
            if not guard.expr.free_symbols.isdisjoint(self._tensors):
                yield self._assumed(guard.expr)
        computed = dict.fromkeys(
            chain.from_iterable(sympy.postorder_traversal(expression) for expression, _ in self._demands)
        )
        for part in computed:
            if not part.is_Atom:
                yield _lies_in(self._value(part), FINITE)
        for expression, within in self._demands:
            if within is not None:
                yield _lies_in(self._value(expression), within)

    def _assumed(self, expression: Any) -> torch.Tensor:
        """An assumption of the trace, as a truth value."""
        if isinstance(expression, (sympy.And, sympy.Or)):
            combine = torch.logical_and if isinstance(expression, sympy.And) else torch.logical_or
            return reduce(combine, map(self._assumed, expression.args))
        relation = RELATIONS.get(type(expression).__name__)
        if relation is None or (relation == "==" and not all(map(is_exact, expression.args))):
            raise self.refuse(f"tracing needs the value of {self._spelled(expression)}", expression, BY_MODULE)
        left, right = (as_number_tensor(self._value(side)) for side in expression.args)
        return COMPARISONS[relation](left, right)

    def _guard(self, expression: Any) -> NumberGuard | None:
        """An inequality between a number and a constant, as a guard."""
        relation = _RELATIONS.get(type(expression).__name__)
        if relation is None:
            return None
        left, right = expression.args
        sign, symbol = (-1, -left) if -left in self._tensors else (1, left)
        if symbol not in self._tensors or not right.is_number:
            return None
        bound = int(right) if symbol in self._integers and right.is_Integer else float(right)
        return NumberGuard(self._name(symbol), sign, relation, bound)

    def _ranges(self, assumed: list[Any]) -> Iterator[NumberGuard]:
        """Ranges of numbers in which kernels compute what Python does and all other assumptions hold."""

        def fails(ranges: Ranges) -> Any:
            outside = (expression for expression, within in self._demands if not _lies(expression, within, ranges))
            untrue = (assumption for assumption in assumed if not _is_true(assumption, ranges))
            return next(chain(outside, untrue), None)

        given = {symbol: Bounds(value, value) for symbol, value in self._integers.items()}
        floats = magnitudes(self._floats, _MOST, lambda floats: fails({**floats, **given}) is None)
        if floats is None:
            near = {symbol: Bounds.around(value, -value) for symbol, value in self._floats.items()}
            expression = fails({**near, **given})
            done = "assumed" if expression in assumed else "computed"
            raise self.refuse(f"tracing {done} {self._spelled(expression)}, where a number changes", expression)
        for symbol, bounds in floats.items():
            if bounds.high < _MOST:
                yield NumberGuard(self._name(symbol), 1, ">=", bounds.low)
                yield NumberGuard(self._name(symbol), 1, "<=", bounds.high)
        for symbol, bounds in widest(given, lambda ranges: fails({**floats, **ranges}) is None).items():
            if bounds.low > FIRST_INTEGER:
                yield NumberGuard(self._name(symbol), 1, ">=", bounds.low)
            if bounds.high < LAST_INTEGER:
                yield NumberGuard(self._name(symbol), 1, "<=", bounds.high)

    def _spelled(self, expression: Any) -> str:
        """An expression in the names of parameters."""
        return str(expression.xreplace({symbol: sympy.Symbol(self._name(symbol)) for symbol in self._tensors}))

    def _names_in(self, expression: Any) -> tuple[str, ...]:
        return tuple(sorted(map(self._name, expression.free_symbols & self._tensors.keys())))

    def _name(self, symbol: sympy.Symbol) -> str:
        return self._sizes.numbers[symbol]

    def _value(self, expression: Any) -> torch.Tensor | float:
        if expression in self._tensors:
            return self._tensors[expression]
        if expression.is_Integer:
            return int(expression)
        if expression.is_Float:
            return float(expression)
        function = NUMBER_FUNCTIONS.get(type(expression).__name__)
        if function is None or not expression.free_symbols <= self._tensors.keys():
            raise self.refuse(f"the function computes {self._spelled(expression)}, where a number changes", expression)
        first, *rest = map(self._value, expression.args)
        result: torch.Tensor | float = reduce(function.compute, rest, first) if rest else function.compute(first)
        return result


def _lies_in(number: torch.Tensor | float, bounds: Bounds) -> torch.Tensor:
    value = as_number_tensor(number)
    return torch.logical_and(torch.ge(value, bounds.low), torch.le(value, bounds.high))


def _lies(expression: Any, within: Bounds | None, ranges: Ranges) -> bool:
    try:
        bounds = bounds_of(expression, ranges)
    except OutOfBounds:
        return False
    return within is None or within.low <= bounds.low <= bounds.high <= within.high


def _is_true(assumption: Any, ranges: Ranges) -> bool:
    """Whether an assumption certainly holds."""
    if isinstance(assumption, sympy.And):
        return all(_is_true(part, ranges) for part in assumption.args)
    relation = _RELATIONS.get(type(assumption).__name__)
    if relation is None:
        return False
    try:
        left, right = (bounds_of(side, ranges) for side in assumption.args)
    except OutOfBounds:
        return False
    if relation in (">", ">="):
        left, right = right, left
    if relation == "!=":
        return left.high < right.low or right.high < left.low
    return left.high <= right.low if "=" in relation else left.high < right.low
