"""Which operator serves an overload at the dispatcher."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

from opwright.binding.dispatcher.registered import Registered
from opwright.tracing.interface.signature import Signature
from opwright.tracing.torch_hooks.scripting import let_script_call


@dataclass(frozen=True, slots=True)
class AtDispatcher:
    """An operator as a program calls it.

    Attributes:
        operator: The operator.
        signature: Its parameters.
    """

    operator: Any
    signature: Signature


_every: weakref.WeakKeyDictionary[Any, tuple[Registered, Signature]] = weakref.WeakKeyDictionary()


def remember(operator: Any, registered: Registered, signature: Signature) -> None:
    """Have an operator found, and called by TorchScript, while it lives."""
    _every[operator] = registered, signature
    let_script_call(operator, operator.name)


def at_dispatcher(overload: Any) -> AtDispatcher | None:
    """The operator that serves an overload; None if it is none of ours."""
    for operator, (registered, signature) in list(_every.items()):
        if overload is not None and registered.overload is overload:
            return AtDispatcher(operator, signature)
    return None
