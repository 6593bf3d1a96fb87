"""The places a kernel reads and writes, as its row function is handed them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from opwright.codegen.cpp_expression import CPP_TYPES
from opwright.codegen.cpp_folds import column_fold
from opwright.codegen.cpp_size import spell_size
from opwright.errors import NoKernel
from opwright.ir.dtype import DType
from opwright.ir.expression import Load
from opwright.ir.integer import ZERO, Integer, linear_coefficients
from opwright.ir.program import Kernel, Let


@dataclass(frozen=True, slots=True)
class Access:
    """A place a kernel reads or writes, row by row.

    Attributes:
        name: What the row is called, without the suffix `_row`.
        buffer: The tensor; empty for a row that is kept from one pass to a later one.
        dtype: Of its elements.
        strides: For each axis, how far one step goes, in C++.
        offset: Where the first element is, in C++.
        whole_row: Whether it moves along the row; if not, one value serves the row.
        stored: Whether it is written.
        accumulated: The type of its accumulators, if the store folds.
        counted: Whether it is a range, which has no memory.
    """

    name: str
    buffer: str
    dtype: DType
    strides: tuple[str, ...]
    offset: str
    whole_row: bool
    stored: bool
    accumulated: str | None = None
    counted: bool = False

    @property
    def is_scratch(self) -> bool:
        """Whether it is a row that lives from one pass to a later one."""
        return not self.buffer

    def pointer(self, position: int) -> Iterable[str]:
        """The line of a row function that takes it from the rows handed over."""
        kind = self.accumulated or CPP_TYPES[self.dtype]
        if self.is_scratch:
            yield f"  {kind}* {self.name}_kept_row = static_cast<{kind}*>(row[{position}]);"
            return
        qualifier = "" if self.stored else "const "
        pointer = f"static_cast<{qualifier}{kind}*>(row[{position}])"
        if self.whole_row:
            yield f"  {qualifier}{kind}* {self.name}_row = {pointer};"
        elif self.stored:
            yield f"  {kind}* {self.name} = {pointer};"
        elif self.counted:
            yield f"  const {kind} {self.name} = count_at(row[{position}]);"
        else:
            yield f"  const {kind} {self.name} = *{pointer};"


def accesses_of(kernel: Kernel, ranges: Set[str]) -> tuple[Access, ...]:
    """All loads, then all stores, in the order of the kernel; `ranges` are buffers that are counted."""
    names: set[str] = {let.name for let in kernel.lets}
    found = []
    for let in kernel.lets:
        if isinstance(let.value, Load):
            place = _place(kernel, let.value.buffer, let.value.indices, counted=let.value.buffer in ranges)
            found.append(
                Access(
                    name=let.name,
                    buffer=let.value.buffer,
                    dtype=let.value.dtype,
                    strides=place.strides or ("0",),
                    offset=place.offset,
                    whole_row=place.moves,
                    stored=False,
                    counted=let.value.buffer in ranges,
                )
            )
    stored = [store.buffer for store in kernel.stores]
    for position, store in enumerate(kernel.stores):
        name = store.buffer if stored.count(store.buffer) == 1 else f"{store.buffer}_{position}"
        while name in names or (name in stored and name != store.buffer):
            name = f"{name}_out"
        names.add(name)
        place = _place(kernel, store.buffer, store.indices)
        found.append(
            Access(
                name=name,
                buffer=store.buffer,
                dtype=store.value.dtype,
                strides=place.strides or ("1",),
                offset=place.offset,
                whole_row=place.moves or kernel.row_axes == 0,
                stored=True,
                accumulated=None if store.fold is None else column_fold(store.fold, store.value.dtype).kept_as,
            )
        )
    return tuple(found)


def handed_over(accesses: Sequence[Access]) -> tuple[Access, ...]:
    """The order in which row functions get them: accumulators last."""
    return tuple(sorted(accesses, key=lambda access: access.accumulated is not None))


def scratch_of(kernel: Kernel, let: Let) -> Access:
    """A row that keeps a value from one pass to a later one."""
    return Access(let.name, "", let.value.dtype, ("0",) * len(kernel.axes), "0", whole_row=True, stored=False)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an access begins, how far a step along each axis goes, and whether it moves along the row."""

    offset: str
    strides: tuple[str, ...]
    moves: bool


def _place(kernel: Kernel, buffer: str, indices: Sequence[Integer], *, counted: bool = False) -> _Place:
    axes = tuple(axis.name for axis in kernel.axes)
    row = axes[len(axes) - max(kernel.row_axes, 1) :] if axes else ()
    strides: dict[str, list[str]] = {axis: [] for axis in axes}
    offsets: list[str] = []
    for dimension, index in enumerate(indices):
        split = linear_coefficients(index, axes)
        if split is None:
            raise NoKernel(f"'{buffer}' is indexed by {index}, which is not affine")
        coefficients, rest = split
        step = "1" if counted else f"{buffer}.stride({dimension})"
        for axis, coefficient in coefficients.items():
            strides[axis].append(times(coefficient, step))
        if rest != ZERO:
            offsets.append(times(rest, step))
    return _Place(
        offset=" + ".join(offsets) or "0",
        strides=tuple(" + ".join(strides[axis]) or "0" for axis in axes),
        moves=any(strides[axis] for axis in row),
    )


def times(factor: Integer, stride: str) -> str:
    """A multiple of a stride, in C++."""
    if factor.constant == 1:
        return stride
    text = spell_size(factor)
    return f"({text}) * {stride}" if len(factor.terms) > 1 else f"{text} * {stride}"
