"""Modes that hear of an operator as one call, such as `opwright.tensors.log()`; others see its operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode, _pop_mode_temporarily


class HearsOperators(TorchFunctionMode):
    """A function mode that is told of the calls of operators."""

    def hear(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Take note of a call, which then runs without the mode.

        Args:
            name: Of the operator, without its namespace.
            args: Its arguments,
            kwargs: and those given by name.
        """
        raise NotImplementedError


def is_heard() -> bool:
    """Whether the innermost function mode hears operators."""
    return listener() is not None


def listener() -> HearsOperators | None:
    """The innermost function mode, if it hears operators."""
    count = torch._C._len_torch_function_stack()
    mode = torch._C._get_function_stack_at(count - 1) if count else None
    return mode if isinstance(mode, HearsOperators) else None


def tell(name: str, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Tell the innermost mode of a call, and make the call without it."""
    mode = listener()
    assert mode is not None
    with _pop_mode_temporarily():
        mode.hear(name, args, kwargs)
        return call(*args, **kwargs)
