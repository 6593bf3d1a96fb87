"""A Program as assignments of whole tensors, in torch operations.

cell[i0, i1] = old_cell[i0, i1] + g * sigmoid(i)      becomes      cell = old_cell + g * torch.sigmoid(i)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from opwright.codegen.infix import Spelled, postfix
from opwright.codegen.python.names import PythonNames
from opwright.codegen.python.statement import Statement, needed_for
from opwright.codegen.python.values.branches import shelter
from opwright.codegen.python.values.calls import spell_call
from opwright.codegen.python.values.kernel import KernelSpeller, Value
from opwright.codegen.python.values.pieces import Piece, tile
from opwright.codegen.python.values.reductions import spell_reducer
from opwright.codegen.python.values.sizes import Sizes, bind_sizes
from opwright.codegen.python.values.view import aligned_view
from opwright.errors import InternalError, NoKernel
from opwright.ir import program as ir
from opwright.ir.call_traits import relies_on_contiguity
from opwright.ir.contents import count_reads, kernels
from opwright.ir.expressions.expression import Load
from opwright.ir.expressions.integer import ONE, ZERO, Integer, symbol, symbols_of
from opwright.ir.rows import indexed_by, row_axes
from opwright.passes.scalars.share import count_uses


@dataclass(frozen=True, slots=True)
class Body:
    """Assignments, those of sizes apart, and the names of the outputs."""

    sizes: tuple[Statement, ...]
    statements: tuple[Statement, ...]
    outputs: tuple[str, ...]


def spell_body(program: ir.Program, inputs: Mapping[str, str], *, own_outputs: bool) -> Body:
    """Write a Program as assignments.

    Args:
        program: The Program; its sizes must all be those of inputs.
        inputs: The Python names of its inputs.
        own_outputs: Whether outputs must have memory of their own, not an input's and not each other's.

    Raises:
        NoKernel: If something in it has no spelling in torch operations.
    """
    if program.sizes:
        raise NoKernel(f"{program.name} is given sizes that none of its tensors has ({', '.join(program.sizes)})")
    names = PythonNames(inputs.values())
    sizes, bindings = bind_sizes(program, inputs, names)
    writer = _Writer(program, inputs, sizes, names, own_outputs)
    outputs = writer.write()
    statements = needed_for([*bindings, *writer.statements], outputs)
    bound = tuple(statement for statement in bindings if statement in statements)
    return Body(bound, tuple(s for s in statements if s not in bound), outputs)


class _Writer:
    def __init__(
        self, program: ir.Program, inputs: Mapping[str, str], sizes: Sizes, names: PythonNames, own_outputs: bool
    ) -> None:
        self.program = program
        self.sizes = sizes
        self.names = names
        self.owned = frozenset(program.outputs if own_outputs else ())
        self.declared = ir.buffers_of(program)
        self.read_counts = count_reads(program)
        self.store_counts = Counter(store.buffer for kernel in kernels(program) for store in kernel.stores)
        self.buffers = dict(inputs)
        self.pieces: dict[str, list[Piece]] = {}
        self.statements: list[Statement] = []
        self.known: dict[str, str] = {}  # text of a value → its name; names are never reassigned
        self.returned: set[str] = set()

    def write(self) -> tuple[str, ...]:
        for step in self.program.steps:
            match step:
                case ir.Kernel():
                    self._kernel(step)
                case ir.View():
                    self._view(step)
                case ir.Number(target, value):
                    text = f"torch.tensor({self.sizes.spell(value)}, device={self._device()})"
                    self.buffers[target.name] = self._named(target.name, text)
                case ir.Iota(target):
                    text = f"torch.arange({self.sizes.spell(target.shape[0])}, device={self._device()})"
                    self.buffers[target.name] = self._named(target.name, text)
                case ir.Call():
                    self._call(step)
        return tuple(self._buffer(output) for output in self.program.outputs)

    def _view(self, view: ir.View) -> None:
        target = view.target
        axes = [
            ir.Axis(name, extent) for name, extent in zip(ir.view_axes(len(target.shape)), target.shape, strict=True)
        ]
        whole = self._whole(self._load(Load(view.source, view.indices, target.dtype), axes), axes).spelled.text
        once = self.read_counts[target.name] == 1 and not target.spoken
        self.buffers[target.name] = whole if once else self._named(target.name, whole)

    def _call(self, call: ir.Call) -> None:
        operand = self._contiguous if relies_on_contiguity(call.function) else self._buffer
        text = spell_call(call, operand, self.sizes.spell, self._device())
        given = tuple(self.names.fresh(target.name) for target in call.targets)
        self.statements.append(Statement(given, text))
        self.buffers.update((target.name, name) for target, name in zip(call.targets, given, strict=True))

    def _kernel(self, kernel: ir.Kernel) -> None:
        speller = KernelSpeller(kernel.axes, self._load, lambda number: self._filled(number, ()))
        uses = count_uses(kernel)
        for let in kernel.lets:
            if isinstance(let, ir.Reduce):
                speller.locals[let.name] = self._reduce(
                    let, self._whole(speller.spell(shelter(let.value)), kernel.axes), kernel
                )
                continue
            assert isinstance(let, ir.Let)  # the library gathers here
            speller.locals[let.name] = self._let(let, speller.spell(shelter(let.value)), uses.get(let.name, 0))
        for store in kernel.stores:
            value = speller.spell(shelter(store.value))
            if _is_reduced(store, kernel):
                self._store_reduced(store, value, kernel)
                continue
            value = self._whole(value, kernel.axes)
            if self.store_counts[store.buffer] > 1:
                self._add_piece(store, value, kernel.axes)
            else:
                self._store(store, value, kernel.axes)
        for buffer in dict.fromkeys(store.buffer for store in kernel.stores):
            self._settle_pieces(buffer)

    def _let(self, let: ir.Let, value: Value, uses: int) -> Value:
        """A load gets a name if it is used again, or if the reference names it; all other lets get one."""
        if value.is_number or (isinstance(let.value, Load) and uses == 1 and not let.spoken):
            return value
        return replace(value, spelled=Spelled(self._named(let.name, value.spelled.text)))

    def _reduce(self, reduction: ir.Reduce, value: Value, kernel: ir.Kernel) -> Value:
        rank = len(kernel.axes)
        reduced = range(rank - kernel.row_axes, rank)
        spelled = spell_reducer(reduction.function, value.spelled, reduced)
        name = Spelled(self._named(reduction.name, spelled.text))
        return Value(name, reduction.value.dtype, frozenset(range(rank)) - frozenset(reduced), rank, is_fresh=True)

    def _store_reduced(self, store: ir.Store, value: Value, kernel: ir.Kernel) -> None:
        """Store one value for many points: those of a row, or those of a reducing store."""
        kept = {name for index in store.indices for name in symbols_of(index)}
        reduced = [position for position, axis in enumerate(kernel.axes) if axis.name not in kept]
        if store.reduction is not None:
            whole = self._whole(value, kernel.axes)
            value = replace(whole, spelled=spell_reducer(store.reduction, whole.spelled, reduced), is_fresh=True)
        else:
            axes = [replace(axis, extent=ONE) if axis.name not in kept else axis for axis in kernel.axes]
            value = self._whole(value, axes)
            if self.store_counts[store.buffer] > 1:
                self._add_piece(store, value, axes)
                return
        shape = self.declared[store.buffer].shape
        aligned = len(shape) == len(kernel.axes) and all(
            index in (ZERO, symbol(axis.name)) for index, axis in zip(store.indices, kernel.axes, strict=True)
        )
        if not aligned:
            value = replace(value, spelled=postfix(f".reshape({self.sizes.tuple(shape)})").fill([value.spelled]))
        self.buffers[store.buffer] = self._settled(store.buffer, value)

    def _store(self, store: ir.Store, value: Value, axes: Sequence[ir.Axis]) -> None:
        if store.indices != tuple(symbol(axis.name) for axis in axes):
            raise InternalError(f"{store.buffer} is stored at [{', '.join(map(str, store.indices))}] and nowhere else")
        self.buffers[store.buffer] = self._settled(store.buffer, value)

    def _add_piece(self, store: ir.Store, value: Value, axes: Sequence[ir.Axis]) -> None:
        if len(store.indices) != len(axes):
            raise NoKernel(f"the emitted Python cannot join the parts of {store.buffer}: one has fewer dimensions")
        offsets = tuple(
            index - symbol(axis.name) if axis.name in symbols_of(index) else index
            for index, axis in zip(store.indices, axes, strict=True)
        )
        piece = Piece(value.spelled.text, offsets, tuple(axis.extent for axis in axes))
        self.pieces.setdefault(store.buffer, []).append(piece)

    def _settle_pieces(self, buffer: str) -> None:
        """Join the pieces of a buffer; while some are missing, name the others."""
        pieces = self.pieces.get(buffer, [])
        if not pieces:
            return
        if len(pieces) < self.store_counts[buffer]:
            self.pieces[buffer] = [replace(piece, text=self._named(buffer, piece.text)) for piece in pieces]
            return
        dimension, ordered = tile(buffer, pieces, self.sizes)
        text = f"torch.cat([{', '.join(piece.text for piece in ordered)}], dim={dimension})"
        whole = Value(Spelled(text), self.declared[buffer].dtype, is_fresh=True)
        self.buffers[buffer] = self._settled(buffer, whole)

    def _settled(self, buffer: str, whole: Value) -> str:
        """Name the value of a buffer; an output gets memory of its own if it must."""
        if buffer not in self.owned:
            return self._named(buffer, whole.spelled.text)
        name = self._named(buffer, whole.spelled.text) if whole.is_fresh else None
        if name is None or name in self.returned:
            source = whole.spelled if name is None else Spelled(name)
            name = self.names.fresh(buffer)
            self.statements.append(Statement((name,), postfix(".clone()").fill([source]).text))
        self.returned.add(name)
        return name

    def _whole(self, value: Value, axes: Sequence[ir.Axis]) -> Value:
        """Give a value the extents of all axes."""
        extents = tuple(axis.extent for axis in axes)
        if value.is_number:
            return replace(value, spelled=self._filled(value, extents), is_number=False, is_fresh=True)
        missing = [axis for axis, extent in enumerate(extents) if axis not in value.axes and extent != ONE]
        if value.rank == len(axes) and not missing:
            return value
        expand = postfix(f".expand({', '.join(map(self.sizes.spell, extents))})")
        return replace(value, spelled=expand.fill([value.spelled]), is_fresh=False)

    def _device(self) -> str:
        """That of the call: what is traced is on the processor, and runs where the inputs with dimensions are."""
        inputs = self.program.inputs
        return f"{self.buffers[next((each for each in inputs if each.shape), inputs[0]).name]}.device"

    def _filled(self, number: Value, shape: tuple[Integer, ...]) -> Spelled:
        like = next((b for b in self.program.inputs if b.dtype is number.dtype), self.program.inputs[0])
        dtype = "" if like.dtype is number.dtype else f", dtype=torch.{number.dtype.value}"
        return Spelled(f"{self.buffers[like.name]}.new_full({self.sizes.tuple(shape)}, {number.spelled.text}{dtype})")

    def _load(self, load: Load, axes: Sequence[ir.Axis]) -> Value:
        shape = self.declared[load.buffer].shape
        seen = aligned_view(self._buffer(load.buffer), shape, load.indices, axes, self.sizes)
        return Value(Spelled(seen.text), load.dtype, seen.axes, seen.rank)

    def _contiguous(self, name: str) -> str:
        return f"{self._buffer(name)}.contiguous()"

    def _buffer(self, name: str) -> str:
        if name not in self.buffers:
            raise InternalError(f"{self.program.name} reads {name} before all of it is stored")
        return self.buffers[name]

    def _named(self, wished: str, text: str) -> str:
        """Name a value, unless it is a name or has one."""
        if text.isidentifier():
            return text
        if text not in self.known:
            self.known[text] = self.names.fresh(wished)
            self.statements.append(Statement((self.known[text],), text))
        return self.known[text]


def _is_reduced(store: ir.Store, kernel: ir.Kernel) -> bool:
    return store.reduction is not None or (
        kernel.row_axes > 0 and not indexed_by(store.indices, {axis.name for axis in row_axes(kernel)})
    )
