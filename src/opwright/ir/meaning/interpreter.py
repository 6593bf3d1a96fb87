"""What a Program means: NumPy runs it step by step, each kernel for all points of its axes at once.

Every load is executed, also in the branch of a `where` that is not taken, and every index must be in range. The points
of a kernel are unordered: all values are evaluated before any is written, and two points may write one element only in
a reducing store. An element that no kernel has written is NaN, or the smallest integer. A bfloat16 is held as a float32
of the same value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt

from opwright.ir import program as ir
from opwright.ir.expressions.conversion import convert_array, convert_number, numpy_dtype
from opwright.ir.expressions.expression import Apply, Cast, Expression, Literal, Load, Local
from opwright.ir.expressions.functions import FUNCTIONS
from opwright.ir.expressions.integer import Atom, Greatest, Integer, Quotient, Remainder, Symbol, evaluate, holds
from opwright.ir.expressions.reductions import REDUCERS
from opwright.ir.meaning.calls import CALL_MEANINGS, CallMeaning
from opwright.ir.rows import indexed_by, row_axes

Array = npt.NDArray[Any]
_NO_SIZES: Mapping[str, int] = MappingProxyType({})
_NO_CALLS: Mapping[str, CallMeaning] = MappingProxyType({})


def interpret(
    program: ir.Program,
    inputs: Sequence[Array],
    sizes: Mapping[str, int] = _NO_SIZES,
    calls: Mapping[str, CallMeaning] = _NO_CALLS,
) -> tuple[Array, ...]:
    """Run a Program.

    Args:
        program: A Program that `verify` accepts.
        inputs: One array for each of its inputs, of the declared dtype and rank, with any strides.
        sizes: A number for each name in `program.sizes`.
        calls: Meanings of library operations, such as "aten::sum.dim_IntList", beside those of `CALL_MEANINGS`.

    Returns:
        One array for each of its outputs.

    Raises:
        ValueError: If the inputs do not fit the Program, a guard or a check does not hold, a library operation has no
            meaning or another result than declared, or two points of a kernel write one element.
        IndexError: If an index is out of range.
    """
    numbers = _bind_sizes(program, inputs, sizes)
    for guard in program.guards:
        if not holds(guard, numbers):
            raise ValueError(f"{program.name} is not valid for these sizes: {guard} does not hold for {numbers}")
    program = next((case for case in ir.programs_of(program)[1:] if _is_valid(case, numbers)), program)
    buffers = {buffer.name: array for buffer, array in zip(program.inputs, _as_in_memory(program, inputs), strict=True)}
    meanings = {**CALL_MEANINGS, **calls}
    with np.errstate(all="ignore"):
        for step in program.steps:
            match step:
                case ir.Kernel():
                    _run_kernel(step, buffers, numbers)
                case ir.View():
                    buffers[step.target.name] = _view(step, buffers, numbers)
                case ir.Number(target, value):
                    buffers[target.name] = np.asarray(evaluate(value, numbers), _dtype(target))
                case ir.Iota(target):
                    buffers[target.name] = np.arange(*_shape(target, numbers), dtype=np.int64)
                case ir.Call():
                    buffers.update(_call(step, buffers, numbers, meanings))
                case ir.Check():
                    _check(step, buffers, numbers)
                case _:
                    assert_never(step)
    orders = program.output_orders or ((),) * len(program.outputs)
    outputs = zip(program.outputs, orders, strict=True)
    return tuple(np.transpose(buffers[name], np.argsort(order)) if order else buffers[name] for name, order in outputs)


def _as_in_memory(program: ir.Program, inputs: Sequence[Array]) -> Sequence[Array]:
    return [np.transpose(array, program.input_order(position)) for position, array in enumerate(inputs)]


def _is_valid(program: ir.Program, numbers: Mapping[str, int]) -> bool:
    return all(holds(guard, numbers) for guard in program.guards)


def _bind_sizes(program: ir.Program, inputs: Sequence[Array], sizes: Mapping[str, int]) -> dict[str, int]:
    if len(inputs) != len(program.inputs):
        raise ValueError(f"{program.name} takes {len(program.inputs)} arrays, {len(inputs)} were given")
    if missing := [name for name in program.sizes if name not in sizes]:
        raise ValueError(f"{program.name} needs the sizes {', '.join(missing)}")
    numbers = {name: sizes[name] for name in program.sizes}
    for buffer, array in zip(program.inputs, inputs, strict=True):
        if array.ndim != len(buffer.shape):
            raise ValueError(f"{buffer.name} has rank {len(buffer.shape)}, an array of rank {array.ndim} was given")
        numbers |= {str(ir.size_symbol(buffer.name, dimension)): size for dimension, size in enumerate(array.shape)}
    for buffer, array in zip(program.inputs, _as_in_memory(program, inputs), strict=True):
        _expect(buffer, array, numbers)
    return numbers


def _expect(buffer: ir.Buffer, array: Array, numbers: Mapping[str, int]) -> None:
    shape = _shape(buffer, numbers)
    if array.shape != shape or array.dtype != _dtype(buffer):
        raise ValueError(f"{buffer.name} is {buffer.dtype.value}{[*shape]}, not {array.dtype}{[*array.shape]}")


def _shape(buffer: ir.Buffer, numbers: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(evaluate(size, numbers) for size in buffer.shape)


def _dtype(typed: ir.Buffer | Expression) -> np.dtype[Any]:
    return numpy_dtype(typed.dtype)


@dataclass(frozen=True, slots=True)
class _Points:
    """All points of some axes: the extents, and a grid for each axis beside the sizes, by name."""

    extents: tuple[int, ...]
    numbers: Mapping[str, Any]

    @classmethod
    def over(cls, axes: Mapping[str, Integer], numbers: Mapping[str, int]) -> _Points:
        extents = tuple(evaluate(extent, numbers) for extent in axes.values())
        return cls(extents, {**numbers, **dict(zip(axes, np.indices(extents, sparse=True), strict=True))})

    def gathering(self, gather: ir.Gather, value: Array) -> _Points:
        """The same points, with an index beside the axes."""
        extent = _at_points(gather.extent, self.numbers)
        index = np.where((value < 0) & gather.from_end, value + extent, value)
        if np.any((index < 0) | (index >= extent)):
            raise IndexError(f"{gather.name} is not below {gather.extent}")
        return replace(self, numbers={**self.numbers, gather.name: index})

    def positions(self, name: str, array: Array, indices: Sequence[Integer]) -> tuple[Array, ...]:
        """For each dimension of an array, the index at every point."""
        found = tuple(np.broadcast_to(_at_points(index, self.numbers), self.extents) for index in indices)
        for index, position, size in zip(indices, found, array.shape, strict=True):
            if np.any((position < 0) | (position >= size)):
                raise IndexError(f"index {index} of {name} leaves its {size} elements")
        return found

    def gather(self, name: str, array: Array, indices: Sequence[Integer]) -> Array:
        return np.broadcast_to(array[self.positions(name, array, indices)], self.extents)


def _at_points(expression: Integer, numbers: Mapping[str, Any]) -> Array:
    """`integer.evaluate` with arrays for the axes."""
    total: Array = np.zeros((), np.int64)
    for monomial, coefficient in expression.terms:
        total = total + coefficient * math.prod(_atom_at_points(atom, numbers) for atom in monomial)
    return total


def _atom_at_points(atom: Atom, numbers: Mapping[str, Any]) -> Any:
    match atom:
        case Symbol(name):
            return numbers[name]
        case Quotient(a, b):
            return _at_points(a, numbers) // _at_points(b, numbers)
        case Remainder(a, b):
            return _at_points(a, numbers) % _at_points(b, numbers)
        case Greatest(a, b):
            return np.maximum(_at_points(a, numbers), _at_points(b, numbers))
        case _:
            assert_never(atom)


@dataclass(frozen=True, slots=True)
class _Scope:
    """What the expressions of a kernel can name."""

    buffers: Mapping[str, Array]
    points: _Points
    locals: dict[str, Array] = field(default_factory=dict)


def _run_kernel(kernel: ir.Kernel, buffers: dict[str, Array], numbers: Mapping[str, int]) -> None:
    buffers.update((target.name, _unwritten(target, numbers)) for target in kernel.targets)
    scope = _Scope(buffers, _Points.over({axis.name: axis.extent for axis in kernel.axes}, numbers))
    for let in kernel.lets:
        value = _evaluate(let.value, scope)
        if isinstance(let, ir.Gather):
            scope = replace(scope, points=scope.points.gathering(let, value))
            continue
        scope.locals[let.name] = _reduce(let, value, kernel, scope) if isinstance(let, ir.Reduce) else value
    values = [_evaluate(store.value, scope) for store in kernel.stores]
    rows = {axis.name for axis in row_axes(kernel)}
    for store, value in zip(kernel.stores, values, strict=True):
        if store.reduction is not None:
            _reduce_into(store, store.reduction, value, kernel, scope)
        else:
            _write(store, value, scope, once=bool(rows) and not indexed_by(store.indices, rows))


def _reduce(reduction: ir.Reduce, value: Array, kernel: ir.Kernel, scope: _Scope) -> Array:
    rank = len(kernel.axes)
    over = tuple(range(rank - kernel.row_axes, rank))
    whole = np.broadcast_to(value, scope.points.extents)
    return np.broadcast_to(REDUCERS[reduction.function].meaning(whole, over), scope.points.extents)


def _reduce_into(store: ir.Store, reduction: str, value: Array, kernel: ir.Kernel, scope: _Scope) -> None:
    """Reduce over the axes that the indices leave out."""
    over = tuple(p for p, axis in enumerate(kernel.axes) if not indexed_by(store.indices, {axis.name}))
    reduced = REDUCERS[reduction].meaning(np.broadcast_to(value, scope.points.extents), over)
    positions = scope.points.positions(store.buffer, scope.buffers[store.buffer], store.indices)
    _assign(scope.buffers[store.buffer], positions, np.broadcast_to(reduced, scope.points.extents))


def _unwritten(buffer: ir.Buffer, numbers: Mapping[str, int]) -> Array:
    dtype = _dtype(buffer)
    fill = {"f": np.nan, "c": np.nan, "b": True}.get(dtype.kind)
    return np.full(_shape(buffer, numbers), np.iinfo(dtype).min if fill is None else fill, dtype)


def _write(store: ir.Store, value: Array, scope: _Scope, once: bool) -> None:
    """Write at every point; `once`: all points of a row write the same."""
    array = scope.buffers[store.buffer]
    positions = scope.points.positions(store.buffer, array, store.indices)
    touched = np.zeros(array.shape, np.bool_)
    touched[positions] = True
    if not once and np.count_nonzero(touched) != math.prod(scope.points.extents):
        raise ValueError(f"two points write the same element of {store.buffer}")
    _assign(array, positions, value)


def _assign(array: Array, positions: tuple[Array, ...], value: Array) -> None:
    """Assign at every point; an array of one element gets that of the first."""
    if array.ndim > 0:
        array[positions] = value
    elif value.size > 0:
        array[()] = value.flat[0]


def _evaluate(expression: Expression, scope: _Scope) -> Array:
    match expression:
        case Literal(value, dtype):
            return np.full(scope.points.extents, convert_number(value, dtype), _dtype(expression))
        case Load(buffer, indices):
            return scope.points.gather(buffer, scope.buffers[buffer], indices)
        case Local(name):
            return scope.locals[name]
        case Apply(function, operands):
            return np.asarray(FUNCTIONS[function].meaning(*(_evaluate(operand, scope) for operand in operands)))
        case Cast(operand, dtype):
            return convert_array(_evaluate(operand, scope), dtype)
        case _:
            assert_never(expression)


def _check(check: ir.Check, buffers: Mapping[str, Array], numbers: Mapping[str, int]) -> None:
    low, high = evaluate(check.low, numbers), evaluate(check.high, numbers)
    values = _seen(check.shape, check.buffer, check.indices, buffers, numbers)
    if np.any((values < low) | (values >= high)):
        raise ValueError(f"{check.buffer} is not from {check.low} to below {check.high}")


def _view(view: ir.View, buffers: Mapping[str, Array], numbers: Mapping[str, int]) -> Array:
    return _seen(view.target.shape, view.source, view.indices, buffers, numbers)


def _seen(
    shape: Sequence[Integer],
    source: str,
    indices: Sequence[Integer],
    buffers: Mapping[str, Array],
    numbers: Mapping[str, int],
) -> Array:
    axes = dict(zip(ir.view_axes(len(shape)), shape, strict=True))
    return _Points.over(axes, numbers).gather(source, buffers[source], indices)


def _call(
    call: ir.Call, buffers: Mapping[str, Array], numbers: Mapping[str, int], meanings: Mapping[str, CallMeaning]
) -> dict[str, Array]:
    name = f"{call.function}.{call.overload}" if call.overload else call.function
    if name not in meanings:
        raise ValueError(f"{name} has no meaning here")
    returned = meanings[name](*(_operand(operand, buffers, numbers) for operand in call.operands))
    results = returned if isinstance(returned, tuple) else (returned,)
    named = {target.name: result for target, result in zip(call.targets, results, strict=True)}
    for target in call.targets:
        _expect(target, named[target.name], numbers)
    return named


def _operand(operand: ir.Operand, buffers: Mapping[str, Array], numbers: Mapping[str, int]) -> Any:
    match operand:
        case ir.TensorOperand(buffer):
            return buffers[buffer]
        case ir.SizeOperand(value):
            return evaluate(value, numbers)
        case ir.ListOperand(items):
            return [_operand(item, buffers, numbers) for item in items]
        case ir.OptionalOperand(item):
            return None if item is None else _operand(item, buffers, numbers)
        case ir.ConstantOperand(value):
            return value
        case _:
            assert_never(operand)
