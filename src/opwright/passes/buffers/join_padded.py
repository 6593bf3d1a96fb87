"""Write the parts of a tensor where they belong, instead of adding tensors that are zero elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from opwright.ir.contents import count_reads
from opwright.ir.expressions.expression import Apply, Cast, Expression, Literal, Load, apply
from opwright.ir.expressions.integer import integer, symbol
from opwright.ir.program import Axis, Buffer, Kernel, Program, Step, Store
from opwright.passes.buffers.memory import is_plain


@dataclass(frozen=True, slots=True)
class _Padded:
    """A buffer that is zero except for pieces along one dimension.

    Attributes:
        target: The buffer.
        dimension: Along which the pieces lie.
        size: Along it.
        pieces: By their begin and end along it, the kernels that write them.
    """

    target: Buffer
    dimension: int
    size: int
    pieces: Mapping[tuple[int, int], Kernel]


def join_padded(program: Program) -> Program:
    """Join buffers with zeros around their pieces, where they are added and the pieces do not overlap.

    Before:  p[0] = a;  p[1] = 0;   q[0] = 0;  q[1] = b;   r[i] = p[i] + q[i]
    After:   r[0] = a;  r[1] = b

    This is the gradient of a tensor that is read part by part, such as the steps of a sequence.
    """
    zeros = {s.targets[0].name for s in program.steps if isinstance(s, Kernel) and _is_zero(s)}
    padded = dict(_padded(program, zeros))
    if not padded:
        return program
    reads, joined = count_reads(program), dict[str, _Padded]()
    for step in program.steps:
        pair = _added(step)
        if pair is not None and all(each in padded for each in pair):
            x, y = (padded[each] for each in pair)
            assert isinstance(step, Kernel)
            both = _joined(x, y, step.targets[0])
            if both is not None and all(reads[each] == 1 and each not in program.outputs for each in pair):
                padded[both.target.name] = joined[both.target.name] = both
    gone = {each for step in program.steps if _name(step) in joined for each in _added(step) or ()}
    steps: list[Step] = []
    for step in program.steps:
        if isinstance(step, Kernel) and step.stores[0].buffer in gone:
            continue
        if (name := _name(step)) in joined:
            steps += _kernels(joined[name])
        else:
            steps.append(step)
    return replace(program, steps=tuple(steps))


def _name(step: Step) -> str:
    return step.targets[0].name if isinstance(step, Kernel) and step.targets else ""


def _added(step: Step) -> tuple[str, str] | None:
    """The two buffers that a kernel adds, element by element."""
    if isinstance(step, Kernel) and is_plain(step) and not step.lets:
        match step.stores[0]:
            case Store(indices=at, value=Apply("add", (Load(x, one), Load(y, other)))) if x != y:
                return (x, y) if one == other == at else None
    return None


def _is_zero(kernel: Kernel) -> bool:
    return is_plain(kernel) and _is_the_number_zero(kernel.stores[0].value)


def _is_the_number_zero(value: Expression) -> bool:
    match value:
        case Cast(operand, _):
            return _is_the_number_zero(operand)
        case Literal(number):
            return number == 0
    return False


def _padded(program: Program, zeros: set[str]) -> Iterable[tuple[str, _Padded]]:
    """The buffers that are written in pieces along one dimension, some of them with zeros; these are left out."""
    writers: dict[str, list[Kernel]] = {}
    targets = {each.name: each for step in program.steps if isinstance(step, Kernel) for each in step.targets}
    for step in program.steps:
        if isinstance(step, Kernel):
            for store in step.stores:
                writers.setdefault(store.buffer, []).append(step)
    for name, kernels in writers.items():
        if len(kernels) == 1 or not all(map(_is_piece, kernels)):
            continue
        dimensions = {
            d for each in kernels for d, index in enumerate(each.stores[0].indices) if index != symbol(f"i{d}")
        }
        if len(dimensions) == 1:
            (dimension,) = dimensions
            places = [_place(each, dimension) for each in kernels]
            pieces = {
                place: each
                for place, each in zip(places, kernels, strict=True)
                if place is not None and not _writes_zeros(each, zeros)
            }
            if None not in places and len(pieces) < len(kernels):
                size = max(end for _, end in filter(None, places))
                yield name, _Padded(targets[name], dimension, size, pieces)


def _is_piece(kernel: Kernel) -> bool:
    """Whether a kernel writes a block of a buffer, element by element."""
    names = [axis.name for axis in kernel.axes]
    is_single = len(kernel.stores) == 1 and not kernel.lets and kernel.stores[0].reduction is None
    return is_single and names == [f"i{d}" for d in range(len(kernel.stores[0].indices))]


def _place(kernel: Kernel, dimension: int) -> tuple[int, int] | None:
    """From where to where a kernel writes along a dimension; None if that is not known before a call."""
    offset = kernel.stores[0].indices[dimension] - symbol(f"i{dimension}")
    extent = kernel.axes[dimension].extent
    if offset.constant is None or extent.constant is None:
        return None
    return offset.constant, offset.constant + extent.constant


def _writes_zeros(kernel: Kernel, zeros: set[str]) -> bool:
    value = kernel.stores[0].value
    while isinstance(value, Cast):
        value = value.operand
    return isinstance(value, Load) and value.buffer in zeros


def _joined(x: _Padded, y: _Padded, target: Buffer) -> _Padded | None:
    """The sum of two; None if their pieces overlap without being the same, or lie along different dimensions."""
    pieces = dict(x.pieces)
    for (begin, end), kernel in y.pieces.items():
        if (begin, end) in pieces:
            other = pieces[begin, end]
            value = apply("add", other.stores[0].value, kernel.stores[0].value)
            kernel = replace(kernel, stores=(replace(kernel.stores[0], value=value),))
        pieces[begin, end] = kernel
    places = sorted(pieces)
    overlap = any(end > begin for (_, end), (begin, _) in pairwise(places))
    same = (x.dimension, x.size) == (y.dimension, y.size) and x.target.shape == y.target.shape == target.shape
    is_real = target.dtype.is_floating and target.dtype is target.dtype.computed
    return _Padded(target, x.dimension, x.size, pieces) if same and is_real and not overlap else None


def _kernels(padded: _Padded) -> Iterable[Kernel]:
    """The kernels that write it, in order, with zeros in the gaps."""
    target, dimension = padded.target, padded.dimension
    places = sorted(padded.pieces)
    ends = [0, *(end for _, end in places)]
    begins = [*(begin for begin, _ in places), padded.size]
    gaps = [(a, b) for a, b in zip(ends, begins, strict=True) if a < b]
    for number, (begin, end) in enumerate(sorted([*places, *gaps])):
        kernel, name = padded.pieces.get((begin, end)), f"{target.name}_{number}"
        targets = (target,) if number == 0 else ()
        if kernel is not None:
            (store,) = kernel.stores
            yield replace(kernel, name=name, targets=targets, stores=(replace(store, buffer=target.name),))
            continue
        extents = (integer(end - begin) if d == dimension else extent for d, extent in enumerate(target.shape))
        axes = tuple(Axis(f"i{d}", extent) for d, extent in enumerate(extents))
        at = tuple(symbol(axis.name) + (begin if d == dimension else 0) for d, axis in enumerate(axes))
        yield Kernel(name, targets, axes, (), (Store(target.name, at, Literal(0.0, target.dtype)),))
