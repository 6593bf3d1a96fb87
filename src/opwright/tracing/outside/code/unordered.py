"""Lines that make sets, which are gone through in another order in another process.

A set that is only asked for members, at once or under the name of a local variable, is like a list: it does not count.
"""

from __future__ import annotations

import dis
import types
from collections.abc import Sequence

_SETS = frozenset({"set", "frozenset"})
_OF_SETS = frozenset({"union", "intersection", "difference", "symmetric_difference"})
_VIEWS = frozenset({"keys", "items"})  # `d.keys() - names` is a set
_GLOBALS = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"})
_HARMLESS = frozenset({"GET_ITER", "CONTAINS_OP", "CALL"})
ASKING = frozenset({"isinstance", "issubclass"})
_COMPREHENSIONS = frozenset({"<setcomp>", "<listcomp>", "<dictcomp>", "<genexpr>"})
_ALL_LOCALS = frozenset({"locals", "vars", "dir", "eval", "exec"})


def set_lines(code: types.CodeType, steps: Sequence[dis.Instruction]) -> frozenset[int]:
    """The lines of code, without nested functions, that make sets whose order may matter.

    Args:
        code: The code.
        steps: Its instructions, without those that do nothing.
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


def _makes_set(code: types.CodeType, steps: Sequence[dis.Instruction], place: int) -> bool:
    kind, name, following = steps[place].opname, steps[place].argval, steps[place + 1 : place + 3]
    if kind == "BUILD_SET":
        return steps[place].arg != 0 and not _is_for_asking(code, steps, place + 1)
    if kind == "LOAD_CONST" and isinstance(name, types.CodeType) and name.co_name == "<setcomp>":
        return not _is_for_asking(code, steps, _end_of_comprehension(steps, place))
    if kind == "SET_ADD":
        return code.co_name != "<setcomp>"  # which the code around it answers for
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


def _is_for_asking(code: types.CodeType, steps: Sequence[dis.Instruction], place: int) -> bool:
    """Whether the value that is there before an instruction is only asked for members."""
    if place >= len(steps):
        return False
    if steps[place].opname == "CONTAINS_OP":
        return True
    name = steps[place].argval
    if steps[place].opname != "STORE_FAST" or name in code.co_cellvars or not _ALL_LOCALS.isdisjoint(code.co_names):
        return False
    reads = [at for at, step in enumerate(steps) if "LOAD" in step.opname and _names(step, name)]
    return all(steps[at].opname == "LOAD_FAST" and is_only_asked(steps[at + 1 : at + 2]) for at in reads)


def _names(step: dis.Instruction, name: str) -> bool:
    """Whether an instruction is about a local variable, perhaps beside another one."""
    return "FAST" in step.opname and (name == step.argval or (isinstance(step.argval, tuple) and name in step.argval))
