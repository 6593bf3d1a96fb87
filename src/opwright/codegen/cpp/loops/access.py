"""What a kernel reads and writes, as arguments of its row function."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType

from opwright.codegen.cpp.expression import CPP_TYPES
from opwright.codegen.cpp.loops.reductions import column_reducer
from opwright.codegen.cpp.size import spell_size
from opwright.errors import NoKernel
from opwright.ir.expressions.affine import linear_coefficients
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Load
from opwright.ir.expressions.integer import ZERO, Integer
from opwright.ir.program import Gather, Kernel, Let, Store
from opwright.ir.rows import indexed_by

_MOST_PARTS = 4  # which a compiler separates with a few shuffles


@dataclass(frozen=True, slots=True)
class Access:
    """A read or write of a kernel, row by row.

    Attributes:
        parts: The names of the values at one point. There are several if neighbours in the last dimension, such as
            x[i0, 0], x[i0, 1] and x[i0, 2], or x[2*i0] and x[2*i0 + 1], form one element of a row.
        buffer: The tensor; empty for a row that is kept from one pass to a later one.
        dtype: Of its elements.
        strides: For each axis, the stride, in C++.
        offset: The offset of the first element, in C++.
        whole_row: Whether it varies along the row; if not, it is one value for the row.
        stored: Whether it is written.
        accumulated: The type of its accumulators, if the store reduces.
        iota: Whether it is an iota, which has no memory.
        part_stride: The distance from one part to the next, in C++.
        extent: Of a gathered index: its upper bound, added to negative indices; empty if none are negative.
        gathered_by: The gathered index that shifts it, by name.
        gather_stride: The stride of that index, in C++.
        past_of: The position of the results for which it is a buffer on their way past the caches.
    """

    parts: tuple[str, ...]
    buffer: str
    dtype: DType
    strides: tuple[str, ...]
    offset: str
    whole_row: bool
    stored: bool
    accumulated: str | None = None
    iota: bool = False
    part_stride: str = "1"
    extent: str | None = None
    gathered_by: str = ""
    gather_stride: str = "0"
    past_of: int | None = None

    @property
    def name(self) -> str:
        """The name of the row, without the suffix `_row`."""
        return self.parts[0]

    def element(self, part: str, at: str = "j") -> str:
        """A part of an element of a varying row."""
        read = " != 0" if self.is_read_as_bytes else ""
        if len(self.parts) == 1:
            return f"{self.name}_row[{at}]{read}"
        position = self.parts.index(part)
        return f"{self.name}_row[{len(self.parts)} * {at}{f' + {position}' if position else ''}]{read}"

    @property
    def is_read_as_bytes(self) -> bool:
        """Truth values of a row: GCC 12 does not vectorise a loop that selects by a `bool` in memory."""
        return self.dtype is DType.BOOL and self.whole_row and not (self.stored or self.is_scratch)

    @property
    def is_scratch(self) -> bool:
        """Whether it is no tensor: a row that one pass writes and a later one reads, or a buffer."""
        return not self.buffer

    @property
    def _kind(self) -> str:
        return "uint8_t" if self.is_read_as_bytes else self.accumulated or CPP_TYPES[self.dtype]

    @property
    def argument(self) -> tuple[str, str]:
        """The type and the name of what `pointer` declares."""
        if self.whole_row:
            return f"{'' if self.stored else 'const '}{self._kind}*", f"{self.name}_row"
        return f"const {self._kind}", self.name

    def pointer(self, position: int) -> Iterable[str]:
        """The line of a row function that takes its pointer from the arguments."""
        if self.extent is not None:
            return  # callers look there
        kind = self._kind
        if self.past_of is not None:
            yield f"  {kind}* {self.name}_past = static_cast<{kind}*>(row[{position}]);"
            return
        if self.is_scratch:
            yield f"  {kind}* {self.name}_kept_row = static_cast<{kind}*>(row[{position}]);"
            return
        qualifier = "" if self.stored else "const "
        pointer = f"static_cast<{qualifier}{kind}*>(row[{position}])"
        if self.whole_row:
            yield f"  {qualifier}{kind}* {self.name}_row = {pointer};"
        elif self.stored:
            yield f"  {kind}* {self.name} = {pointer};"
        elif self.iota:
            yield f"  const {kind} {self.name} = count_at(row[{position}]);"
        else:
            yield f"  const {kind} {self.name} = *{pointer};"


def accesses_of(kernel: Kernel, iotas: Set[str], *, in_parts: bool = True) -> tuple[Access, ...]:
    """The gathered indices, then all loads, then all stores, in the order of the kernel.

    Args:
        kernel: A fused kernel.
        iotas: Buffers that are iotas.
        in_parts: Whether neighbours in the last dimension may be one access.
    """
    gathers = tuple(_gather(kernel, let) for let in kernel.lets if isinstance(let, Gather))
    elements = [
        _Element(let.name, let.value.buffer, let.value.indices, let.value.dtype, None)
        for let in kernel.lets
        if isinstance(let.value, Load) and not isinstance(let, Gather)
    ]
    for name, store in zip(store_names(kernel), kernel.stores, strict=True):
        elements.append(_Element(name, store.buffer, store.indices, store.value.dtype, store))
    found: dict[_Neighbourhood, list[_Element]] = {}
    for element in elements:
        near = None if element.buffer in iotas else _neighbourhood(kernel, element)
        found.setdefault(near or element.name, []).append(element)
    runs = (run for key, near in found.items() for run in _runs(near, key, in_parts))
    return (*gathers, *(_access(kernel, run, iotas) for run in runs))


def _gather(kernel: Kernel, gather: Gather) -> Access:
    address = _address(kernel, gather.value.buffer, gather.value.indices)
    if address.gathered_by:
        raise NoKernel(f"'{gather.value.buffer}' is indexed by {address.gathered_by}, which is gathered itself")
    extent = spell_size(gather.extent) if gather.from_end else ""
    strides = address.strides or ("0",)
    name, buffer, dtype = (gather.name,), gather.value.buffer, gather.value.dtype
    return Access(name, buffer, dtype, strides, address.offset, whole_row=False, stored=False, extent=extent)


def store_names(kernel: Kernel) -> tuple[str, ...]:
    """The names of a kernel's stores."""
    names: set[str] = {let.name for let in kernel.lets}
    stored = [store.buffer for store in kernel.stores]
    made = []
    for position, store in enumerate(kernel.stores):
        name = store.buffer if stored.count(store.buffer) == 1 else f"{store.buffer}_{position}"
        while name in names or (name in stored and name != store.buffer):
            name = f"{name}_out"
        names.add(name)
        made.append(name)
    return tuple(made)


@dataclass(frozen=True, slots=True)
class _Element:
    """What a kernel loads, or stores, at each point."""

    name: str
    buffer: str
    indices: tuple[Integer, ...]
    dtype: DType
    store: Store | None


# The key that elements of one neighbourhood share, with the distance of their rows' elements; a name, for a single one.
_Neighbourhood = tuple[bool, str, tuple[Integer, ...], int] | str


def _neighbourhood(kernel: Kernel, element: _Element) -> _Neighbourhood | None:
    """What `x[i0, 0]` and `x[i0, 1]` share, or `x[2*i0]` and `x[2*i0 + 1]`; None for any other element."""
    if not element.indices or (element.store is not None and element.store.reduction is not None):
        return None
    *others, last = element.indices
    begin = last - _last_index(element)
    step = 0 if begin == ZERO else _step(kernel, begin)
    address = _address(kernel, element.buffer, element.indices)
    if step == 1 or not address.moves or address.gathered_by:
        return None
    return element.store is not None, element.buffer, (*others, begin), step


def _step(kernel: Kernel, index: Integer) -> int:
    """The distance between neighbours of a row, along one dimension; 1 if it is no number above 1."""
    split = linear_coefficients(index, [axis.name for axis in kernel.axes])
    steps = split[0] if split else {}
    step = steps[kernel.axes[-1].name].constant if kernel.axes and kernel.axes[-1].name in steps else None
    return step if step is not None and step > 1 else 1


def _runs(near: Sequence[_Element], key: _Neighbourhood, in_parts: bool) -> Iterable[Sequence[_Element]]:
    """Runs of consecutive elements, if there are a few, and all up to the next ones of the row; else each by itself."""
    ordered = sorted(near, key=_last_index)
    adjacent = all(_last_index(after) == _last_index(before) + 1 for before, after in itertools.pairwise(ordered))
    is_full = isinstance(key, str) or key[3] in (0, len(near))
    whole = in_parts and adjacent and is_full and len(near) <= _MOST_PARTS
    return [ordered] if whole else [[element] for element in near]


def _last_index(element: _Element) -> int:
    """The number that is added in the index along the last dimension."""
    return dict(element.indices[-1].terms).get((), 0) if element.indices else 0


def _access(kernel: Kernel, run: Sequence[_Element], iotas: Set[str]) -> Access:
    first = run[0]
    iota, store = first.buffer in iotas, first.store
    address = _address(kernel, first.buffer, first.indices, iota=iota)
    return Access(
        parts=tuple(element.name for element in run),
        buffer=first.buffer,
        dtype=first.dtype,
        strides=address.strides or (("0",) if store is None else ("1",)),
        offset=address.offset,
        whole_row=address.moves or (store is not None and kernel.row_axes == 0),
        stored=store is not None,
        accumulated=column_reducer(store.reduction, first.dtype).kept_as if store and store.reduction else None,
        iota=iota,
        gathered_by=address.gathered_by,
        gather_stride=address.gather_stride,
        part_stride=f"{first.buffer}.stride({len(first.indices) - 1})",
    )


def handed_over(accesses: Sequence[Access]) -> tuple[Access, ...]:
    """The order of a row function's arguments: accumulators last."""
    return tuple(sorted(accesses, key=lambda access: access.accumulated is not None))


def scratch_of(kernel: Kernel, let: Let) -> Access:
    """A scratch row that keeps a value from one pass to a later one."""
    return _scratch(kernel, let.name, let.value.dtype)


def widened(kernel: Kernel, truths: Access) -> Access:
    """A scratch row with the truth values of a row as integers of four bytes."""
    return _scratch(kernel, truths.name, DType.INT32)


def with_past(accesses: Sequence[Access], results: Set[str]) -> tuple[Access, ...]:
    """The arguments of a row function, and behind them a buffer for each row of those results, by name."""
    found = [
        replace(access, buffer="", strides=("0",) * len(access.strides), offset="0", stored=False, past_of=position)
        for position, access in enumerate(accesses)
        if access.name in results and access.whole_row and len(access.parts) == 1
    ]
    return handed_over([*accesses, *found])


def _scratch(kernel: Kernel, name: str, dtype: DType) -> Access:
    return Access((name,), "", dtype, ("0",) * len(kernel.axes), "0", whole_row=True, stored=False)


@dataclass(frozen=True, slots=True)
class _Address:
    """The offset and the strides of an access, and whether it varies along the row.

    A gathered index may be part of the offset.
    """

    offset: str
    strides: tuple[str, ...]
    moves: bool
    gathered_by: str
    gather_stride: str


def _address(kernel: Kernel, buffer: str, indices: Sequence[Integer], *, iota: bool = False) -> _Address:
    axes = tuple(axis.name for axis in kernel.axes)
    row = axes[len(axes) - max(kernel.row_axes, 1) :] if axes else ()
    gathers = tuple(let.name for let in kernel.lets if isinstance(let, Gather))
    strides, offset = strides_along(buffer, tuple(indices), (*axes, *gathers), unit=iota)
    by = [gather for gather in gathers if strides[gather]]
    if len(by) > 1:
        raise NoKernel(f"'{buffer}' is indexed by {' and '.join(by)}; kernels gather along one dimension")
    return _Address(
        offset=offset or "0",
        strides=tuple(strides[axis] or "0" for axis in axes),
        moves=any(strides[axis] for axis in row) or any(_varies(kernel, name, row) for name in by),
        gathered_by="".join(by),
        gather_stride=strides[by[0]] if by else "0",
    )


@lru_cache(maxsize=1024)
def strides_along(
    buffer: str, indices: tuple[Integer, ...], axes: tuple[str, ...], *, unit: bool = False
) -> tuple[Mapping[str, str], str]:
    """How far a step along each axis goes in a buffer, and where it begins, in C++; empty for nothing.

    Each part of an emitter asks this again for the same kernel, so it is remembered.

    Raises:
        NoKernel: If an index is no sum of multiples of axes.
    """
    strides: dict[str, list[str]] = {name: [] for name in axes}
    offsets: list[str] = []
    for dimension, index in enumerate(indices):
        split = linear_coefficients(index, axes)
        if split is None:
            raise NoKernel(f"'{buffer}' is indexed by {index}, which is not affine")
        coefficients, rest = split
        step = "1" if unit else f"{buffer}.stride({dimension})"
        for axis, coefficient in coefficients.items():
            strides[axis].append(times(coefficient, step))
        if rest != ZERO:
            offsets.append(times(rest, step))
    return MappingProxyType({axis: " + ".join(parts) for axis, parts in strides.items()}), " + ".join(offsets)


def _varies(kernel: Kernel, index: str, row: Sequence[str]) -> bool:
    """Whether a gathered index varies along the row."""
    gathers = {let.name: let.value for let in kernel.lets if isinstance(let, Gather)}
    return indexed_by(gathers[index].indices, row)


def times(factor: Integer, stride: str) -> str:
    """A multiple of a stride, in C++."""
    if factor.constant == 1:
        return stride
    text = spell_size(factor)
    return f"({text}) * {stride}" if len(factor.terms) > 1 else f"{text} * {stride}"
