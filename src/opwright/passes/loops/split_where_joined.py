"""Compute in parts what reads tensors that are joined of parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from opwright.ir import program as ir
from opwright.ir.contents import count_reads, loads, reads_of
from opwright.ir.expressions.expression import Expression, Load, rewrite_children
from opwright.ir.expressions.integer import ONE, ZERO, Integer, symbol, symbols_of
from opwright.ir.symbols import replace_symbols
from opwright.passes.buffers.memory import find_in_memory, is_plain, is_whole, plain_kernels, through, views_of
from opwright.passes.loops.repeated_work import work
from opwright.passes.scalars.rewrite import map_expressions

_MOST_PARTS = 4  # kernels in the place of one
_LEAST_EXTENT = 16  # of a part, along the last dimension: rows are not to be shorter than a vector
_MOST_REPEATED = 8  # work that is rather done twice than stored


@dataclass(frozen=True, slots=True)
class _Joined:
    """A buffer that several kernels write, one part after another along one dimension.

    Attributes:
        buffer: The whole.
        dimension: Along which the parts lie; None if each is several dimensions of a kernel, so that nothing reads it
            in parts; it is in memory.
        parts: The kernels that write them, in order, each over the axes of its own part.
    """

    buffer: ir.Buffer
    dimension: int | None
    parts: tuple[ir.Kernel, ...]

    @property
    def begins(self) -> tuple[Integer, ...]:
        """Where each part begins."""
        found = [ZERO]
        for extent in self.extents[:-1]:
            found.append(found[-1] + extent)
        return tuple(found)

    @property
    def extents(self) -> tuple[Integer, ...]:
        """The size of each part."""
        dimension = self.dimension
        return () if dimension is None else tuple(_axis_at(part, dimension).extent for part in self.parts)


def split_where_joined(program: ir.Program) -> ir.Program:
    """Compute an element-wise result part by part where it reads a `cat`, so that this needs no memory.

    Before:  kernel over i0 < h:  c[i0] = -x[i0 + h];   kernel over i0 < h:  c[i0 + h] = x[i0]
             kernel over i0 < 2*h:  y[i0] = c[i0] * s[i0]
    After:   kernel over i0 < h:  y[i0] = -x[i0 + h] * s[i0];   kernel over i0 < h:  y[i0 + h] = x[i0] * s[i0 + h]

    This is a rotary embedding; equal parts are fused into one kernel later. All readers of the joined buffer must be
    element-wise, and all that read their results, up to buffers that are in memory anyway (decision 0068).
    """
    joined = _joined_in(program)
    if not joined:
        return program
    seen = _without_views(program, joined)
    split = _Splitting(seen, _joined_in(seen))  # parts may read others through views
    return split.run() if split.gone else program


def _without_views(program: ir.Program, joined: Mapping[str, _Joined]) -> ir.Program:
    """A Program whose kernels read joined buffers themselves, not views of them such as `stack(…).flatten()`.

    Only views that show all parts, in order, are gone; other dimensions may be cut or exchanged.
    """
    along = {name: each.dimension for name, each in joined.items()}
    shapes = {name: buffer.shape for name, buffer in ir.buffers_of(program).items()}
    views: dict[str, ir.View] = {}
    for name, view in views_of(program).items():
        dimension = along.get(view.source)
        if dimension is None:
            continue
        for place, (axis, size) in enumerate(zip(ir.view_axes(len(shapes[name])), shapes[name], strict=True)):
            if view.indices[dimension] == symbol(axis) and size == shapes[view.source][dimension]:
                views[name], along[name] = view, place
    if not views:
        return program

    def value(each: Expression) -> Expression:
        while isinstance(each, Load) and each.buffer in views:
            each = through(views[each.buffer], each.indices, each)
        return rewrite_children(each, value)

    seen = map_expressions(program, value)
    read = {*program.outputs, *(name for step in seen.steps for name in reads_of(step))}
    steps = (step for step in seen.steps if not isinstance(step, ir.View) or step.target.name in read)
    return replace(seen, steps=tuple(steps))


class _Splitting:
    """A Program, and what is computed in parts in it.

    Args:
        program: The Program.
        joined: Its buffers that are written part by part.

    Attributes:
        made: What is computed in parts.
        gone: Buffers of it that nothing reads any more.
    """

    def __init__(self, program: ir.Program, joined: Mapping[str, _Joined]) -> None:
        self.program = program
        self.joined = joined
        self.reads = count_reads(program)
        self.in_memory = find_in_memory(program, plain_kernels(program))
        self.stores = _count_stores(program)
        self.readers: dict[str, list[ir.Step]] = {}
        for step in program.steps:
            for name in dict.fromkeys(reads_of(step)):
                self.readers.setdefault(name, []).append(step)
        self.made: dict[str, _Joined] = {}
        self.gone: set[str] = set()
        for name in self.joined:
            if name not in self.gone and name in self.readers:
                self._split_readers(name)

    def run(self) -> ir.Program:
        """The Program with all parts in the places of what is computed in parts."""
        steps: list[ir.Step] = []
        for step in self.program.steps:
            name = step.stores[0].buffer if isinstance(step, ir.Kernel) else ""
            if name in self.gone:
                continue
            is_split = isinstance(step, ir.Kernel) and not self.gone.isdisjoint(reads_of(step))
            steps += self.made[name].parts if is_split else (step,)
        return replace(self.program, steps=tuple(steps))

    def _split_readers(self, name: str) -> None:
        """Split all that is computed from a buffer, or nothing."""
        names = self._computed_from(name)
        made = {each: self.joined[each] for each in self.joined if each in names}
        for step in self.program.steps:
            if names.isdisjoint(reads_of(step)):
                continue
            parts = self._parts(step, made)
            if parts is None or parts.buffer.name in self.made:
                return
            made[parts.buffer.name] = parts
        if all(self._is_cheap(made[each]) for each in names):
            self.made |= made
            self.gone |= names

    def _computed_from(self, name: str) -> set[str]:
        """A joined buffer, those that are read beside it, and all that is computed from them and not in memory."""
        names, waiting = {name}, [name]
        while waiting:
            for step in self.readers.get(waiting.pop(), ()):
                targets = [each.name for each in ir.targets_of(step) if each.name not in self.in_memory]
                beside = [each for each in reads_of(step) if each in self.joined]
                found = {*targets, *beside} - names
                names |= found
                waiting += found
        return names

    def _is_cheap(self, joined: _Joined) -> bool:
        """Whether its values may be computed wherever they are read."""
        most = max(work(part.stores[0].value) for part in joined.parts)
        return self.reads[joined.buffer.name] == 1 or most <= _MOST_REPEATED

    def _parts(self, step: ir.Step, made: Mapping[str, _Joined]) -> _Joined | None:
        """An element-wise kernel in the parts of what it reads; None if it cannot be split so."""
        if not isinstance(step, ir.Kernel) or not is_whole(step) or step.lets or step.row_axes:
            return None
        (store,) = step.stores
        if self.stores[store.buffer] > 1:
            return None  # a part itself
        made = {name: each for name, each in made.items() if each.dimension is not None}
        read = [(load, made[load.buffer]) for load, _ in loads(step) if load.buffer in made]
        along = {load.indices[joined.dimension] for load, joined in read if joined.dimension is not None}
        cuts = {(joined.begins, joined.extents) for _, joined in read}
        axis = next((own.name for own in step.axes if {symbol(own.name)} == along), None)
        if axis is None or len(cuts) != 1 or not all(_is_along(step, axis, load, joined) for load, joined in read):
            return None
        ((begins, extents),) = cuts
        parts = tuple(
            self._part(step, axis, number, begin, extent, made)
            for number, (begin, extent) in enumerate(zip(begins, extents, strict=True))
        )
        return _Joined(step.targets[0], store.indices.index(symbol(axis)) if is_plain(step) else None, parts)

    def _part(
        self, kernel: ir.Kernel, axis: str, number: int, begin: Integer, extent: Integer, made: Mapping[str, _Joined]
    ) -> ir.Kernel:
        (store,) = kernel.stores
        moved = {axis: symbol(axis) + begin}

        def value(each: Expression) -> Expression:
            if not isinstance(each, Load):
                return rewrite_children(each, value)
            if each.buffer not in made:
                return replace(each, indices=replace_symbols(each.indices, moved))
            part = made[each.buffer].parts[number]
            return replace_symbols(part.stores[0].value, _at(part, each.indices))

        return replace(
            kernel,
            name=f"{kernel.name}_{number}",
            targets=kernel.targets if number == 0 else (),
            axes=tuple(replace(own, extent=extent) if own.name == axis else own for own in kernel.axes),
            stores=(replace(store, indices=replace_symbols(store.indices, moved), value=value(store.value)),),
        )


def _joined_in(program: ir.Program) -> Mapping[str, _Joined]:
    """The buffers that are written part by part, and are no outputs, by name."""
    writers: dict[str, list[ir.Kernel]] = {}
    counted = _count_stores(program)
    for step in program.steps:
        if isinstance(step, ir.Kernel) and _is_block(step):
            writers.setdefault(step.stores[0].buffer, []).append(step)
    buffers = ir.buffers_of(program)
    found: dict[str, _Joined] = {}
    for name, kernels in writers.items():
        if 1 < len(kernels) <= _MOST_PARTS and len(kernels) == counted[name] and name not in program.outputs:
            joined = _joined(buffers[name], kernels)
            if joined is not None:
                found[name] = joined
    return found


def _count_stores(program: ir.Program) -> Counter[str]:
    """How many stores there are to each buffer."""
    return Counter(store.buffer for s in program.steps if isinstance(s, ir.Kernel) for store in s.stores)


def _is_block(kernel: ir.Kernel) -> bool:
    """Whether a kernel writes a block of a buffer, element by element."""
    if len(kernel.stores) != 1 or kernel.lets or kernel.row_axes or kernel.stores[0].reduction is not None:
        return False
    return [axis.name for axis in kernel.axes] == [f"i{d}" for d in range(len(kernel.stores[0].indices))]


def _joined(buffer: ir.Buffer, kernels: Sequence[ir.Kernel]) -> _Joined | None:
    """Kernels that fill a buffer along one dimension, one after another; None if they are others.

    That the last one ends where the buffer does need not be shown: a Program writes all of each buffer.
    """
    offsets = [[index - symbol(f"i{d}") for d, index in enumerate(kernel.stores[0].indices)] for kernel in kernels]
    moved = {d for some in offsets for d, offset in enumerate(some) if offset != ZERO}
    if len(moved) != 1:
        return None
    (dimension,) = moved
    made = _Joined(buffer, dimension, tuple(kernels))
    follow = [some[dimension] for some in offsets] == list(made.begins)
    has_wide_rows = dimension < len(buffer.shape) - 1 or _have_wide_rows(buffer, made.extents)
    others = all(
        axis.extent == size
        for kernel in kernels
        for d, (axis, size) in enumerate(zip(kernel.axes, buffer.shape, strict=True))
        if d != dimension
    )
    return made if follow and others and has_wide_rows else None


def _have_wide_rows(buffer: ir.Buffer, extents: Sequence[Integer]) -> bool:
    """Whether rows of parts along the last dimension fill a vector; those of one element lie along the one before."""
    before = [size for size in buffer.shape[:-1] if size != ONE]
    if before and all(extent == ONE for extent in extents):
        return _is_wide(before[-1])
    return all(map(_is_wide, extents))


def _is_wide(extent: Integer) -> bool:
    return extent.constant is None or extent.constant >= _LEAST_EXTENT


def _is_along(kernel: ir.Kernel, axis: str, load: Load, joined: _Joined) -> bool:
    """Whether a kernel reads from one end to the other: neither `cat(…)[:n]` nor `cat(…).diagonal()`."""
    extent = next(own.extent for own in kernel.axes if own.name == axis)
    sizes = [size for index, size in zip(load.indices, joined.buffer.shape, strict=True) if axis in symbols_of(index)]
    return sizes == [extent]


def _at(part: ir.Kernel, indices: Sequence[Integer]) -> Mapping[str, Integer]:
    """The axes of a part at a place of it; along dimensions of one element, it may have none."""
    axes = {axis.name for axis in part.axes}
    along = zip(part.stores[0].indices, indices, strict=True)
    return {name: place for index, place in along for name in symbols_of(index) if name in axes}


def _axis_at(kernel: ir.Kernel, dimension: int) -> ir.Axis:
    """The axis along which a part lies in its buffer."""
    names = symbols_of(kernel.stores[0].indices[dimension])
    return next(axis for axis in kernel.axes if axis.name in names)
