"""An operator under function transforms and in forward mode calls the transform of itself, one level below.

at the level of      an operator f calls, below that level
vmap                 vmap(f), on arguments whose batch is their first dimension
jvp, dual tensors    jvp(f), on arguments and their tangents
grad                 f, and records a node whose backward is the operator backward(f)

Each of these is an operator with kernels of its own, so that levels can nest in any way. Below the last level, the call
is an ordinary one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from opwright.binding.native import native
from opwright.binding.own_errors import runs_reference
from opwright.binding.transforms.dual_tensors import serve_dual
from opwright.binding.transforms.step_below import step_below
from opwright.binding.transforms.transformed import Served, Transformable, Transformed
from opwright.binding.variants.kinds import Key, kind_of
from opwright.settings import Settings
from opwright.tracing.interface.memory import given_twice
from opwright.tracing.recording.randomness import draws
from opwright.tracing.torch_hooks import functorch

_DEVICES = ("cpu", "meta")  # whose random numbers a backward pass draws again


def are_transformed(args: Sequence[Any]) -> bool:
    """Whether a function transform is active, or an argument is a dual tensor."""
    return functorch.are_active() or (functorch.is_forward_mode() and any(map(functorch.is_dual, args)))


class TransformServer:
    """Serves the calls of one operator for which `are_transformed` says yes.

    Args:
        operator: The operator.
        reference: The function as written, for other transforms.
        settings: Whether there is an extension module.
        may_ask_for_identity: Whether the function may ask whether two tensors are one. Each level has tensors of its
            own, so calls that give one twice are the function's.
    """

    def __init__(
        self,
        operator: Transformable,
        reference: Callable[..., Any],
        settings: Settings,
        may_ask_for_identity: Callable[[], bool],
    ) -> None:
        self._operator = operator
        self._reference = reference
        self._settings = settings
        self._may_ask_for_identity = may_ask_for_identity
        self._draws: dict[Key, bool] = {}
        self._has_asked = False
        self._step_below: Callable[[Transformable, Transformed, Sequence[Any]], Served | None] = step_below

    def equip(self, native: Any) -> None:
        """Use the C++ implementation from now on."""
        self._step_below = native.step_below

    def serve(self, args: Sequence[Any]) -> Served:
        """Serve a call."""
        if self._draws_elsewhere(args) or (given_twice(args) and self._may_ask_for_identity()):
            return self._run_reference(args)
        transforms = self._operator.transforms
        if not functorch.are_active():
            return serve_dual(transforms, self._reference, args)
        if not self._has_asked:
            self._has_asked = True
            native.equip(self, self._settings)
        return self._step_below(self._operator, transforms, args) or self._run_reference(args)

    @runs_reference
    def _run_reference(self, args: Sequence[Any]) -> Served:
        return self._reference(*args), "composed"

    def _draws_elsewhere(self, args: Sequence[Any]) -> bool:
        """Whether a call draws from a GPU's generator."""
        if not any(isinstance(arg, torch.Tensor) and arg.device.type not in _DEVICES for arg in args):
            return False
        kind = kind_of(args, gradients=False)
        if kind not in self._draws:
            self._draws[kind] = draws(self._reference, args)
        return self._draws[kind]
