"""Lines that make sets, which are gone through in another order in another process.

A set that is only asked for members, at once or under the name of a local variable, is like a list: it does not count.

Comprehensions are functions in Python 3.11. Since 3.12 their loops are in the code around them, between instructions
that put variables of the same names aside and back (PEP 709).
"""

from __future__ import annotations

import dis
import re
import types
from collections.abc import Iterator, Sequence

_SETS = frozenset({"set", "frozenset"})
_OF_SETS = frozenset({"union", "intersection", "difference", "symmetric_difference"})
_VIEWS = frozenset({"keys", "items"})  # `d.keys() - names` is a set
_GLOBALS = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"})
_HARMLESS = frozenset({"GET_ITER", "CONTAINS_OP", "CALL"})
ASKING = frozenset({"isinstance", "issubclass"})
_COMPREHENSIONS = frozenset({"<setcomp>", "<listcomp>", "<dictcomp>", "<genexpr>"})
_ALL_LOCALS = frozenset({"locals", "vars", "dir", "eval", "exec"})
_READS = frozenset({"LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_FAST_CHECK"})
_TWO = re.compile(r"(STORE_FAST|LOAD_FAST|LOAD_FAST_BORROW)_(STORE_FAST|LOAD_FAST|LOAD_FAST_BORROW)")


def set_lines(code: types.CodeType, steps: Sequence[dis.Instruction]) -> frozenset[int]:
    """The lines of code, without nested functions, that make sets whose order may matter.

    Args:
        code: The code.
        steps: Its instructions, without those that do nothing, each about one variable.
    """
    found, line = set[int](), code.co_firstlineno
    for place, step in enumerate(steps):
        line = (step.positions and step.positions.lineno) or line
        if _makes_set(code, steps, place):
            found.add(line)
    return frozenset(found)


def is_only_asked(following: Sequence[dis.Instruction]) -> bool:
    """Whether a value is only used for a membership test, as in `mode in MODES`."""
    return bool(following) and following[0].opname == "CONTAINS_OP"


def singles(step: dis.Instruction) -> Iterator[dis.Instruction]:
    """An instruction that is about two local variables, as two."""
    two = _TWO.fullmatch(step.opname)
    if two is None or not isinstance(step.argval, tuple):
        yield step
        return
    for kind, name in zip(two.groups(), step.argval, strict=True):
        yield step._replace(opname=kind, argval=name)


def _makes_set(code: types.CodeType, steps: Sequence[dis.Instruction], place: int) -> bool:
    kind, name, following = steps[place].opname, steps[place].argval, steps[place + 1 : place + 3]
    if kind == "BUILD_SET":
        behind = place + 1 if steps[place].arg else _end_of_loop(steps, place)
        return behind is not None and not _is_for_asking(code, steps, behind)
    if kind == "SET_UPDATE":
        return steps[place - 1].opname != "LOAD_CONST" and not _is_for_asking(code, steps, place + 1)
    if kind == "LOAD_CONST" and isinstance(name, types.CodeType) and name.co_name == "<setcomp>":
        return not _is_for_asking(code, steps, _end_of_comprehension(steps, place))
    if kind == "SET_ADD":
        return steps[place].arg == 1  # a comprehension has an iterator in between, and counts where it begins
    if kind in _GLOBALS:
        return name in _SETS and not _is_asked_for(steps, place)
    if kind not in _ATTRIBUTES or name not in _OF_SETS | _VIEWS:
        return False
    is_gone_through = [step.opname in _HARMLESS for step in following] == [True, True]
    return name in _OF_SETS or not is_gone_through


def _is_asked_for(steps: Sequence[dis.Instruction], place: int) -> bool:
    """Whether a class is what `isinstance` is asked for, alone or among others in a tuple."""
    behind = next((at for at in range(place + 1, len(steps)) if steps[at].opname not in _GLOBALS), len(steps))
    if behind < len(steps) and steps[behind].opname == "BUILD_TUPLE":
        behind += 1
    if behind >= len(steps) or steps[behind].opname != "CALL" or steps[behind].arg != 2:
        return False
    start = _start(steps[behind])
    called = (step.argval for step in steps[:place] if step.opname in _GLOBALS and _start(step) == start)
    return start is not None and not ASKING.isdisjoint(called)


def _start(step: dis.Instruction) -> tuple[int, int] | None:
    """Where the expression of an instruction begins."""
    at = step.positions
    return None if at is None or at.lineno is None or at.col_offset is None else (at.lineno, at.col_offset)


def _end_of_comprehension(steps: Sequence[dis.Instruction], place: int) -> int:
    """The instruction behind the call of a comprehension; inside of what it goes through there may be others."""
    open_ones = 0
    for at in range(place, len(steps) - 1):
        if steps[at].opname == "LOAD_CONST" and getattr(steps[at].argval, "co_name", None) in _COMPREHENSIONS:
            open_ones += 1
        elif steps[at].opname == "GET_ITER" and steps[at + 1].opname == "CALL":
            open_ones -= 1
            if open_ones == 0:
                return at + 2
    return len(steps)


def _end_of_loop(steps: Sequence[dis.Instruction], place: int) -> int | None:
    """The instruction that takes the set of a comprehension whose loop is here; None if no such loop begins here."""
    swap, loop = steps[place + 1 : place + 3] if place + 2 < len(steps) else (None, None)
    if swap is None or loop is None or swap.opname != "SWAP":
        return None
    before = steps[place - 1]
    if before.opname != "SWAP" or loop.opname != "FOR_ITER":  # it has no variable of its own, or is asynchronous
        return len(steps)
    at = next((at for at in range(place, len(steps)) if steps[at].offset == loop.argval), len(steps))
    while at < len(steps) and steps[at].opname in {"END_FOR", "POP_TOP", "POP_ITER"}:
        at += 1
    if at < len(steps) and steps[at].opname == "SWAP":  # else it is stored before the variables are put back
        at += before.arg or 1
    return at


def _is_for_asking(code: types.CodeType, steps: Sequence[dis.Instruction], place: int) -> bool:
    """Whether the value that is there before an instruction is only asked for members."""
    if place >= len(steps):
        return False
    if steps[place].opname == "CONTAINS_OP":
        return True
    name = steps[place].argval
    if steps[place].opname != "STORE_FAST" or name in code.co_cellvars or not _ALL_LOCALS.isdisjoint(code.co_names):
        return False
    reads = [at for at, step in enumerate(steps) if step.opname.startswith("LOAD_FAST") and step.argval == name]
    return all(steps[at].opname in _READS and is_only_asked(steps[at + 1 : at + 2]) for at in reads)
