"""flat: a Program that updates tensors element by element → the same for their memory in any dense order.

Before: kernel over i0 < s0, i1 < s1:  let b1 = b1[]; v_1[i0, i1] = v[i0, i1] * b1 + g[i0, i1] * (1.0 - b1)
After:  numbers:                       let b1 = b1[]; let number = 1.0 - b1
        point:                         v_1[i] = v[i] * b1 + g[i] * number

What is the same for all elements is computed once for a tensor, before its elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from opwright.errors import NotElementwise
from opwright.ir.contents import locals_in
from opwright.ir.expressions.expression import Apply, Cast, Expression, Load, Local, rewrite_children
from opwright.ir.expressions.integer import ONE, ZERO, symbols_of
from opwright.ir.names.fresh import fresh
from opwright.ir.program import Buffer, Kernel, Let, Program, Store
from opwright.ir.rows import varies

LEAST_SIZE = 2  # of a dimension whose size is a symbol: sizes of one are constants


@dataclass(frozen=True, slots=True)
class Flat:
    """An update of tensors, element by element.

    Attributes:
        before: Kernels without axes, which compute numbers.
        numbers: What else is the same for all elements.
        kept: Which of these the elements need.
        kernel: The rest, of which every access is at the same place.
        inputs: The inputs of the Program.
        replaced: For each output but the last, the input in whose memory it lies; None if it is that input unchanged.
        outputs: The outputs; the last one says whether the others may be stored.
    """

    before: tuple[Kernel, ...]
    numbers: tuple[Let, ...]
    kept: tuple[Let, ...]
    kernel: Kernel
    inputs: tuple[Buffer, ...]
    replaced: tuple[str | None, ...]
    outputs: tuple[str, ...]


def flat(program: Program, replaced: Sequence[str]) -> Flat:
    """See the top.

    Args:
        program: After the passes; its last output is a truth value.
        replaced: For each output but the last, the input in whose memory it lies.

    Raises:
        NotElementwise: If it does anything else than that.
    """
    kernels = [step for step in program.steps if isinstance(step, Kernel)]
    over_elements = [kernel for kernel in kernels if kernel.axes]
    if program.cases or len(kernels) != len(program.steps) or len(over_elements) != 1:
        raise _refusal(f"it runs {len(program.steps)} steps")
    (kernel,) = over_elements
    before = tuple(each for each in kernels if each is not kernel)
    if kernel.row_axes or not all(isinstance(let, Let) for each in kernels for let in each.lets):
        raise _refusal("it reduces or gathers")
    _refuse_other_places(program, kernel)
    _refuse_sizes(program)
    outputs, given = program.outputs[:-1], {buffer.name for buffer in program.inputs}
    if len(set(program.outputs)) < len(program.outputs):
        raise _refusal("two of its results are the same")
    moved = [output for output, name in zip(outputs, replaced, strict=True) if output in given and output != name]
    if moved:
        raise _refusal(f"it returns its argument '{moved[0]}' in another place")
    kernel, hoisted = _hoisted(kernel)
    lets = [let for let in kernel.lets if isinstance(let, Let)]
    varying = _varying(kernel)
    numbers = tuple(let for let in (*lets, *hoisted) if let.name not in varying)
    point = replace(kernel, lets=tuple(let for let in lets if let.name in varying))
    read = {local.name for local in locals_in(*_values(point))}
    kept = tuple(let for let in numbers if let.name in read)
    places = tuple(None if output in given else name for output, name in zip(outputs, replaced, strict=True))
    return Flat(before, numbers, kept, point, program.inputs, places, program.outputs)


def _refusal(fact: str) -> NotElementwise:
    return NotElementwise(f"{fact}, so it is no update element by element")


def _refuse_other_places(program: Program, kernel: Kernel) -> None:
    """Every tensor must be read and written at the same place, and every one must have the same shape."""
    shapes = {buffer.name: buffer.shape for buffer in (*program.inputs, *kernel.targets)}
    places = {store.indices for store in kernel.stores if store.indices}
    for let in kernel.lets:
        if isinstance(let.value, Load) and shapes.get(let.value.buffer):
            places.add(let.value.indices)
    if len(places) != 1 or any(store.reduction or not store.indices for store in kernel.stores):
        raise _refusal("it reads one element to compute another")
    ranks = {len(shape) for shape in shapes.values() if shape}
    if len(ranks) != 1:
        raise _refusal("its tensors have other shapes than the parameter")
    (place,) = places
    axes = {axis.name for axis in kernel.axes}
    used = sorted(name for index in place for name in symbols_of(index))
    if used != sorted(axes) or any(str(index) not in axes and index != ZERO for index in place):
        raise _refusal("it reads one element to compute another")


def _refuse_sizes(program: Program) -> None:
    """Conditions on sizes other than that tensors have the same ones."""
    for guard in program.guards:
        is_usual = guard.relation == ">=" and guard.right.constant == LEAST_SIZE
        ends = {str(side).rpartition("_size_")[2] for side in (guard.left, guard.right)}
        is_unit = guard.relation == "==" and guard.right == ONE  # which tells kinds of parameters apart
        is_same = guard.relation == "==" and len(ends) == 1 and all(symbols_of(s) for s in (guard.left, guard.right))
        if not (is_usual or is_unit or is_same):
            raise _refusal(f"it depends on sizes ({guard})")
    if program.sizes:
        raise _refusal("it computes with sizes")


def _varying(kernel: Kernel) -> set[str]:
    axes, varying = {axis.name for axis in kernel.axes}, set[str]()
    for let in kernel.lets:
        if varies(let.value, axes, varying):
            varying.add(let.name)
    return varying


def _values(kernel: Kernel) -> list[Expression]:
    return [let.value for let in kernel.lets] + [store.value for store in kernel.stores]


def _hoisted(kernel: Kernel) -> tuple[Kernel, list[Let]]:
    """Name every part of a formula that is the same for all elements."""
    axes, varying = {axis.name for axis in kernel.axes}, _varying(kernel)
    taken = {let.name for let in kernel.lets} | {store.buffer for store in kernel.stores}
    made: dict[Expression, Let] = {}

    def named(value: Expression) -> Expression:
        if isinstance(value, (Apply, Cast)) and not varies(value, axes, varying) and locals_in(value):
            if value not in made:
                name = fresh("number", taken)
                taken.add(name)
                made[value] = Let(name, value)
            return Local(made[value].name, value.dtype)
        return rewrite_children(value, named)

    lets = tuple(
        replace(let, value=named(let.value)) if let.name in varying and not isinstance(let.value, Load) else let
        for let in kernel.lets
        if isinstance(let, Let)
    )
    stores = tuple(Store(s.buffer, s.indices, named(s.value), s.reduction) for s in kernel.stores)
    return replace(kernel, lets=lets, stores=stores), list(made.values())
