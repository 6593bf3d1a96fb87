"""Opaque steps: functions whose body is not traced, such as those that call NumPy, as operations of a reference."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from opwright.errors import NoKernel, UnsupportedReturn
from opwright.tracing.interface.signature import place_of
from opwright.tracing.outside.ran import note_step
from opwright.tracing.torch_hooks import functorch

NAMESPACE = "opwright_opaque"


def opaque(
    function: Callable[..., torch.Tensor] | None = None,
    /,
    *,
    like: Callable[..., torch.Tensor],
    backward: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """Make a step whose body is not traced; a reference may call it among torch operations.

    Args:
        function: Takes annotated tensors and constants, without gradients, and returns a new tensor.
        like: Takes the same and returns an empty tensor of the shape and dtype of the result.
        backward: `(cotangent, *arguments) -> gradients`, one for each argument or None; in torch operations and
            opaque steps, so that it can be differentiated again where these can. Without it, asking for a gradient is
            an error.

    Raises:
        UnsupportedReturn: At a call, if the result is not as `like` says.
        NoKernel: At a call in forward mode, or under a derivative of `torch.func`.
    """
    if function is None:
        return lambda body: opaque(body, like=like, backward=backward)
    body = function

    def checked(*arguments: Any) -> torch.Tensor:
        given = [a.detach() if isinstance(a, torch.Tensor) else a for a in arguments]
        made, expected = body(*given), like(*given)
        if made.shape != expected.shape or made.dtype != expected.dtype:
            raise UnsupportedReturn(
                f"{body.__name__} returns {made.dtype} of shape {tuple(made.shape)}, and its like= "
                f"{expected.dtype} of shape {tuple(expected.shape)}",
                place=place_of(body),
                hint="correct like=",
            )
        return made

    note_step(like, backward)
    schema = torch.library.infer_schema(body, mutates_args=())
    name = _free_name(body.__name__)
    step = torch.library.custom_op(f"{NAMESPACE}::{name}", checked, mutates_args=(), schema=schema)
    step.register_fake(like)
    if backward is not None:
        step.register_autograd(functools.partial(_derivative, backward), setup_context=_keep)

    @functools.wraps(body)
    def called(*arguments: Any) -> Any:
        _refuse_transforms(body, arguments)
        return step(*arguments)

    return called


def _free_name(name: str) -> str:
    """A unique name at the dispatcher: a second step of the same name would replace the first, in its kernels too."""
    free, number = name, 1
    while hasattr(getattr(torch.ops, NAMESPACE), free):
        number += 1
        free = f"{name}_{number}"
    return free


def _refuse_transforms(body: Callable[..., Any], arguments: Sequence[Any]) -> None:
    """Refuse forward mode, where torch would treat the tangents of a custom operator as zeros, and `torch.func`.

    Raises:
        NoKernel: If there are tangents, or a transform that differentiates.
    """
    tangents = functorch.is_forward_mode() and any(map(functorch.is_dual, arguments))
    if tangents or functorch.is_differentiating():
        raise NoKernel(
            f"a derivative of {body.__name__} by forward mode or torch.func (jvp, grad, ...) cannot be derived: "
            "it is an opaque step, with a backward at most",
            place=place_of(body),
            hint="use torch.autograd.grad or backward",
        )


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.rest = [None if isinstance(given, torch.Tensor) else given for given in inputs]
    ctx.save_for_backward(*[given for given in inputs if isinstance(given, torch.Tensor)])
    ctx.tensors = [isinstance(given, torch.Tensor) for given in inputs]


def _derivative(backward: Callable[..., Any], ctx: Any, cotangents: torch.Tensor) -> Any:
    saved = iter(ctx.saved_tensors)
    arguments = [next(saved) if tensor else given for given, tensor in zip(ctx.rest, ctx.tensors, strict=True)]
    return backward(cotangents, *arguments)
