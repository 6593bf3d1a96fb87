"""The arguments of a CUDA kernel: one plain struct, the same in the device source and in the launcher."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from opwright.codegen.cpp.expression import CPP_TYPES
from opwright.codegen.cpp.loops.access import Access
from opwright.codegen.cpp.size import spell_size
from opwright.ir.expressions.integer import ONE
from opwright.ir.program import Axis

_PACK_BYTES, _MOST_WIDTH = 16, 8


@dataclass(frozen=True, slots=True)
class Geometry:
    """The axes of a kernel in the order in which its operands have strides.

    Attributes:
        outer: From row to row, or along reduced columns.
        inner: A thread takes neighbours along the last of them together.
    """

    outer: tuple[Axis, ...]
    inner: tuple[Axis, ...]

    @property
    def rank(self) -> int:
        """How many strides an operand has."""
        return len(self.outer) + len(self.inner)

    @property
    def points(self) -> str:
        """The type of a place among its points."""
        return f"Points<Index, {len(self.outer)}, {len(self.inner)}>"


def padded(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """At least one axis, perhaps of one element."""
    return tuple(axes) or (Axis("", ONE),)


@dataclass(frozen=True, slots=True)
class Arguments:
    """The struct of one kernel.

    Attributes:
        name: Of the kernel.
        geometry: Its axes.
        accesses: What it reads and writes.
        numbers: Buffers that are variables of the launcher.
    """

    name: str
    geometry: Geometry
    accesses: tuple[Access, ...]
    numbers: Set[str]

    @property
    def type(self) -> str:
        """The name of the struct."""
        return f"{self.name}_arguments"

    @property
    def width(self) -> int:
        """How many of the smallest elements that vary along the last axis fill 16 bytes."""
        moving = [access.dtype.bytes for access in self.accesses if access.whole_row and not access.iota]
        return min(_MOST_WIDTH, max(1, _PACK_BYTES // min(moving, default=_PACK_BYTES)))

    @property
    def bytes(self) -> int:
        """An upper bound of the size of the struct."""
        walks = sum(8 * (2 * len(axes) + 2) for axes in (self.geometry.outer, self.geometry.inner))
        partials = 16
        return walks + partials + 8 * (1 + self.geometry.rank) * len(self.accesses)

    def is_number(self, access: Access) -> bool:
        """Whether it is passed by value."""
        return access.buffer in self.numbers

    def declaration(self, reducing: bool) -> str:
        """The struct; `reducing` if partial results may go through memory."""
        lines = [f"struct {self.type} {{"]
        if self.geometry.outer:
            lines.append(f"  Walk<{len(self.geometry.outer)}> outer_axes;")
        lines.append(f"  Walk<{len(self.geometry.inner)}> inner_axes;")
        lines += [f"  {self._field(access)} {access.name};" for access in self.accesses]
        if reducing:
            lines += ["  void* partials;", "  int64_t pieces;"]
        return "\n".join([*lines, "};"])

    def initializer(self) -> list[str]:
        """The lines of the launcher that fill it."""
        lines = [f"  {self.type} arguments = {{"]
        for axes in filter(None, (self.geometry.outer, self.geometry.inner)):
            lines.append(f"      {{{{{', '.join(spell_size(axis.extent) for axis in axes)}}}}},")
        lines += [f"      {self._value(access)}," for access in self.accesses]
        lines.append("  };")
        places = [
            f"cuda::place{'_repeated' if a.strides[-1] == '0' else ''}(arguments.{a.name})"
            for a in self.accesses
            if not self.is_number(a)
        ]
        return [*lines, "  const cuda::LaunchOperand places[] = {", *(f"      {place}," for place in places), "  };"]

    def _field(self, access: Access) -> str:
        if self.is_number(access):
            return CPP_TYPES[access.dtype]
        if access.iota:
            return f"Counter<{self.geometry.rank}>"
        return f"Elements<{'' if access.stored else 'const '}{CPP_TYPES[access.dtype]}, {self.geometry.rank}>"

    def _value(self, access: Access) -> str:
        if self.is_number(access):
            return access.buffer
        rank = self.geometry.rank
        strides = ", ".join([*["0"] * (rank - len(access.strides)), *access.strides][-rank:])
        if access.iota:
            return f"{{{access.offset}, {{{strides}}}}}"
        qualifier = "" if access.stored else "const "
        return f"{{{access.buffer}.at<{qualifier}{CPP_TYPES[access.dtype]}>({access.offset}), {{{strides}}}}}"
