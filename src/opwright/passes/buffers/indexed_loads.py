"""Gather inside the kernels that use the result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property

from opwright.ir import program as ir
from opwright.ir.contents import reads_of
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Load
from opwright.ir.expressions.integer import ONE, ZERO, Condition, Integer, symbol
from opwright.ir.names.fresh import fresh
from opwright.ir.rows import indexed_by
from opwright.ir.symbols import replace_symbols
from opwright.passes.buffers.memory import ElementAt, Producers, axis_values, through


def indexed_loads(program: ir.Program) -> ir.Program:
    """Turn library operations that gather from a table into kernels, if kernels read their results.

    Before: call e = aten::embedding(w, ids);  kernel y[i0, i1] = e[i0, i1] * 2
    After:  check 0 <= ids < w_size_0
            kernel e[i0, i1] over i0, i1:  index p = ids[i0];  e[i0, i1] = w[p, i1]
            kernel y[i0, i1] = e[i0, i1] * 2

    As in eager, all indices are checked, even those whose results are unused: of a gather that nobody reads, the check
    alone is left. If the check fails, the launcher falls
    through, and the reference raises its own error.

    Work that the library does once is not repeated: a computed table stays in memory unless no more elements are
    gathered than it has, and elements that are also broadcast along a new axis are copied first. So are rows that are
    read across, since each element would come from another place of the table.
    """
    looking = _Lookups(program)
    steps = [new for step in program.steps for new in looking.lowered(step)]
    guards = dict.fromkeys((*program.guards, *looking.guards))
    return replace(program, steps=tuple(steps), guards=tuple(guards))


@dataclass(frozen=True, slots=True)
class _Lookup:
    """A gather by a library operation.

    Attributes:
        table: What is gathered from.
        indices: The element of the table, in axes of the result; along `dimension`, the index is `gathered` at `at`.
        from_end: Whether negative indices count from the end.
        guards: Conditions on the sizes.
        is_part: Whether at most as many elements are copied as the table has, for all sizes.
    """

    table: ir.Buffer
    indices: tuple[Integer, ...]
    gathered: ir.Buffer
    at: tuple[Integer, ...]
    dimension: int
    from_end: bool = False
    guards: tuple[Condition, ...] = ()
    is_part: bool = False


class _Lookups:
    """Rewrites the steps of one Program."""

    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.buffers = ir.buffers_of(program)
        self.producers = Producers.of(program)
        self.iotas = {step.target.name for step in program.steps if isinstance(step, ir.Iota)}
        self.read_by_kernels = _read_by_kernels(program)
        self.called_with = _called_with(program)
        self.gathered: set[str] = set()  # what has become a kernel
        self.gathers: list[str] = []
        self.guards: list[Condition] = []

    def lowered(self, step: ir.Step) -> Iterable[ir.Step]:
        rule = _RULES.get(f"{step.function}.{step.overload}".rstrip(".")) if isinstance(step, ir.Call) else None
        if rule is None or not isinstance(step, ir.Call):
            return [step]
        (target,) = step.targets
        found = rule(self, target, step.operands)
        if found is not None and self._is_unread(target):
            self.guards += found.guards
            return [self._check(found)]
        if found is None or not self._is_worthwhile(found, target):
            return [step]
        return self._kernel(found, target)

    def _kernel(self, found: _Lookup, target: ir.Buffer) -> Iterable[ir.Step]:
        seen = self._seen(found.gathered)
        name = self._fresh(f"{seen.buffer}_index")
        self.gathers.append(name)
        self.gathered.add(target.name)
        self.guards += found.guards
        extent = found.table.shape[found.dimension]
        axes = tuple(ir.Axis(axis, size) for axis, size in zip(_axes(target), target.shape, strict=True))
        indices = list(found.indices)
        indices[found.dimension] = symbol(name)
        value = Load(found.table.name, tuple(indices), found.table.dtype)
        at = dict(zip(ir.view_axes(len(found.at)), found.at, strict=True))
        gather = ir.Gather(name, replace_symbols(seen, at), extent, found.from_end)
        store = ir.Store(target.name, tuple(map(symbol, _axes(target))), value)
        yield self._check(found)
        yield ir.Kernel(target.name, (target,), axes, (gather,), (store,))

    def _check(self, found: _Lookup) -> ir.Check:
        seen, extent = self._seen(found.gathered), found.table.shape[found.dimension]
        return ir.Check(seen.buffer, found.gathered.shape, seen.indices, -extent if found.from_end else ZERO, extent)

    def _is_unread(self, target: ir.Buffer) -> bool:
        by_nobody = target.name not in self.read_by_kernels and not self.called_with[target.name]
        return by_nobody and target.name not in self.program.outputs

    def _seen(self, buffer: ir.Buffer) -> Load:
        """The element in memory behind a view, in axes of the view."""
        load = Load(buffer.name, tuple(map(symbol, ir.view_axes(len(buffer.shape)))), buffer.dtype)
        while load.buffer in self.producers.views:
            load = through(self.producers.views[load.buffer], load.indices, load)
        return load

    def _fresh(self, wished: str) -> str:
        return fresh(wished, self.buffers, self.gathers)

    def _is_worthwhile(self, found: _Lookup, target: ir.Buffer) -> bool:
        if not self.gathered.isdisjoint(self._behind_table(found.table)):
            return False  # an index would be gathered by an index
        if self._is_computed(found.table):
            return found.is_part
        if target.name not in self.read_by_kernels:
            return False
        varies = indexed_by(found.at, _axes(target)[-1:])
        return all(self._suits(kernel, target, varies) for kernel in self._readers(target.name))

    def _suits(self, kernel: ir.Kernel, target: ir.Buffer, varies: bool) -> bool:
        """Whether a kernel reads gathered elements no more often, and in no worse order, than a copy."""
        if varies:
            return len(_wide(kernel)) <= sum(size != ONE for size in target.shape)
        along = _wide(kernel)[-1:]
        return all(indexed_by(at[-1:], along) for name, at in self._behind[id(kernel)] if name == target.name)

    def _behind_table(self, table: ir.Buffer) -> set[str]:
        base = self._seen(table).buffer
        kernel = self.producers.kernels.get(base)
        return {base} if kernel is None else {base, *(name for name, _ in self.producers.behind(kernel))}

    def _is_computed(self, table: ir.Buffer) -> bool:
        """Whether a table is in memory for the sake of this operation alone."""
        base = self._seen(table).buffer
        return base in self.producers.kernels and base not in self.program.outputs and self.called_with[base] < 2

    def _readers(self, name: str) -> Iterable[ir.Kernel]:
        """The kernels that remain and compute something from a buffer."""
        kernels = (step for step in self.program.steps if isinstance(step, ir.Kernel) and id(step) in self._behind)
        return (kernel for kernel in kernels if any(behind == name for behind, _ in self._behind[id(kernel)]))

    @cached_property
    def _behind(self) -> Mapping[int, Set[ElementAt]]:
        """Everything that the remaining kernels depend on, by identity."""
        kernels = (step for step in self.program.steps if isinstance(step, ir.Kernel))
        return {id(kernel): self.producers.behind(kernel) for kernel in kernels if self.producers.is_placed(kernel)}

    def indices(self, operand: ir.Operand) -> ir.Buffer | None:
        """The buffer of an operand that holds indices; None for a mask of truth values."""
        buffer = self.buffers[operand.buffer] if isinstance(operand, ir.TensorOperand) else None
        return buffer if buffer is not None and buffer.dtype in (DType.INT32, DType.INT64) else None

    def iota_at(self, buffer: ir.Buffer, at: tuple[Integer, ...]) -> tuple[Integer, Integer] | None:
        """The value of an iota, or of a view of one, at a place, and its upper bound; None for any other buffer."""
        load = Load(buffer.name, at, buffer.dtype)
        while load.buffer not in self.iotas:
            kernel = self.producers.kernels.get(load.buffer)
            if load.buffer in self.producers.views:
                load = through(self.producers.views[load.buffer], load.indices, load)
            elif kernel is not None and isinstance(copied := kernel.stores[0].value, Load) and not kernel.lets:
                load = replace_symbols(copied, axis_values(kernel, load.indices))
            else:
                return None
        return load.indices[0], self.buffers[load.buffer].shape[0]


def _read_by_kernels(program: ir.Program) -> set[str]:
    """What kernels load, directly or through views."""
    found = {name for step in program.steps if isinstance(step, ir.Kernel) for name in reads_of(step)}
    for step in reversed(program.steps):
        if isinstance(step, ir.View) and step.target.name in found:
            found.add(step.source)
    return found


def _called_with(program: ir.Program) -> Counter[str]:
    """How often library operations read what a buffer holds, directly or through views."""
    counts = Counter(name for step in program.steps if isinstance(step, ir.Call) for name in reads_of(step))
    for step in reversed(program.steps):
        if isinstance(step, ir.View):
            counts[step.source] += counts[step.target.name]
    return counts


def _wide(kernel: ir.Kernel) -> list[str]:
    return [axis.name for axis in kernel.axes if axis.extent != ONE]


def _axes(buffer: ir.Buffer) -> list[str]:
    return [f"i{dimension}" for dimension in range(len(buffer.shape))]


def _embedding(program: _Lookups, target: ir.Buffer, operands: Sequence[ir.Operand]) -> _Lookup | None:
    table, ids = _tensor(program, operands[0]), program.indices(operands[1])
    if ids is None:
        return None
    *leading, last = map(symbol, _axes(target))
    return _Lookup(table, (ZERO, last), ids, tuple(leading), 0)


def _index_select(program: _Lookups, target: ir.Buffer, operands: Sequence[ir.Operand]) -> _Lookup | None:
    table, chosen = _tensor(program, operands[0]), program.indices(operands[2])
    dimension = _dimension(operands[1], len(table.shape))
    if dimension is None or chosen is None or len(chosen.shape) != 1:
        return None
    axes = tuple(map(symbol, _axes(target)))
    return _Lookup(table, axes, chosen, (axes[dimension],), dimension)


def _gather(program: _Lookups, target: ir.Buffer, operands: Sequence[ir.Operand]) -> _Lookup | None:
    table, chosen = _tensor(program, operands[0]), program.indices(operands[2])
    dimension = _dimension(operands[1], len(table.shape))
    if dimension is None or chosen is None or len(chosen.shape) != len(table.shape):
        return None
    axes = tuple(map(symbol, _axes(target)))
    sizes = [pair for d, pair in enumerate(zip(chosen.shape, table.shape, strict=True)) if d != dimension]
    guards = tuple(Condition("<=", part, whole) for part, whole in sizes if part not in (whole, ONE))
    return _Lookup(table, axes, chosen, axes, dimension, guards=guards, is_part=target.shape[dimension] == ONE)


def _index(program: _Lookups, target: ir.Buffer, operands: Sequence[ir.Operand]) -> _Lookup | None:
    """`x[:, idx]`, `x[arange(n), idx]`: one tensor of indices, beside iotas that name every row in order."""
    table, given = _tensor(program, operands[0]), operands[1]
    assert isinstance(given, ir.ListOperand)
    items = [item.item if isinstance(item, ir.OptionalOperand) else item for item in given.items]
    named = {d: program.buffers[item.buffer] for d, item in enumerate(items) if isinstance(item, ir.TensorOperand)}
    if any(item is not None and program.indices(item) is None for item in items):
        return None
    ranks = [len(buffer.shape) for buffer in named.values()]
    begin = min(named) if max(named) - min(named) == len(named) - 1 else 0
    axes = list(map(symbol, _axes(target)))
    together, others = axes[begin : begin + max(ranks)], iter(axes[:begin] + axes[begin + max(ranks) :])
    indices: list[Integer] = []
    gathered: list[tuple[int, ir.Buffer, tuple[Integer, ...]]] = []
    guards: list[Condition] = []
    for dimension, size in enumerate(table.shape):
        if dimension not in named:
            indices.append(next(others))
            continue
        chosen = named[dimension]
        aligned = together[len(together) - len(chosen.shape) :]
        at = tuple(ZERO if extent == ONE else axis for extent, axis in zip(chosen.shape, aligned, strict=True))
        iota = program.iota_at(chosen, at)
        if iota is None:
            gathered.append((dimension, chosen, at))
        elif iota[1] != size:
            guards.append(Condition("<=", iota[1], size))
        indices.append(ZERO if iota is None else iota[0])
    if len(gathered) != 1:
        return None
    ((dimension, chosen, at),) = gathered
    one_each = len(named) > 1 and max(ranks) == 1
    return _Lookup(table, tuple(indices), chosen, at, dimension, True, tuple(guards), is_part=one_each)


def _tensor(program: _Lookups, operand: ir.Operand) -> ir.Buffer:
    assert isinstance(operand, ir.TensorOperand)
    return program.buffers[operand.buffer]


def _dimension(operand: ir.Operand, rank: int) -> int | None:
    assert isinstance(operand, ir.SizeOperand)
    given = operand.value.constant
    return None if given is None or rank == 0 else given % rank


_RULES: Mapping[str, Callable[[_Lookups, ir.Buffer, Sequence[ir.Operand]], _Lookup | None]] = {
    "aten::embedding": _embedding,
    "aten::index_select": _index_select,
    "aten::gather": _gather,
    "aten::index.Tensor": _index,
}
