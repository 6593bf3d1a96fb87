"""Which operations draw random numbers, and in which order of memory."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import arg_tree_leaves

from opwright.errors import NoKernel
from opwright.ir.call_traits import RANDOM
from opwright.tracing.effects.checkpoints import runs_again
from opwright.tracing.hints import CHECKPOINT_AROUND, DRAW_OUTSIDE
from opwright.tracing.interface.orders import Order, is_dense, order_of

LIKE_THEIR_OPERAND = frozenset(("aten::rand_like", "aten::randn_like"))
"""What they return lies as their operand does."""


def is_draw(func: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether an operation draws random numbers for these arguments: attention does only with dropout."""
    if torch.Tag.nondeterministic_seeded not in func.tags:
        return False
    for place, argument in enumerate(func._schema.arguments):
        if argument.name == "dropout_p":
            given = args[place] if place < len(args) else kwargs.get(argument.name, argument.default_value)
            return bool(given != 0.0)
    return True


def refuse_draw(func: OpOverload, generator: torch.Tensor) -> None:
    """Refuse an operation that cannot draw the numbers that eager draws.

    Args:
        func: The operation.
        generator: The state of the generator when the trace began.

    Raises:
        NoKernel: If a Program does not know it, the function has set a seed, or a checkpoint draws once more.
    """
    with _disable_current_modes():
        if not torch.equal(torch.get_rng_state(), generator):  # fake tensors draw nothing
            raise NoKernel("the function seeds the generator of random numbers", hint="seed it before the call")
    if runs_again(sys._getframe()):
        raise NoKernel("a checkpoint draws its random numbers again", hint=CHECKPOINT_AROUND)
    if func._schema.name not in RANDOM:
        raise NoKernel(f"the function draws random numbers ({func.name()})", hint=DRAW_OUTSIDE)


def order_of_draw(func: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], *, in_place: bool) -> Order:
    """The order of the memory that an operation draws numbers into, as the strides of its operands tell.

    Args:
        func: The operation.
        args: Its arguments.
        kwargs: Its keyword arguments.
        in_place: Whether it draws into its first argument, or stands for an operation that does.

    Raises:
        NoKernel: If the order of the draws is another one than that of its operand's dimensions in memory.
    """
    tensors = [leaf for leaf in arg_tree_leaves(*args, **kwargs) if isinstance(leaf, torch.Tensor)]
    if all(tensor.is_contiguous() for tensor in tensors):
        return ()
    lies_alike = in_place or (func._schema.name in LIKE_THEIR_OPERAND and kwargs.get("memory_format") is None)
    if lies_alike and len(tensors) == 1 and is_dense(tensors[0]):
        return order_of(tensors[0])
    raise in_another_order(func.name())


def in_another_order(operation: str) -> NoKernel:
    """The refusal of such a draw."""
    fact = f"the function draws random numbers in another order than row by row ({operation})"
    return NoKernel(fact, hint="draw into a contiguous tensor")


class DrawnOrders(TorchDispatchMode):
    """Notes where random numbers are drawn on meta tensors, until the end of the block; it lets nothing be drawn.

    Attributes:
        found: For each draw the order of the memory that it fills; None if that has gaps.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: list[Order | None] = []

    def __torch_dispatch__(
        self, func: OpOverload, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run an operation.

        Raises:
            NoKernel: If it draws numbers, into a tensor that is on no meta device.
        """
        is_drawn = is_draw(func, args, kwargs or {})
        if is_drawn:
            kwargs = _on_meta(func, args, kwargs or {})
        made = func(*args, **(kwargs or {}))
        if is_drawn:
            drawn = made[0] if isinstance(made, tuple) else made
            self.found.append(order_of(drawn) if is_dense(drawn) else None)
        return made


def _on_meta(func: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a draw that moves no generator: of `torch.normal(0.0, 1.0, sizes)`, say, on the meta device."""
    tensors = [leaf for leaf in arg_tree_leaves(*args, **kwargs) if isinstance(leaf, torch.Tensor)]
    if not all(tensor.is_meta for tensor in tensors):
        fact = f"the function draws random numbers on another device than its arguments' ({func.name()})"
        raise NoKernel(fact, hint=DRAW_OUTSIDE)
    makes = not tensors and any(argument.name == "device" for argument in func._schema.arguments)
    return {**kwargs, "device": torch.device("meta")} if makes else dict(kwargs)
