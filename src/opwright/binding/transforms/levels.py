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
from opwright.binding.transforms.as_written import RunsAsWritten, below_transforms
from opwright.binding.transforms.dual_tensors import serve_dual
from opwright.binding.transforms.other_draws import OtherDraws, are_on_gpu
from opwright.binding.transforms.over_entries import over_entries
from opwright.binding.transforms.step_below import step_below
from opwright.binding.transforms.transformed import Served, Transformable, Transformed
from opwright.binding.variants.states import Outside
from opwright.derivation.backward import is_backward
from opwright.errors import HidesFromGradients
from opwright.settings import Settings
from opwright.tracing.interface.flatten import Leaves
from opwright.tracing.interface.memory import given_twice
from opwright.tracing.torch_hooks import functorch


def are_transformed(args: Sequence[Any]) -> bool:
    """Whether a function transform is active, or an argument is a dual tensor.

    Or in a batch of the legacy `vmap` where gradients are recorded, which that does inside of the batch: there a kernel
    would record nothing.
    """
    if functorch.are_active():
        return True
    if functorch.is_forward_mode():
        return any(map(functorch.is_dual, args))
    return torch.is_grad_enabled() and any(isinstance(a, torch.Tensor) and functorch.is_in_old_batch(a) for a in args)


def _cannot_record() -> bool:
    """Whether `grad` runs in inference mode, which PyTorch 2.11 leaves on at its levels; its gradients are zero."""
    return torch.is_inference_mode_enabled() and torch.is_grad_enabled() and functorch.is_differentiating()


class TransformServer:
    """Serves the calls of one operator for which `are_transformed` says yes.

    Args:
        operator: The operator.
        reference: The function as written, for other transforms.
        settings: Whether there is an extension module.
        outside: What the function reads outside of its arguments. It tells whether the function may ask whether two
            tensors are one: each level has tensors of its own, so calls that give one twice are the function's then.

    Attributes:
        draws_otherwise: Whether a call draws other random numbers than the operator would one level below.
    """

    def __init__(
        self,
        operator: Transformable,
        reference: Callable[..., Any],
        settings: Settings,
        outside: Outside,
    ) -> None:
        self._operator = operator
        self._reference = reference
        self._fallback = getattr(reference, "fallback", reference)
        self._is_written = not is_backward(reference)  # gradients are computed below the level, where autograd is
        self._settings = settings
        self._outside = outside
        self.draws_otherwise = OtherDraws(reference, outside).are_in
        self._has_asked = self._hides = False
        self._step_below: Callable[[Transformable, Transformed, Sequence[Any]], Served | None] = step_below

    def equip(self, native: Any) -> None:
        """Use the C++ implementation from now on."""
        self._step_below = native.step_below

    def serve(self, args: Sequence[Any]) -> Served:
        """Serve a call."""
        if given_twice(args) and self._outside.now().reads.may_ask_for_identity:
            return self._run_reference(args)
        if self.draws_otherwise(args):
            return self._draw_alike(args)
        if self._hides:
            return self._run_reference(args)
        was_entered, below_transforms.is_entered = below_transforms.is_entered, self._is_written
        try:
            return self._serve_below(args)
        except HidesFromGradients:
            self._hides = True
            settle = None
        except RunsAsWritten as left:
            if was_entered:
                raise
            settle = left.settle
        finally:
            below_transforms.is_entered = was_entered
        served = self._run_reference(args)
        if settle:
            settle()
        return served

    def _serve_below(self, args: Sequence[Any]) -> Served:
        transforms = self._operator.transforms
        if not functorch.are_active():
            return serve_dual(transforms, self._run_reference, args)
        if not self._has_asked:
            self._has_asked = True
            native.equip(self, self._settings)
        if _cannot_record():
            return self._run_reference(args)
        return self._step_below(self._operator, transforms, args) or self._run_reference(args)

    def _draw_alike(self, args: Sequence[Any]) -> Served:
        """Let torch draw what it draws at this level; a backward pass draws what its forward pass drew below it."""
        if not (is_backward(self._reference) and functorch.are_active()) or are_on_gpu(args):
            return self._run_reference(args)
        if functorch.innermost().transform is functorch.Transform.VMAP:
            return over_entries(self._operator, args)
        return self._step_below(self._operator, self._operator.transforms, args) or self._run_reference(args)

    @runs_reference
    def _run_reference(self, args: Sequence[Any]) -> Served:
        was_entered, below_transforms.is_entered = below_transforms.is_entered, False
        try:
            return (self._fallback(*args.given) if isinstance(args, Leaves) else self._reference(*args)), "composed"
        finally:
            below_transforms.is_entered = was_entered
