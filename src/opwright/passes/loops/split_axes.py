"""Split the axes of kernels between which a reshape splits or merges dimensions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from typing import Any

from opwright.ir import program as ir
from opwright.ir.contents import reads_of
from opwright.ir.expressions.expression import Expression, Load, rewrite_children
from opwright.ir.expressions.integer import ONE, ZERO, Integer, Symbol, symbol
from opwright.ir.names.fresh import fresh
from opwright.ir.relations.equal_sizes import EqualSizes
from opwright.ir.rows import row_axes
from opwright.ir.symbols import replace_symbols
from opwright.passes.buffers.memory import find_in_memory, flat, is_plain, plain_kernels
from opwright.passes.loops.factors import Sizes, Splits, digits, expanded, factors, without_ones


def split_axes(program: ir.Program) -> ir.Program:
    """Run kernels on both sides of a reshape over the same axes, so that they can be fused.

    Before:  kernel s over i0, i1 < 8, i2 < c // 8:  s[i0, i1, i2] = exp(x[i0, i1, i2])
             call t: float32[n, c] = aten::reshape(s)
             kernel y over i0, i1 < c:  y[i0, i1] = t[i0, i1] * b[i1]
    After:   kernel s, the same
             view t: float32[n, 8, c // 8] = s[d0, d1, d2]
             kernel y over i0, i1 < 8, i2 < c // 8:  y[i0, i1*(c // 8) + i2] = t[i0, i1, i2] * b[i1*(c // 8) + i2]

    An axis is split in all kernels that read from one another, and so are the buffers between them; what must be in
    memory is written as it was, at the index that the split axes stand for. A reshape that others than kernels read
    stays, beside the view. Kernels are left alone if they gather, or if an index cannot be split in the same way.
    """
    steps: dict[int, tuple[ir.Step, ...]] = {}
    if any(isinstance(step, ir.Call) and _reshaped(step) for step in program.steps):
        whole = _Whole(program)
        for island in _islands(program):
            steps.update(whole.split(island))
    if not steps:
        return program
    found = (steps.get(position, (step,)) for position, step in enumerate(program.steps))
    return replace(program, steps=tuple(step for some in found for step in some))


def _reshaped(step: ir.Step) -> str | None:
    """The buffer that a step reshapes."""
    if (
        isinstance(step, ir.Call)
        and step.function == "aten::reshape"
        and isinstance(step.operands[0], ir.TensorOperand)
    ):
        return step.operands[0].buffer
    return None


def _seen_in(step: ir.Step) -> str | None:
    """The buffer that a step shows in another shape."""
    return step.source if isinstance(step, ir.View) else _reshaped(step)


def _islands(program: ir.Program) -> list[list[int]]:
    """The positions of kernels, views and reshapes that read from one another, by groups."""
    groups: list[tuple[set[str], list[int]]] = []
    for position, step in enumerate(program.steps):
        if not isinstance(step, ir.Kernel | ir.View) and _reshaped(step) is None:
            continue
        written = {target.name for target in ir.targets_of(step)}
        stored = {store.buffer for store in step.stores} if isinstance(step, ir.Kernel) else set[str]()
        touched = {*reads_of(step), *stored}
        joined = [group for group in groups if group[0] & touched]
        groups = [group for group in groups if group not in joined]
        names = written.union(*(group[0] for group in joined))
        groups.append((names, sorted([position, *(each for group in joined for each in group[1])])))
    return [positions for _, positions in groups]


class _Whole:
    """A Program, and what is the same for all its islands."""

    def __init__(self, program: ir.Program) -> None:
        equal = EqualSizes(program.guards)
        self.program = program
        self.shapes = {name: buffer.shape for name, buffer in ir.buffers_of(program).items()}
        self.shapes |= {given.name: tuple(map(equal.spell, given.shape)) for given in program.inputs}
        self.names = set(self.shapes)
        self.plain = plain_kernels(program)
        self.sources = {ir.targets_of(s)[0].name: source for s in program.steps if (source := _seen_in(s))}
        # The sizes of inputs are positive: a tensor without elements is left to the reference.
        sizes = {size for given in program.inputs for size in given.shape}
        self.positive = {
            atom.name for size in sizes for atoms, _ in size.terms for atom in atoms if isinstance(atom, Symbol)
        }

    def split(self, island: Sequence[int]) -> dict[int, tuple[ir.Step, ...]]:
        """The new steps of an island, by the positions of the old ones; none if nothing would be gained."""
        steps = {position: self.program.steps[position] for position in island}
        if any(isinstance(s, ir.Kernel) and any(isinstance(let, ir.Gather) for let in s.lets) for s in steps.values()):
            return {}  # a Check has seen the indices in the shape that they have
        between = [
            step for step in steps.values() if isinstance(step, ir.Call) and self._is_between(step, steps.values())
        ]
        splits = self._splits(between)
        while splits:
            attempt = _Attempt(self, steps, splits)
            if not any(step.targets[0].name in attempt.seen for step in between):
                return {}
            if not attempt.unsplittable:
                return attempt.made
            splits = {size: parts for size, parts in splits.items() if size not in attempt.unsplittable}
        return {}

    def _is_between(self, step: ir.Call, island: Iterable[ir.Step]) -> bool:
        """Whether a kernel computes what is reshaped, and another one reads the result."""
        source = _reshaped(step) or ""
        while source in self.sources:
            source = self.sources[source]
        names = {step.targets[0].name}
        for other in island:
            if _seen_in(other) in names:
                names.add(ir.targets_of(other)[0].name)
        return source in self.plain and any(
            isinstance(o, ir.Kernel) and not names.isdisjoint(reads_of(o)) for o in island
        )

    def _splits(self, reshapes: Iterable[ir.Call]) -> Splits:
        """Which sizes to split, and how. Where two reshapes split one differently, the first one decides."""
        found: dict[Integer, Sizes] = {}
        for step in reshapes:
            source, target = self.shapes[_reshaped(step) or ""], self.shapes[step.targets[0].name]
            for size, parts in factors(source, target, self.positive) or ():
                if size not in found and not any(size in (part, *expanded(part, found)) for part in parts):
                    found[size] = parts
        return found


class _Attempt:
    """An island with some sizes split.

    Attributes:
        seen: The buffers that are split, with their new names.
        unsplittable: Sizes of dimensions with an index that cannot be split in the same way.
        made: The new steps, by the positions of the old ones.
    """

    def __init__(self, whole: _Whole, old: Mapping[int, ir.Step], splits: Splits) -> None:
        self.whole, self.splits = whole, splits
        reshapes = {s.targets[0].name for s in old.values() if isinstance(s, ir.Call) and self._is_regular(s)}
        self.in_memory = find_in_memory(_with_views(whole.program, reshapes), whole.plain)
        self.seen: dict[str, str] = {}
        for step in old.values():
            if self._is_split(step, reshapes):
                self._see(ir.targets_of(step)[0].name)
        self.unsplittable: set[Integer] = set()
        self.made = {position: self._made(step) for position, step in old.items()}

    def _is_regular(self, step: ir.Call) -> bool:
        """Whether both sides of a reshape have the same factors, so that it is a view."""
        source, target = self.whole.shapes[_reshaped(step) or ""], self.whole.shapes[step.targets[0].name]
        return without_ones(self._expanded(source)) == without_ones(self._expanded(target))

    def _is_split(self, step: ir.Step, reshapes: Set[str]) -> bool:
        match step:
            case ir.Call():
                return step.targets[0].name in reshapes
            case ir.View():
                return step.source in self.seen
            case ir.Kernel(targets=(target,)) if is_plain(step) and target.name not in self.in_memory:
                return any(size in self.splits for size in target.shape)
            case _:
                return False

    def _see(self, name: str) -> None:
        self.seen[name] = fresh(name, self.whole.names) if name in self.in_memory else name
        self.whole.names.add(self.seen[name])

    def _expanded(self, shape: Sequence[Integer]) -> Sizes:
        return tuple(part for size in shape for part in expanded(size, self.splits))

    def _made(self, step: ir.Step) -> tuple[ir.Step, ...]:
        """A step with split axes; what others than kernels read of a view stays beside it."""
        if isinstance(step, ir.Kernel):
            return (self._kernel(step),)
        (target,) = ir.targets_of(step)
        if target.name not in self.seen:
            return (step,)
        split = self._view(step) if isinstance(step, ir.View) else self._reshape(target, _reshaped(step) or "")
        return (step, split) if target.name in self.in_memory else (split,)

    def _buffer(self, buffer: ir.Buffer) -> ir.Buffer:
        return replace(buffer, name=self.seen[buffer.name], shape=self._expanded(buffer.shape))

    def _reshape(self, target: ir.Buffer, source: str) -> ir.View:
        """A reshape as a view."""
        split = self._buffer(target)
        named = zip(ir.view_axes(len(split.shape)), split.shape, strict=True)
        axes = iter([symbol(name) for name, size in named if size != ONE])
        indices: list[Integer] = []
        for size in self.whole.shapes[source]:
            parts = expanded(size, self.splits)
            each = [ZERO if part == ONE else next(axes) for part in parts]
            indices += each if source in self.seen else [flat(each, parts)]
        return ir.View(split, self.seen.get(source, source), tuple(indices))

    def _view(self, step: ir.View) -> ir.View:
        shape = step.target.shape
        whole = [ir.Axis(name, size) for name, size in zip(ir.view_axes(len(shape)), shape, strict=True)]
        axes, at = _split(whole, self.splits)
        return ir.View(self._buffer(step.target), self.seen[step.source], self._at(step.source, step.indices, axes, at))

    def _kernel(self, kernel: ir.Kernel) -> ir.Kernel:
        axes, at = _split(kernel.axes, self.splits)
        rows = _split(row_axes(kernel), self.splits)[0]
        move = partial(self._moved, axes=axes, at=at)
        return replace(
            kernel,
            targets=tuple(self._buffer(each) if each.name in self.seen else each for each in kernel.targets),
            axes=axes,
            lets=tuple(replace(let, value=move(let.value)) for let in kernel.lets),
            stores=tuple(
                replace(
                    store,
                    buffer=self.seen.get(store.buffer, store.buffer),
                    indices=self._at(store.buffer, store.indices, axes, at),
                    value=move(store.value),
                )
                for store in kernel.stores
            ),
            row_axes=len(rows),
        )

    def _moved(self, value: Expression, axes: Sequence[ir.Axis], at: Mapping[str, Integer]) -> Any:
        """A value where the axes are split."""
        if not isinstance(value, Load):
            return rewrite_children(value, lambda child: self._moved(child, axes, at))
        indices = self._at(value.buffer, value.indices, axes, at)
        return replace(value, buffer=self.seen.get(value.buffer, value.buffer), indices=indices)

    def _at(self, name: str, indices: Sizes, axes: Sequence[ir.Axis], at: Mapping[str, Integer]) -> Sizes:
        """The indices of a buffer where the axes are split, and where it is split itself."""
        moved = replace_symbols(indices, at)
        if name not in self.seen:
            return moved
        extents = {axis.name: axis.extent for axis in axes}
        found: list[Integer] = []
        for index, size in zip(moved, self.whole.shapes[name], strict=True):
            each = digits(index, expanded(size, self.splits), extents)
            if each is None:
                self.unsplittable.add(size)
            found += each or ()
        return tuple(found)


def _with_views(program: ir.Program, reshapes: Set[str]) -> ir.Program:
    """A Program with views in the place of reshapes, to see what must be in memory then."""
    steps = (
        ir.View(step.targets[0], _reshaped(step) or "", ())
        if isinstance(step, ir.Call) and step.targets and step.targets[0].name in reshapes
        else step
        for step in program.steps
    )
    return replace(program, steps=tuple(steps))


def _split(axes: Sequence[ir.Axis], splits: Splits) -> tuple[tuple[ir.Axis, ...], dict[str, Integer]]:
    """Axes, each split into its factors, and the index along each old axis. `i0 i1 …` are numbered anew, in order."""
    made: dict[str, tuple[ir.Axis, ...]] = {}
    number = 0
    for axis in sorted(axes, key=lambda axis: int(axis.name[1:])):
        parts = expanded(axis.extent, splits)
        made[axis.name] = tuple(ir.Axis(f"{axis.name[0]}{number + k}", part) for k, part in enumerate(parts))
        number += len(parts)
    at = {
        name: flat([symbol(axis.name) for axis in some], [axis.extent for axis in some]) for name, some in made.items()
    }
    return tuple(axis for whole in axes for axis in made[whole.name]), at
