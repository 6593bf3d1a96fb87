"""Whether a function draws random numbers, found out before it is recorded.

Compilers must know that calls of a random function differ and that its backward pass needs the numbers of its forward
pass. They know this of torch's random operations, so they see those instead of one operator.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from opwright.tracing.effects.watch import paused, unchanged_outside
from opwright.tracing.recording.draws import DrawnOrders, is_draw
from opwright.tracing.torch_hooks.isolation import Modes, in_fresh_thread
from opwright.tracing.torch_hooks.unseen import Unseen

_SIZE_THAT_NOBODY_KNOWS = 8


def draws(function: Callable[..., Any], arguments: Sequence[Any], *, if_unknown: bool = True) -> bool:
    """Whether a function draws random numbers for arguments of this kind.

    True if that is unknown: showing a compiler the function's operations is always right.
    """
    from opwright.tracing.torch_hooks.fake_mode import (  # imports sympy (0.3 s), which recording needs anyway
        LeanFakeTensorMode,
        LeanShapeEnv,
    )

    if any(isinstance(a, torch.Tensor) and (a.layout is not torch.strided or a.is_nested) for a in arguments):
        return True
    described = [_described(argument) for argument in arguments]

    def work() -> bool:
        watch = _Watch()
        with torch.random.fork_rng(devices=()), LeanFakeTensorMode(shape_env=LeanShapeEnv()):
            like = [make() for make in described]
            try:
                with watch, unchanged_outside(getattr(function, "__name__", "it"), function):
                    function(*like)
            except Exception:  # any exception: recording will report it
                return if_unknown or watch.has_seen_a_draw
        return watch.has_seen_a_draw

    return in_fresh_thread(work, Modes.of_caller())


def draws_along_memory(function: Callable[..., Any], arguments: Sequence[Any], *, if_unknown: bool = True) -> bool:
    """Whether a function draws random numbers into memory in another order than row by row.

    `if_unknown` if that is unknown, unless it was seen to draw.
    """
    from opwright.tracing.recording.validation import GoesOn
    from opwright.tracing.torch_hooks.layouts.memory_formats import MemoryFormats
    from opwright.tracing.torch_hooks.layouts.processor_formats import ProcessorFormats

    if any(isinstance(a, torch.Tensor) and (a.layout is not torch.strided or a.is_nested) for a in arguments):
        return True
    described = [_described(argument, device="meta") for argument in arguments]

    def work() -> bool:
        drawn = DrawnOrders()
        with torch.device("meta"), MemoryFormats(), ProcessorFormats(), GoesOn(), drawn:
            like = [make() for make in described]
            with unchanged_outside(getattr(function, "__name__", "it"), function, like):
                function(*like)
        return any(order != () for order in drawn.found)

    try:
        return in_fresh_thread(work, Modes.of_caller())
    except Exception:  # any exception: it looks at devices or values, or a kernel cannot be derived of it either
        return draws(function, arguments, if_unknown=if_unknown)


class _Watch(Unseen, TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.has_seen_a_draw = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.has_seen_a_draw |= is_draw(func, args, kwargs or {})
        with paused(operation=func):
            return func(*args, **kwargs or {})


def _described(argument: Any, **instead: Any) -> Callable[[], Any]:
    """The spec of an argument, with other options instead of its own."""
    if isinstance(argument, torch.Tensor):
        shape, strides = map(_known, argument.shape), map(_known, argument.stride())
        options: dict[str, Any] = {
            "dtype": argument.dtype,
            "device": argument.device,
            "requires_grad": argument.requires_grad,
        }
        return functools.partial(torch.empty_strided, tuple(shape), tuple(strides), **options | instead)
    value = _known(argument)
    return lambda: value


def _known(value: Any) -> Any:
    """A number in place of a symbol."""
    if not isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
        return value
    return value.node.hint if value.node.has_hint() else value.node.pytype(_SIZE_THAT_NOBODY_KNOWS)
