"""Functions that validate values: `if not valid.all(): raise …`, `assert (x > 0).all()`, as torch.distributions do.

A trace goes on where the function does not raise. Its kernels check at every call that the value is such, and leave the
call to the function if it is not.
"""

from __future__ import annotations

import dis
import functools
import sys
import types
from collections.abc import Sequence
from typing import Any

import torch
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import DataDependentOutputException
from torch.utils._python_dispatch import TorchDispatchMode

_BETWEEN = ("opwright", "torch._", "torch.overrides", "torch.utils")
_ASKING = (torch.ops.aten._local_scalar_dense.default, torch.ops.aten.item.default)
_MOST_STEPS = 80
_JUMPS = {"IF_TRUE": True, "IF_FALSE": False}
_NO_STEPS = ("CACHE", "NOT_TAKEN", "TO_BOOL")
_LASTING = ("STORE_ATTR", "STORE_SUBSCR", "STORE_GLOBAL", "STORE_DEREF", "STORE_NAME", "DELETE_", "RETURN_", "YIELD_")


def checked_answer(func: OpOverload, tensor: torch.Tensor, frame: types.FrameType | None) -> bool:
    """Answer a question for the truth of a tensor, and record that kernels check it; None is a frame without answers.

    Raises:
        DataDependentOutputException: If the function does something else than to go on or raise.
    """
    answer = answer_that_does_not_raise(frame)
    if answer is None:
        raise DataDependentOutputException(func)
    valid = tensor if answer else torch.logical_not(tensor)
    torch.ops.aten._assert_async.msg(valid, "the function may raise for these values")
    return answer


def answer_that_does_not_raise(frame: types.FrameType | None) -> bool | None:
    """The truth of a tensor for which the code that asks goes on, if it does nothing but raise for the other.

    Args:
        frame: Any frame that the question has led to.

    Returns:
        None if it does something else.
    """
    while frame is not None and str(frame.f_globals.get("__name__")).startswith(_BETWEEN):
        frame = frame.f_back
    while frame is not None and _is_returned(frame.f_code, frame.f_lasti):
        frame = frame.f_back
    return _answer(frame.f_code, frame.f_lasti) if frame is not None else None


class GoesOn(TorchDispatchMode):
    """Answers such questions of a function on fake tensors, whose kernels check them."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(
        self, func: OpOverload, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run an operation."""
        if func in _ASKING and (answer := answer_that_does_not_raise(sys._getframe(1))) is not None:
            return answer
        return func(*args, **(kwargs or {}))


@functools.lru_cache(maxsize=256)
def _is_returned(code: types.CodeType, offset: int) -> bool:
    """Whether a function returns the answer, as in `return bool(valid.all())`: its caller decides then."""
    steps, asking = _steps_and_asking(code, offset)
    return [step.opname for step in steps[asking : asking + 2]] == ["CALL", "RETURN_VALUE"]


@functools.lru_cache(maxsize=256)
def _answer(code: types.CodeType, offset: int) -> bool | None:
    """The same for an instruction, which has to be a jump, or a call before one: `if bool(valid.all())`."""
    steps, asking = _steps_and_asking(code, offset)
    asking += asking < len(steps) and steps[asking].opname == "CALL"
    if asking >= len(steps):
        return None
    jumps_for = _JUMPS.get("_".join(steps[asking].opname.split("_")[-2:]))
    target = [place for place, step in enumerate(steps) if step.offset == steps[asking].argval]
    if jumps_for is None or not target:
        return None
    raises = {jumps_for: _only_raises(steps[target[0] :]), not jumps_for: _only_raises(steps[asking + 1 :])}
    return None if raises[True] == raises[False] else raises[False]


def _steps_and_asking(code: types.CodeType, offset: int) -> tuple[Sequence[dis.Instruction], int]:
    """The instructions, and the place of the one at an offset, or of the next if that does nothing."""
    steps = [step for step in dis.get_instructions(code) if step.opname not in _NO_STEPS]
    return steps, next((place for place, step in enumerate(steps) if step.offset >= offset), len(steps))


def _only_raises(steps: Sequence[dis.Instruction]) -> bool:
    for step in steps[:_MOST_STEPS]:
        if step.opname == "RAISE_VARARGS":
            return True
        if "JUMP" in step.opname or step.opname.startswith(_LASTING):
            return False
    return False
