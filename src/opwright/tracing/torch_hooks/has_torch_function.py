"""`torch.overrides.has_torch_function` answers in a trace as in a call, where the modes of the trace are not there.

Attention asks it before it takes a faster way. Under a mode torch says yes of every tensor, and relies on that itself,
by names of its own: only what is found in `torch.overrides` is exchanged.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from opwright.tracing.torch_hooks.exchanged import Exchanged

_TAKES: dict[str, Callable[..., Iterable[Any]]] = {
    "has_torch_function": lambda values: values,
    "has_torch_function_unary": lambda value: (value,),
    "has_torch_function_variadic": lambda *values: values,
}
_OWN = frozenset({torch.Tensor, torch.nn.Parameter})


@contextmanager
def asked_as_in_calls() -> Iterator[None]:
    """Answer so on this thread."""
    with _exchanged.on_this_thread(True):
        yield


def _answering(name: str) -> Callable[..., bool]:
    ask, taken = getattr(torch.overrides, name), _TAKES[name]

    @functools.wraps(ask)
    def answer(*given: Any) -> bool:
        if _exchanged.here() is None:
            return bool(ask(*given))
        return any(map(_has_one, taken(*given)))

    return answer


def _has_one(value: Any) -> bool:
    kind = type(value)
    function = None if kind in _OWN else getattr(kind, "__torch_function__", None)
    return function not in (None, torch._C._disabled_torch_function_impl) and torch._C._is_torch_function_enabled()


_exchanged: Exchanged[bool] = Exchanged({(torch.overrides, name): _answering(name) for name in _TAKES})
