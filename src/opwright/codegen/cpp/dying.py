"""Results in the memory of values that are needed no more."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from opwright.ir import program as ir
from opwright.ir.call_traits import RETURNS_NEW
from opwright.ir.contents import loads, reads_of
from opwright.ir.expressions.integer import Integer, symbols_of


def memory_of_the_dying(program: ir.Program, replaced: Mapping[str, str] = MappingProxyType({})) -> Mapping[str, str]:
    """By the name of what a kernel computes: the buffer of the same dtype and shape whose memory it can take.

    call product = aten::mm(x, y);  kernel grown[i0, i1] = exp(product[i0, i1])     {"grown": "product"}

    The kernel is the last to use that buffer, and before it writes a place, it reads that place alone of it. The buffer
    is the Program's own: no input, no output, and nothing else lies in its memory. Or the result is the new value of an
    input, and the kernel is the last step, so that nothing can fail or read after it; it reads no input at another
    place, since callers may have put two in the same memory, and the library has made no view of one.

    Args:
        program: After the last pass.
        replaced: For results that are new values of inputs: these inputs, which have the sizes of the results.
    """
    shared = _shared(program)
    buffers, free, last = ir.buffers_of(program), _made(program) - shared, _last_uses(program)
    given = {buffer.name for buffer in program.inputs if not buffer.by_value}
    ends_in_place = given.isdisjoint(shared)
    found: dict[str, str] = {}
    for position, step in enumerate(program.steps):
        place = _only_place(step)
        if place is None:
            continue
        assert isinstance(step, ir.Kernel)
        (target,) = step.targets
        read: dict[str, set[tuple[Integer, ...]]] = {}
        for load, _ in loads(step):
            read.setdefault(load.buffer, set()).add(load.indices)
        for name, places in read.items():
            same = (buffers[name].dtype, buffers[name].shape) == (target.dtype, target.shape)
            is_free = name in free and same and last[name] == position
            is_replaced = replaced.get(target.name) == name and buffers[name].dtype is target.dtype
            here_alone = all(at == {place} for each, at in read.items() if each in given)
            is_last = ends_in_place and position == len(program.steps) - 1
            if places == {place} and (is_free or (is_replaced and here_alone and is_last)):
                found[target.name] = name
                break
    return found


def _made(program: ir.Program) -> set[str]:
    """Buffers that have memory when their step ends."""
    new = (step for step in program.steps if isinstance(step, ir.Kernel) or _returns_new(step))
    return {target.name for step in new for target in ir.targets_of(step)}


def _shared(program: ir.Program) -> set[str]:
    """Buffers in whose memory another buffer or a result may lie."""
    others = (step for step in program.steps if not (isinstance(step, ir.Kernel | ir.Check) or _returns_new(step)))
    return {*program.outputs, *(name for step in others for name in reads_of(step))}


def _returns_new(step: ir.Step) -> bool:
    return isinstance(step, ir.Call) and step.function in RETURNS_NEW


def _last_uses(program: ir.Program) -> dict[str, int]:
    """The position of the last step that reads or writes each buffer."""
    found: dict[str, int] = {}
    for position, step in enumerate(program.steps):
        stored = [store.buffer for store in step.stores] if isinstance(step, ir.Kernel) else []
        found.update(dict.fromkeys([*reads_of(step), *stored], position))
    return found


def _only_place(step: ir.Step) -> tuple[Integer, ...] | None:
    """Where a kernel writes, if it is element-wise and writes one new buffer, each place of it once."""
    if not isinstance(step, ir.Kernel) or len(step.stores) != 1:
        return None
    (store,) = step.stores
    is_element_wise = store.reduction is None and all(isinstance(let, ir.Let) for let in step.lets)
    axes = {axis.name for axis in step.axes}
    is_once = axes <= {name for index in store.indices for name in symbols_of(index)}
    is_new = [target.name for target in step.targets] == [store.buffer]
    return store.indices if is_element_wise and is_once and is_new else None
