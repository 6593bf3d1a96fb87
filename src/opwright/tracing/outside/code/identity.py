"""Where code asks whether two values are one object: `query is key`."""

from __future__ import annotations

import dis
import types
from collections.abc import Mapping, Sequence
from functools import lru_cache

Dotted = tuple[str, ...]
_ROOTS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_FAST")
_SKIPPED = frozenset({"CACHE", "PUSH_NULL", "NOP", "EXTENDED_ARG", "PRECALL"})


@lru_cache(maxsize=4096)
def comparisons(code: types.CodeType) -> Mapping[int, tuple[Dotted | None, Dotted | None]]:
    """The operands of each `is` and `is not`, by its offset: dotted names, or None for what is computed, and numbers.

    Those with another constant, such as `x is None`, or with `type(y)` are left out. Functions inside of the code have
    their own.
    """
    steps = [step for step in dis.get_instructions(code) if step.opname not in _SKIPPED]
    found = {}
    for position, step in enumerate(steps):
        if step.opname == "IS_OP":
            operands = _operands(steps[:position])
            if operands is not None:
                found[step.offset] = operands
    return found


def given_to(following: Sequence[dis.Instruction]) -> Dotted | None:
    """The dotted name that a function is called with, from what follows its name; None for anything else."""
    steps = [step for step in following if step.opname not in _SKIPPED]
    calls = [position for position, step in enumerate(steps) if step.opname == "CALL"]
    found, before = _loaded(steps[: calls[0]]) if calls else (None, ())
    return None if before else found or None


def _operands(before: Sequence[dis.Instruction]) -> tuple[Dotted | None, Dotted | None] | None:
    """The names that two operands are loaded by; None if one is a constant, or a type."""
    last = before[-1] if before else None
    if last is not None and isinstance(last.argval, tuple) and last.opname.startswith("LOAD_FAST"):  # loads both
        left, right = last.argval
        return (left,), (right,)
    right_name, rest = _loaded(before)
    if right_name == ():
        return None
    left_name = _loaded(rest)[0]
    return None if left_name == () else (left_name, right_name)


def _loaded(before: Sequence[dis.Instruction]) -> tuple[Dotted | None, Sequence[dis.Instruction]]:
    """What the last instructions load, and those before them.

    Returns:
        A dotted name, () for a constant or a type, None for a number or anything computed.
    """
    attributes: list[str] = []
    for position in range(len(before) - 1, -1, -1):
        step = before[position]
        if step.opname == "LOAD_ATTR":
            attributes.append(step.argval)
        elif step.opname.startswith(_ROOTS) and isinstance(step.argval, str):
            return (step.argval, *reversed(attributes)), before[:position]
        elif step.opname in ("LOAD_CONST", "LOAD_SMALL_INT") and not attributes:
            return None if type(step.argval) in (int, float) else (), before[:position]
        elif step.opname == "CALL" and step.arg == 1 and not attributes and _loads_type(_loaded(before[:position])[1]):
            return (), ()
        else:
            break
    return None, ()


def _loads_type(before: Sequence[dis.Instruction]) -> bool:
    return bool(before) and before[-1].opname.startswith("LOAD_GLOBAL") and before[-1].argval == type.__name__
