"""numbers_apart: a lowered Program → what it computes of numbers alone, and the rest, which is given the results.

Before: t[] = pow(step[], d[]); s[] = 1 - t[]; y[i0] = x[i0] * s[]     (step and d are numbers)
After:  t[] = pow(step[], d[]); s[] = 1 - t[]                          (output s)
        y[i0] = x[i0] * s[]                                            (s is passed by value)

Sizes are known to both, and so are constants.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from opwright.ir.contents import reads_of
from opwright.ir.expressions.expression import Load
from opwright.ir.names.fresh import fresh
from opwright.ir.parts import with_parts
from opwright.ir.program import (
    Buffer,
    Call,
    Kernel,
    Number,
    Program,
    Step,
    Store,
    TensorOperand,
    View,
    buffers_of,
    targets_of,
)


@dataclass(frozen=True, slots=True)
class Apart:
    """The two parts of a Program.

    Attributes:
        numbers: Its outputs are what the rest is given, and the Program's own results that are numbers.
        rest: Its last inputs are passed by value.
    """

    numbers: Program
    rest: Program


def numbers_apart(program: Program, given: Collection[str], tensors: Collection[str] = ()) -> Apart:
    """See the top.

    Args:
        program: As it was lowered.
        given: The names of inputs without dimensions that are numbers.
        tensors: The outputs that the rest has to compute, whatever they are computed of.
    """
    known, constants, in_both = set(given), set[str](), set[str]()
    first: list[Step] = []
    rest: list[Step] = []
    for step in program.steps:
        is_number = isinstance(step, Number) or (_is_scalar(step) and known.issuperset(reads_of(step)))
        made = {target.name for target in targets_of(step)}
        if is_number:
            known |= made
            first.append(step)
        is_constant = isinstance(step, Number) or (is_number and constants.issuperset(reads_of(step)))
        if is_constant:
            constants |= made
        if not is_number or is_constant or not made.isdisjoint(tensors):
            rest.append(step)
            in_both |= made if is_number else set()
    buffers = buffers_of(program)
    rest = list(_with_tensors(rest, known - in_both, buffers))
    read = {name for step in rest for name in reads_of(step)} - in_both
    by_value = [replace(buffer, by_value=True) for name, buffer in buffers.items() if name in known & read]
    needed = [buffer.name for buffer in by_value]
    numbers = known - set(tensors)
    own = [name for name in program.outputs if name in numbers and name not in needed]
    inputs = [buffer for buffer in program.inputs if buffer.name not in given]
    return Apart(
        numbers=replace(program, steps=tuple(first), outputs=(*needed, *own)),
        rest=replace(
            program,
            inputs=(*inputs, *by_value),
            steps=tuple(rest),
            outputs=tuple(name for name in program.outputs if name not in numbers),
        ),
    )


def _is_scalar(step: Step) -> bool:
    """Whether a step computes nothing but numbers, and writes into nothing that was there before."""
    if not isinstance(step, Kernel) or step.axes:
        return False
    own = {target.name for target in step.targets if not target.shape}
    return all(store.buffer in own for store in step.stores)


def _with_tensors(steps: Iterable[Step], known: Collection[str], buffers: Mapping[str, Buffer]) -> Iterable[Step]:
    """Steps that are no kernels read tensors alone: numbers are stored for them."""
    taken, stored = set(buffers), dict[str, str]()
    for step in steps:
        if isinstance(step, Kernel):
            yield step
            continue
        for name in reads_of(step):
            if name in known and name not in stored:
                stored[name] = fresh(name, taken)
                taken.add(stored[name])
                target = replace(buffers[name], name=stored[name])
                value = Load(name, (), target.dtype)
                yield Kernel(target.name, (target,), (), (), (Store(target.name, (), value),))
        yield _reading(step, stored)


def _reading(step: Step, stored: Mapping[str, str]) -> Step:
    """A step that reads tensors in the place of numbers."""

    def rewritten(part: Any) -> Any:
        if isinstance(part, TensorOperand):
            return TensorOperand(stored.get(part.buffer, part.buffer))
        return with_parts(part, rewritten)

    match step:
        case Call(operands=operands):
            return replace(step, operands=tuple(rewritten(operand) for operand in operands))
        case View(source=source):
            return replace(step, source=stored.get(source, source))
    return step
