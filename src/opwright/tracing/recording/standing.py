"""Tensors from outside of a function, for which its arguments stand while it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import arg_tree_leaves, tree_map_only

from opwright.errors import NoKernel
from opwright.tracing.effects.watch import meets


def reads_real(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a tensor among arguments is none of a trace."""
    leaves = arg_tree_leaves(*args, **kwargs)
    return any(isinstance(leaf, torch.Tensor) and not isinstance(leaf, FakeTensor) for leaf in leaves)


class Standing(TorchFunctionMode):
    """Has torch's functions take arguments instead of tensors from outside.

    Args:
        tensors: The tensors from outside, by identity.
        arguments: What stands for them.

    Attributes:
        stood_for: The same tensors.
    """

    def __init__(self, tensors: Mapping[int, torch.Tensor], arguments: Mapping[int, Any]) -> None:
        super().__init__()
        self.stood_for = tensors
        self._arguments = arguments
        self._records = torch.is_grad_enabled()

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run the function with what stands for its arguments."""
        args, kwargs = tree_map_only(torch.Tensor, self._argument_for, (args, kwargs or {}))
        return func(*args, **kwargs)

    def _argument_for(self, tensor: torch.Tensor) -> Any:
        """What stands for a tensor.

        Raises:
            NoKernel: If its gradient would be lost, as in an `autograd.Function` that is given the tensor itself.
        """
        if id(tensor) not in self._arguments:
            return tensor
        if self._records and not torch.is_grad_enabled() and self.stood_for[id(tensor)].requires_grad:
            fact = "the function uses a tensor from outside, which requires a gradient, where none is recorded"
            raise meets(NoKernel(fact, hint="pass it as an argument"))
        return self._arguments[id(tensor)]
