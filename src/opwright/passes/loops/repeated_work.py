"""Values that are stored because kernels would repeat a long computation.

Fusion computes each value where it is used. A value that depends on the one before it, as the state of an unrolled
recurrence does, would then be computed from the beginning by every kernel that reads it. And a table of sines that is
the same for every batch and head would be computed for each of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set

from opwright.ir import program as ir
from opwright.ir.expressions.expression import Apply, Expression, Load, children, leaves
from opwright.ir.expressions.functions import FUNCTIONS
from opwright.ir.expressions.integer import ONE, Integer
from opwright.ir.parts import parts_of
from opwright.passes.buffers.memory import Producers

MOST_REPEATED = 64  # work that is rather done twice than stored, in operations such as a sum
_OF_A_FUNCTION = 8  # the work of exp, tanh and the like
_OF_A_BUFFER = 4  # that is read


def work(value: Expression) -> int:
    """The work of an expression, in operations such as a sum."""
    own = 0
    if isinstance(value, Apply):
        known = FUNCTIONS.get(value.function)  # not what an emitter writes in its place, such as a choice made of bits
        own = _OF_A_FUNCTION if known and known.template is None else 1
    return own + sum(map(work, children(value)))


def stored_instead(program: ir.Program, producers: Producers, times: Mapping[str, int]) -> set[str]:
    """The values to store, of those that fusion would compute where they are used.

    Before:  a = f(x); b = g(a); …; kernels p and q both compute a, b, …, y from x
    After:   y is in memory if that is more than a little work; p and q read it

    A value is not stored if it is larger than all that it is computed from.

    Before:  table[i0, i1] = sin(…); kernel y[i0, i1, i2, i3] reads table[i2, i3] and computes it for each i0 and i1
    After:   table is in memory

    Args:
        program: The unfused Program.
        producers: Where its values come from.
        times: In how many places fusion computes each value.
    """
    shapes = {name: _sizes(buffer) for name, buffer in ir.buffers_of(program).items()}
    stored: set[str] = set()
    behind: dict[str, frozenset[str]] = {}
    costs: dict[str, int] = {}
    for step in program.steps:
        if not isinstance(step, ir.Kernel):
            continue
        sources = _sources(step, producers)
        for source in sources:
            computed = behind.get(source, frozenset()).intersection(costs).difference(stored)
            if _is_table(source, step, shapes) and sum(costs[each] for each in computed) >= _OF_A_FUNCTION:
                stored.add(source)
                behind[source] = frozenset((source,))
        if producers.is_placed(step):
            continue
        name, found = step.targets[0].name, set[str]()
        for source in sources:
            found |= behind.get(source, frozenset((source,)))
        costs[name] = sum(work(statement.value) for statement in step.stores)
        behind[name] = frozenset({name, *found})
        read = [each for each in found if each not in costs or each in stored]
        again = sum(costs[each] for each in behind[name].difference(read)) + _OF_A_BUFFER * len(read)
        if times[name] > 1 and again > MOST_REPEATED and any(shapes[name] <= shapes[each] for each in read):
            stored.add(name)
            behind[name] = frozenset((name,))
    return stored


def _is_table(name: str, reader: ir.Kernel, shapes: Mapping[str, Counter[Integer]]) -> bool:
    """Whether a kernel reads a value for each point of more axes than it has, the innermost ones of the loops."""
    if name not in shapes or any(isinstance(let, ir.Reduce) for let in reader.lets):
        return False
    own, around = shapes[name], [axis.extent for axis in reader.axes if axis.extent != ONE]
    return own.total() < len(around) and around[-1] in own and own <= Counter(around)


def times_between_calls(program: ir.Program, producers: Producers) -> Counter[str]:
    """In how many places fusion must compute each value, because library operations run between those that read it."""
    level: dict[str, int] = {}  # how many operations of the library a buffer comes after
    readers: dict[str, set[int]] = {}
    sources = {id(step): _sources(step, producers) for step in program.steps if isinstance(step, ir.Kernel)}
    for step in program.steps:
        match step:
            case ir.Kernel():
                at = max((level.get(name, 0) for name in sources[id(step)]), default=0)
            case ir.View(source=source):
                at = level.get(source, 0)
            case ir.Call(operands=operands):
                at = 1 + max((level.get(each.buffer, 0) for each in parts_of(operands, ir.TensorOperand)), default=0)
            case _:
                continue
        level.update((target.name, at) for target in ir.targets_of(step))
    for step in reversed(program.steps):
        if isinstance(step, ir.Kernel):
            name = step.targets[0].name if step.targets else ""
            stored = {level.get(store.buffer, 0) for store in step.stores[:1]}  # nothing, in an empty loop
            at_levels = stored if producers.is_placed(step) else readers.get(name, set())
            for source in sources[id(step)]:
                readers.setdefault(source, set()).update(at_levels)
    return Counter({name: len(levels) for name, levels in readers.items()})


def _sources(kernel: ir.Kernel, producers: Producers) -> Set[str]:
    """The buffers that a kernel reads, through views."""
    found = set()
    for statement in (*kernel.lets, *kernel.stores):
        for leaf in leaves(statement.value):
            if isinstance(leaf, Load):
                name = leaf.buffer
                while name in producers.views and name not in producers.in_memory:
                    name = producers.views[name].source
                found.add(name)
    return found


def _sizes(buffer: ir.Buffer) -> Counter[Integer]:
    return Counter(size for size in buffer.shape if size != ONE)
