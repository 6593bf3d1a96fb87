"""How device code reads operands: packs of neighbours, uniform values, sizes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from opwright.codegen.cpp.expression import CPP_TYPES, spell_value
from opwright.codegen.cpp.loops.access import Access
from opwright.codegen.cuda.arguments import Arguments
from opwright.codegen.cuda.functions import CUDA
from opwright.ir.expressions.expression import Load
from opwright.ir.program import Let


def kind(access: Access) -> str:
    """The type of an element."""
    return "int64_t" if access.iota else CPP_TYPES[access.dtype]


def holder(access: Access) -> str:
    """The type of what `reading` gives, and of what `store` takes."""
    if not access.whole_row:
        return kind(access)
    if is_repeated(access):
        return f"Repeated<{kind(access)}>"
    return f"{'Pack' if access.stored or access.iota else 'LoadedPack'}<{kind(access)}, Width>"


def member(access: Access) -> str:
    """The member that holds what has been read."""
    return f"{holder(access)} {access.name}{'_pack' if access.whole_row else ''};"


def is_repeated(access: Access) -> bool:
    """Whether it is one value for the neighbours along the last axis, though it varies along another one of a row."""
    return access.whole_row and access.strides[-1] == "0" and not (access.stored or access.iota)


def registers(access: Access, width: int) -> int:
    """How many registers a pack of it takes."""
    if access.iota:
        return 2 * width
    return -(-access.dtype.bytes * (1 if is_repeated(access) else width) // 4)


def reading(access: Access) -> str:
    """The expression that reads a pack, or one value, at `at`."""
    if access.iota:
        return f"count<Width>(given.{access.name}, at)" if access.whole_row else f"count_one(given.{access.name}, at)"
    call = "load_one" if not access.whole_row else ("repeat" if is_repeated(access) else "load<Width>")
    return f"{call}(given.{access.name}, at)"


def read_into_members(accesses: Iterable[Access]) -> list[str]:
    """Statements that read operands into members."""
    return [f"{access.name}{'_pack' if access.whole_row else ''} = {reading(access)};" for access in accesses]


def loads(arguments: Arguments) -> list[Access]:
    """The reads from memory, and iotas."""
    return [access for access in arguments.accesses if not access.stored and not arguments.is_number(access)]


def stores(arguments: Arguments, names: Collection[str]) -> list[Access]:
    """The stores of these names."""
    return [access for access in arguments.accesses if access.stored and access.name in names]


def numbers(arguments: Arguments, names: Collection[str]) -> list[str]:
    """Statements that name what is passed by value among these."""
    found = [access for access in arguments.accesses if arguments.is_number(access) and access.name in names]
    return [f"const {CPP_TYPES[access.dtype]} {access.name} = given.{access.name};" for access in found]


def bind(let: Let) -> str:
    """A value that is computed."""
    return f"const {CPP_TYPES[let.value.dtype]} {let.name} = {spell_value(let.value, CUDA)};"


def element(let: Let, owner: str = "") -> str:
    """A value that was read, one of a pack."""
    assert isinstance(let.value, Load)
    return f"const {CPP_TYPES[let.value.dtype]} {let.name} = {owner}{let.name}_pack[j];"


def loop_over_pack(body: Sequence[str]) -> list[str]:
    """Statements for every element of a pack."""
    return ["#pragma unroll", "for (int j = 0; j < Width; ++j) {", *indented(body), "}"]


def indented(lines: Iterable[str], by: int = 2) -> list[str]:
    """Indent lines, except preprocessor directives."""
    return [line if line.startswith("#") or not line else " " * by + line for line in lines]
