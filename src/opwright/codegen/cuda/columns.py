"""A kernel with a reducing store, as CUDA."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

from opwright.codegen.cpp.expression import spell_value
from opwright.codegen.cpp.loops.access import accesses_of, store_names
from opwright.codegen.cpp.loops.reductions import ReducerSpelling, column_reducer
from opwright.codegen.cuda.arguments import Arguments, Geometry, padded
from opwright.codegen.cuda.functions import CUDA
from opwright.codegen.cuda.packs import indented, loads, loop_over_pack, member, numbers, read_into_members, stores
from opwright.codegen.cuda.points import bindings
from opwright.codegen.cuda.reductions import column_structs
from opwright.codegen.cuda.versions import Version, entry_points
from opwright.ir.contents import reducing_stores
from opwright.ir.expressions.integer import symbols_of
from opwright.ir.program import Axis, Kernel, Store

_BATCH = 4
_COLUMNS_OF_BLOCK = 32
_MOST_LANES, _SHARED_BYTES = 8, 32_768


def columns_arguments(kernel: Kernel, name: str, iotas: Set[str], sizes: Set[str]) -> Arguments:
    """The arguments of such a kernel: reduced axes come first."""
    kept = {axis for store in reducing_stores(kernel) for index in store.indices for axis in symbols_of(index)}
    outer = padded([axis for axis in kernel.axes if axis.name not in kept])
    inner = padded([axis for axis in kernel.axes if axis.name in kept])
    ordered = replace(kernel, axes=tuple(axis for axis in (*outer, *inner) if axis.name))
    found = accesses_of(ordered, iotas, in_parts=False)
    accesses = tuple(replace(access, strides=_spread(access.strides, outer, inner)) for access in found)
    return Arguments(name, Geometry(outer, inner), accesses, sizes)


def _spread(strides: tuple[str, ...], outer: Sequence[Axis], inner: Sequence[Axis]) -> tuple[str, ...]:
    """Strides, also for the axes of one element that were added."""
    given = iter(strides)
    return tuple(next(given, "0") if axis.name else "0" for axis in (*outer, *inner))


def lanes(kernel: Kernel, arguments: Arguments) -> int:
    """How many threads reduce one pack of columns, limited by shared memory."""
    bytes_of_lane = 8 * len(reducing_stores(kernel)) * arguments.width * _COLUMNS_OF_BLOCK
    count = _MOST_LANES
    while count > 1 and count * bytes_of_lane > _SHARED_BYTES:
        count //= 2
    return count


def columns_versions(kernel: Kernel, arguments: Arguments) -> tuple[Version, ...]:
    """Any columns, those with indices of 64 bits, packs of neighbours."""
    threads, width = _COLUMNS_OF_BLOCK * lanes(kernel, arguments), arguments.width
    packed = (Version("_packed", threads, "int32_t", width),) if width > 1 else ()
    return (Version("", threads, "int32_t", 1), Version("_wide", threads, "int64_t", 1), *packed)


def columns_suffixes(kernel: Kernel, arguments: Arguments) -> list[str]:
    """The suffixes of its kernels' names, in the order of the launcher's table."""
    versions = columns_versions(kernel, arguments)
    return [f"{kind}{version.suffix}" for kind in ("", "_finish") for version in versions]


def columns_launch(kernel: Kernel, arguments: Arguments) -> str:
    """The function of include/opwright/cuda/launches.h that launches it."""
    reduced_bytes = 8 * len(reducing_stores(kernel))
    return f"launch_columns<{arguments.width}, {_BATCH}, {lanes(kernel, arguments)}, {reduced_bytes}>"


def columns_functions(kernel: Kernel, arguments: Arguments, formulas: Sequence[str]) -> str:
    """The device code."""
    name, at = arguments.name, f"const {arguments.geometry.points}& at"
    given, read = f"const {arguments.type}& given", loads(arguments)
    spellings = {n: column_reducer(s.reduction or "", s.value.dtype, CUDA) for n, s in _named(kernel) if s.reduction}
    lines = [
        *(f"// {formula}" for formula in formulas),
        "template <class Index, int Width>",
        f"struct {name}_columns {{",
        *indented(map(member, read)),
        "",
        *indented(column_structs(spellings)),
        "",
        f"  __device__ void read({given}, {at}) {{",
        *indented(read_into_members(read), 4),
        "  }",
        "",
        f"  __device__ void compute({given}, {at}, Parts& parts) const {{",
        *indented(_compute(kernel, arguments, spellings), 4),
        "  }",
        "",
        f"  static __device__ void finish({given}, {at}, const Reductions& reductions) {{",
        *indented(_finish(arguments, spellings), 4),
        "  }",
        "};",
    ]
    parts = ["\n".join(lines)]
    for kind, call in (("", "reduce_columns"), ("_finish", "finish_columns")):
        versions = [replace(v, suffix=f"{kind}{v.suffix}") for v in columns_versions(kernel, arguments)]
        template = f"{call}<{name}_columns, {{}}, {_BATCH}, {lanes(kernel, arguments)}>"
        parts.append(entry_points(arguments, versions, template))
    return "\n\n".join(parts)


def _compute(kernel: Kernel, arguments: Arguments, spellings: dict[str, ReducerSpelling]) -> list[str]:
    written = stores(arguments, [name for name, store in _named(kernel) if store.reduction is None])
    body = bindings(kernel, arguments)
    for name, store in _named(kernel):
        value = spell_value(store.value, CUDA)
        if store.reduction is None:
            body.append(f"{name}_pack[j] = {value};")
        else:
            body.append(spellings[name].step.format(f"parts.{name}[j]", value))
    return [
        *numbers(arguments, {let.name for let in kernel.lets}),
        *map(member, written),
        *loop_over_pack(body),
        *(f"store(given.{access.name}, at, {access.name}_pack);" for access in written),
    ]


def _finish(arguments: Arguments, spellings: dict[str, ReducerSpelling]) -> list[str]:
    written = stores(arguments, spellings)
    body = [f"{name}_pack[j] = {spelling.end.format(f'reductions.{name}[j]')};" for name, spelling in spellings.items()]
    return [
        *map(member, written),
        *loop_over_pack(body),
        *(f"store(given.{access.name}, at, {access.name}_pack);" for access in written),
    ]


def _named(kernel: Kernel) -> list[tuple[str, Store]]:
    return list(zip(store_names(kernel), kernel.stores, strict=True))
