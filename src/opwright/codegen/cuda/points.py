"""A kernel with independent points, as CUDA: what a thread reads, and what it computes."""

from __future__ import annotations

from collections.abc import Sequence, Set

from opwright.codegen.cpp.expression import spell_value
from opwright.codegen.cpp.loops.access import accesses_of, store_names
from opwright.codegen.cuda.arguments import Arguments, Geometry, padded
from opwright.codegen.cuda.functions import CUDA
from opwright.codegen.cuda.packs import (
    bind,
    element,
    indented,
    loads,
    loop_over_pack,
    member,
    numbers,
    read_into_members,
    stores,
)
from opwright.codegen.cuda.versions import Version, entry_points
from opwright.ir.expressions.expression import Load
from opwright.ir.program import Kernel, Let

_LOADS_IN_FLIGHT = 4
_THREADS = 256


def points_arguments(kernel: Kernel, name: str, iotas: Set[str], sizes: Set[str]) -> Arguments:
    """The arguments of such a kernel."""
    accesses = accesses_of(kernel, iotas, in_parts=False)
    return Arguments(name, Geometry((), padded(kernel.axes)), accesses, sizes)


def points_batch(arguments: Arguments) -> int:
    """How many packs of each operand a thread reads before it computes."""
    return max(1, _LOADS_IN_FLIGHT // max(1, sum(access.whole_row for access in loads(arguments))))


def points_versions(arguments: Arguments) -> tuple[Version, ...]:
    """One element at a time or a pack, with indices of 32 or 64 bits."""
    width = arguments.width
    plain = (Version("", _THREADS, "int32_t", 1), Version("_wide", _THREADS, "int64_t", 1))
    packed = (Version("_packed", _THREADS, "int32_t", width), Version("_packed_wide", _THREADS, "int64_t", width))
    return plain if width == 1 else (*plain, *packed)


def points_functions(kernel: Kernel, arguments: Arguments, formulas: Sequence[str]) -> str:
    """The device code."""
    name, at = arguments.name, f"const {arguments.geometry.points}& at"
    read = loads(arguments)
    batch = points_batch(arguments)
    lines = [
        *(f"// {formula}" for formula in formulas),
        "template <class Index, int Width>",
        f"struct {name}_points {{",
        *indented(map(member, read)),
        "",
        f"  __device__ void read(const {arguments.type}& given, {at}) {{",
        *indented(read_into_members(read), 4),
        "  }",
        "",
        f"  __device__ void compute(const {arguments.type}& given, {at}) const {{",
        *indented(_compute(kernel, arguments), 4),
        "  }",
        "};",
    ]
    calls = entry_points(arguments, points_versions(arguments), f"for_each_point<{name}_points, {{}}, {batch}>")
    return "\n".join([*lines, "", calls])


def _compute(kernel: Kernel, arguments: Arguments) -> list[str]:
    names = store_names(kernel)
    written = stores(arguments, names)
    body = bindings(kernel, arguments)
    for name, store in zip(names, kernel.stores, strict=True):
        body.append(f"{name}_pack[j] = {spell_value(store.value, CUDA)};")
    return [
        *numbers(arguments, {let.name for let in kernel.lets}),
        *map(member, written),
        *loop_over_pack(body),
        *(f"store(given.{access.name}, at, {access.name}_pack);" for access in written),
    ]


def bindings(kernel: Kernel, arguments: Arguments) -> list[str]:
    """The values at one point, in order; uniform values are members already."""
    moving = {access.name for access in arguments.accesses if access.whole_row}
    lines = []
    for let in kernel.lets:
        assert isinstance(let, Let)  # there are no rows to reduce
        if not isinstance(let.value, Load):
            lines.append(bind(let))
        elif let.name in moving:
            lines.append(element(let))
    return lines
