"""Programs as formulas, for comments above kernels and for `explain()`: `cell = old_cell + elu(g)·σ(i)`."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

from opwright.codegen.infix import TIGHTEST, Spelled, Template, call, comparison, infix, prefix
from opwright.ir import program as ir
from opwright.ir.expressions.expression import Apply, Cast, Expression, Literal, Load, Local
from opwright.ir.expressions.functions import FUNCTIONS
from opwright.ir.printer import print_operand

_WIDTH = 110
_CHOICE, _TRUTH, _COMPARE, _SUM, _PRODUCT, _PREFIX, _POWER = range(7)

# Functions that formulas do not write as `name(operands)`.
TEMPLATES: dict[str, Template] = {
    "add": infix("+", _SUM),
    "subtract": infix("-", _SUM),
    "multiply": Template("{}·{}", _PRODUCT, (_PRODUCT, _PRODUCT + 1)),
    "divide": Template("{}/{}", _PRODUCT, (_PRODUCT, _PRODUCT + 1)),
    "reciprocal": Template("1/{}", _PRODUCT, (_PRODUCT + 1,)),
    "negate": prefix("-", _PREFIX),
    "pow": Template("{}^{}", _POWER, (TIGHTEST, TIGHTEST)),
    "abs": Template("|{}|", TIGHTEST, (0,)),
    "sqrt": Template("√{}", _POWER, (TIGHTEST,)),
    "rsqrt": Template("1/√{}", _PRODUCT, (TIGHTEST,)),
    "maximum": call("max", 2),
    "minimum": call("min", 2),
    "exp2": Template("2^{}", _POWER, (TIGHTEST,)),
    "sigmoid": call("σ", 1),
    "less": comparison("<", _COMPARE),
    "less_equal": comparison("≤", _COMPARE),
    "greater": comparison(">", _COMPARE),
    "greater_equal": comparison("≥", _COMPARE),
    "equal": comparison("=", _COMPARE),
    "not_equal": comparison("≠", _COMPARE),
    "logical_and": comparison("∧", _TRUTH),
    "logical_or": comparison("∨", _TRUTH),
    "logical_xor": comparison("⊕", _TRUTH),
    "logical_not": prefix("¬", _PREFIX),
    "where": Template("{} ? {} : {}", _CHOICE, (_TRUTH, _TRUTH, _TRUTH)),
}


@dataclass(frozen=True, slots=True)
class Formula:
    """One value that a kernel names: `name[indices] = reduction(value)`.

    Attributes:
        name: What it is called.
        indices: Where it is written, if only a piece of a buffer is.
        value: The value; a load alone may show which element, at `element`.
        reduction: A row of ir/expressions/reductions.py; None if it is not reduced.
        element: The indices of a value that is a load alone; None if they are not shown.
    """

    name: str
    indices: tuple[str, ...]
    value: Expression
    reduction: str | None = None
    element: tuple[str, ...] | None = None

    def __str__(self) -> str:
        place = f"{self.name}[{', '.join(self.indices)}]" if self.indices else self.name
        if self.reduction is not None:
            return f"{place} = {_reduced(self.reduction, self.value)}"
        if self.element is not None and isinstance(self.value, Load):
            return f"{place} = {self.value.buffer}[{', '.join(self.element)}]"
        return f"{place} = {_spell(self.value).text}"


def emit_formulas(program: ir.Program) -> list[str]:
    """Write one line for each value that a Program names, except where the reference has the same line."""
    return [line for step in program.steps for line in step_formulas(step)]


def formula_comment(kernel: ir.Kernel) -> list[str]:
    """The formulas of a kernel, as the lines of a comment above it."""
    return [
        f"  {line}"
        for formula in step_formulas(kernel)
        for line in textwrap.wrap(formula, _WIDTH, subsequent_indent="    ", break_long_words=False)
    ]


def step_formulas(step: ir.Step) -> list[str]:
    """Write the formulas of one step."""
    match step:
        case ir.Kernel():
            return list(map(str, kernel_formulas(step)))
        case ir.View(target, source, indices):
            return [f"{target.name} = {source}[{', '.join(map(str, indices))}]"]
        case ir.Number(target, value):
            return [f"{target.name} = {value}"]
        case ir.Iota(target):
            return [f"{target.name} = 0, 1, 2, …"]
        case ir.Call(targets, function, _, operands):
            results = ", ".join(target.name for target in targets)
            return [f"{results} = {function.rpartition('::')[2].strip('_')}({', '.join(_operands(operands))})"]
        case ir.Check(buffer, _, _, low, high):
            return [f"{low} ≤ {buffer} < {high}"]
        case _:
            assert_never(step)


def kernel_formulas(kernel: ir.Kernel) -> list[Formula]:
    """The values that a kernel names, in order, except where the reference has the same line."""
    gathered = {let.name: let.value.buffer for let in kernel.lets if isinstance(let, ir.Gather)}
    bound = [let for let in kernel.lets if not isinstance(let, ir.Gather) and not _is_known(let, gathered)]
    kept = [store for store in kernel.stores if not _repeats(store)]
    return [*(_of_let(let, gathered) for let in bound), *map(_of_store, kept)]


def _is_known(let: ir.Let | ir.Reduce, gathered: Mapping[str, str]) -> bool:
    """Whether it is the element of a buffer at the same point."""
    if not isinstance(let.value, Load) or any(str(index) in gathered for index in let.value.indices):
        return False
    return let.spoken or let.name == let.value.buffer


def _of_let(let: ir.Let | ir.Reduce, gathered: Mapping[str, str]) -> Formula:
    """A formula that is only a load shows the element. A gathered index is named after its buffer."""
    if isinstance(let, ir.Reduce):
        return Formula(let.name, (), let.value, let.function)
    if not isinstance(let.value, Load):
        return Formula(let.name, (), let.value)
    element = tuple(gathered.get(str(index), str(index)) for index in let.value.indices)
    return Formula(let.name, (), let.value, None, element)


def _of_store(store: ir.Store) -> Formula:
    """A piece of a buffer has its offset."""
    shifted = any(len(index.terms) > 1 for index in store.indices)
    return Formula(store.buffer, tuple(map(str, store.indices)) if shifted else (), store.value, store.reduction)


def _repeats(store: ir.Store) -> bool:
    """Whether a store only writes the value that has its name."""
    return isinstance(store.value, Local) and store.value.name == store.buffer


def _reduced(function: str, value: Expression) -> str:
    sign = {"sum": "Σ ", "product": "Π "}.get(function)
    if sign is None:
        return call({"maximum": "max", "minimum": "min"}.get(function, function), 1).fill([_spell(value)]).text
    spelled = _spell(value)
    return sign + (spelled.text if spelled.level >= _PRODUCT else f"({spelled.text})")


def _spell(expression: Expression) -> Spelled:
    match expression:
        case Literal(value):
            text = f"{value:.6g}" if isinstance(value, float | complex) else str(value)
            if isinstance(value, complex):
                return Spelled(f"({text})".replace("inf", "∞").replace("j", "i"))
            return Spelled(text.replace("inf", "∞"), _SUM if text.startswith("-") else TIGHTEST)
        case Load(buffer):
            return Spelled(buffer)
        case Local(name):
            return Spelled(name)
        case Cast(operand) if operand.dtype.is_half:
            return _spell(operand)
        case Cast(operand, dtype):
            return Spelled(f"{dtype.value}({_spell(operand).text})")
        case Apply():
            return _apply(expression)
        case _:
            assert_never(expression)


def _apply(expression: Apply) -> Spelled:
    match expression:
        case Apply("where", (Apply("greater", (x, Literal(0))), y, Apply("expm1", (z,)))) if x == y == z:
            return call("elu", 1).fill([_spell(x)])
        case Apply("multiply", (Apply("multiply", (x, y)), z)) if x == y == z:
            return Template("{}³", _POWER, (TIGHTEST,)).fill([_spell(x)])
        case Apply("multiply", (x, y)) if x == y:
            return Template("{}²", _POWER, (TIGHTEST,)).fill([_spell(x)])
        case Apply(function, operands):
            template = TEMPLATES.get(function) or call(function, FUNCTIONS[function].arity)
            return template.fill([_spell(operand) for operand in operands])


def _operands(operands: Sequence[ir.Operand]) -> list[str]:
    texts = list(map(print_operand, operands))
    while texts and texts[-1] == "None":
        texts.pop()
    return texts
