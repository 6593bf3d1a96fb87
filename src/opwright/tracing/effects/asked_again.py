"""Functions that ask for the class of a tensor, and answer alike for every class that torch has.

In a trace, tensors are of another class than in a call. Libraries look at it to tell torch's tensors from those of
others; such a function may run if it gives the same plain value for a tensor, and for a parameter.
"""

from __future__ import annotations

import builtins
import dis
import inspect
import types
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from opwright.tracing.outside.frameworks import finds_framework
from opwright.tracing.outside.plain import is_plain

_HARMLESS = (type, str, repr, isinstance, issubclass, len, bool, any, all, tuple)
_OTHERWISE = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS | inspect.CO_GENERATOR | inspect.CO_COROUTINE


def answers_alike(frame: types.FrameType) -> bool:
    """Whether the function of a frame that has begun would answer the same for a plain tensor and for a parameter."""
    code = frame.f_code
    if finds_framework(code):
        return True
    if code.co_flags & _OTHERWISE or code.co_freevars or not all(map(_is_harmless, _globals(frame))):
        return False
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    given = {name: frame.f_locals.get(name) for name in names}
    if not all(isinstance(value, torch.Tensor) or is_plain(value) for value in given.values()):
        return False
    function = types.FunctionType(code, frame.f_globals)
    with _disable_current_modes():
        try:
            answers = [function(**given), *(function(**_with(given, kind)) for kind in _KINDS)]
        except Exception:  # the call itself will raise it
            return False
    return all(is_plain(answer) and type(answer) is type(answers[0]) and answer == answers[0] for answer in answers)


def _globals(frame: types.FrameType) -> Iterator[Any]:
    for step in dis.get_instructions(frame.f_code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            name = step.argval
            yield frame.f_globals[name] if name in frame.f_globals else getattr(builtins, name, None)


def _is_harmless(value: Any) -> bool:
    """Whether calling it changes nothing, and asks a tensor for nothing but its class."""
    return is_plain(value) or any(value is each for each in (*_HARMLESS, torch.Tensor))


def _with(given: dict[str, Any], kind: Any) -> dict[str, Any]:
    return {name: kind(value) if isinstance(value, torch.Tensor) else value for name, value in given.items()}


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty((0,) * tensor.dim(), dtype=tensor.dtype, device="meta")


def _parameter(tensor: torch.Tensor) -> torch.Tensor:
    return torch.nn.Parameter(_plain(tensor), requires_grad=False)


_KINDS = (_plain, _parameter)
