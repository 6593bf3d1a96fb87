"""What an update computes once for a tensor: a struct of numbers, and the functions that fill it and store from it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from opwright.codegen.cpp.expression import CPP, CPP_TYPES, Dialect, spell_value
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Expression, Load, Local, cast
from opwright.ir.program import Buffer, Let, Store


@dataclass(frozen=True, slots=True)
class Given:
    """Where the functions find what they read.

    Attributes:
        row: Inputs that are numbers, in the order of a row of the table.
        step: The number that counts steps.
        operands: The tensors of a row, by name.
        counts: Buffers that hold how many elements the tensor has.
        variables: Buffers that are variables.
    """

    row: Sequence[str]
    step: str
    operands: Mapping[str, int]
    counts: Collection[str] = ()
    variables: Collection[str] = ()

    def element(self, load: Load, operands: str = "first") -> str:
        """An element of a buffer without dimensions; `operands` is an array of addresses."""
        if load.buffer in self.counts:
            return "count"
        if load.buffer == self.step:
            return "step"
        if load.buffer in self.row:
            return f"row[{self.row.index(load.buffer)}]"
        if load.buffer in self.variables:
            return load.buffer
        return f"*static_cast<const {CPP_TYPES[load.dtype]}*>({operands}[{self.operands[load.buffer]}])"


class NumbersWriter:
    """Writes them.

    Args:
        given: What they are computed of.
        lets: What is computed, each after those it needs.
        scalars: Results without dimensions.
        kept: Which of `lets` are needed later.
        valid: The result that says whether the update is valid.
    """

    def __init__(
        self,
        given: Given,
        lets: Sequence[Let],
        scalars: Sequence[tuple[Store, Buffer]],
        kept: Sequence[Let],
        valid: str,
    ) -> None:
        self.given = given
        self.lets = lets
        self.scalars = scalars
        self.kept = kept
        self.valid = valid
        self.made = {target.name: target for _, target in scalars}

    def fields(self) -> Iterable[str]:
        """The members of `Numbers`."""
        for name, dtype in self._fields():
            yield f"  {CPP_TYPES[dtype]} {name};"

    def _fields(self) -> list[tuple[str, DType]]:
        made = [(target.name, target.dtype) for target in self.made.values()]
        return [*made, *((kept_number(let), let.value.dtype) for let in self.kept)]

    def compute(self, tensor: str, before: Iterable[str] = ()) -> Iterable[str]:
        """The function that computes them, on the processor.

        Args:
            tensor: What it is given of a tensor.
            before: Its first lines.
        """
        yield f"static bool compute(const double* row, double step, {tensor}, void* const* first, Numbers& numbers) {{"
        yield from (f"  {line}" for line in before)
        for let in self.lets:
            yield f"  const {CPP_TYPES[let.value.dtype]} {let.name} = {self._spelled(let.value)};"
        for store, target in self.scalars:
            yield f"  numbers.{target.name} = {self._spelled(store.value)};"
        for let in self.kept:
            yield f"  numbers.{kept_number(let)} = {let.name};"
        yield f"  return numbers.{self.valid};"
        yield "}"

    def _spelled(self, value: Expression) -> str:
        return self.given.element(value) if isinstance(value, Load) else spell_value(value)

    def finish(self, targets: Mapping[str, str], dtypes: Mapping[str, DType]) -> Iterable[str]:
        """The function that stores results without dimensions.

        Args:
            targets: For each result, the operand that it replaces.
            dtypes: Of the operands.
        """
        yield "static void finish(void* const* first, const Numbers& numbers, RandomStream random) {"
        stored = [(self.made[name], target) for name, target in targets.items() if name in self.made]
        for count, (made, target) in enumerate(stored):
            value = kept_in(
                Local(f"numbers.{made.name}", made.dtype), dtypes[target], f"random_bits(random, 0, {count})"
            )
            kind = CPP_TYPES[dtypes[target]]
            yield f"  *static_cast<{kind}*>(first[{self.given.operands[target]}]) = {value};"
        yield "}"


def kept_in(value: Expression, dtype: DType, random: str, dialect: Dialect = CPP) -> str:
    """A result in the dtype that it is kept in: one that is wider than a half type is rounded at random.

    Args:
        value: The result.
        dtype: In which it is kept.
        random: Random bits.
        dialect: How it is computed.
    """
    if dtype.is_half and value.dtype is not dtype:
        return f"to_{dtype.value}_randomly({spell_value(cast(value, DType.FLOAT32), dialect)}, {random})"
    return spell_value(cast(value, dtype), dialect)


def kept_number(let: Let) -> str:
    """The member that keeps a value."""
    return f"{let.name}_kept"
